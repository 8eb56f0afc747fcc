"""The models that can be pulled by name, and the ones that are named to warn of them."""

from msgspec import Struct

from daypack.errors import BadConfig

DEFAULT = "qwen3-1.7b"


class Origin(Struct, frozen=True):
    """A file in a repository of the hub."""

    repository: str
    file: str


class Model(Struct, frozen=True):
    """A model for compaction.

    `origins` are asked in turn: not every repository has every quantisation at all times. `about_bytes` is what to
    expect, the hub tells the exact size. `sha256` is None where no digest was checked by us: then the hub's is used.
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


def find_model(name: str) -> Model:
    """Return an offered model by its name."""
    for model in MODELS:
        if model.name == name.lower() and model.offered:
            return model
    names = " and ".join(model.name for model in MODELS if model.offered)
    known = next((model for model in MODELS if model.name == name.lower()), None)
    problem = f"{name} is {known.note}" if known else f"no model {name!r}"
    hint = f"there are {names}; for a GGUF file of your own, llama:PATH"
    raise BadConfig(problem, operation="find model", place="catalogue", hint=hint)
