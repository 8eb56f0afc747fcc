"""A real small model: in this process, and over HTTP through llama.cpp's own server."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from daypack.errors import ModelFailed, ModelMissing
from daypack.llm.completers import open_completer
from daypack.llm.completion.port import Completer, Prompt

TALK = "user: jobs/export.py fails after 30 seconds.\nassistant: I raised the timeout to 120 seconds."
# Every repetition has a bound, and an end within the tokens that are given.
GRAMMAR = r"""root ::= "## Task\n" line "## Facts\n" line{1,2}
line ::= "- " [A-Za-z0-9 ./_]{3,40} "\n"
"""
FILLED = re.compile(r"## Task\n- [^\n]{3,40}\n## Facts\n(- [^\n]{3,40}\n){1,2}")
SCHEMA = {
    "type": "object",
    "properties": {"done": {"type": "boolean"}},
    "required": ["done"],
    "additionalProperties": False,
}
BOUND = Prompt("Fill the template from the conversation.", TALK, max_tokens=120, grammar=GRAMMAR)


def opened(choice: str) -> Completer:
    completer = open_completer(choice)
    assert completer is not None
    return completer


@pytest.fixture(scope="module")
def local(small_model: str) -> Iterator[Completer]:
    completer = opened(f"llama:{small_model}?window=1024")
    yield completer
    completer.close()


@pytest.fixture(scope="module")
def served(small_model: str) -> Iterator[str]:
    """The address of llama.cpp's own server, on a port the system chose."""
    library: Any = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = small_model
    params.n_ctx, params.n_parallel = 2048, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.verbosity = False, -1
    server = library.Server(params)
    yield server.listening_address
    del server


def test_a_grammar_holds_and_the_same_question_has_the_same_answer(local: Completer) -> None:
    first = local.complete(BOUND)
    assert FILLED.fullmatch(first.text), first.text
    assert (first.finish, first.constraint, first.model) == ("stop", "grammar", local.name)
    assert first.prompt_tokens > 30
    assert first.completion_tokens > 10
    local.complete(Prompt("", "Something else.", max_tokens=4))
    assert local.complete(BOUND) == first
    local.close()
    assert local.complete(BOUND) == first  # loaded again


def test_a_schema_holds(local: Completer) -> None:
    answer = local.complete(Prompt("Answer as JSON.", "Is it done?", max_tokens=60, schema=SCHEMA))
    assert isinstance(json.loads(answer.text)["done"], bool)
    assert answer.constraint == "schema"


def test_an_answer_that_is_cut_off_says_so(local: Completer) -> None:
    answer = local.complete(Prompt("", "Tell a long story.", max_tokens=3))
    assert (answer.finish, answer.completion_tokens, answer.constraint) == ("length", 3, "")


def test_what_the_model_cannot_do_is_told(local: Completer) -> None:
    assert local.window_tokens == 1024
    with pytest.raises(ModelFailed, match="exceeds the available context size"):
        local.complete(Prompt("", "word " * 2000))
    with pytest.raises(ModelFailed, match="grammar"):
        local.complete(Prompt("", "?", grammar="root ::= ["))
    assert local.complete(Prompt("", "?", max_tokens=1)).completion_tokens == 1


def test_an_answer_that_takes_too_long_is_given_up(small_model: str) -> None:
    completer = opened(f"llama:{small_model}?timeout=1&window=4096")
    assert completer.window_tokens == 4096
    stops: list[bool] = []
    server = vars(completer)["_server"]

    class Watched:
        """The real one; what its callback returned is written down."""

        def handle_chat_completions(self, asked: Any, take: Callable[[Any], bool]) -> None:
            def watch(piece: Any) -> bool:
                stops.append(take(piece))
                return stops[-1]

            server.handle_chat_completions(asked, watch)

    vars(completer)["_server"] = Watched()
    with pytest.raises(ModelFailed, match=r"no answer within 1 seconds.*timeout=SECONDS"):
        completer.complete(Prompt("", "word " * 2000))
    completer.close()
    assert stops == [*[False] * (len(stops) - 1), True]


def test_it_is_loaded_for_one_thread_and_with_no_more_room_than_the_model_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.gguf"
    key = b"llama.context_length"
    path.write_bytes(b"GGUF" + pack("<IQQQ", 3, 1, 1, len(key)) + key + pack("<II", 4, 2048))
    params = SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

    def refuse(_params: Any) -> None:
        raise RuntimeError

    library = SimpleNamespace(CommonParams=lambda: params, Server=refuse)
    monkeypatch.setitem(sys.modules, "xllamacpp", library)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelFailed, match="cannot load the file"):
        opened(f"llama:{path}?window=100000").complete(Prompt("", "?"))
    assert (params.n_ctx, params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (2048, 1, 1)


def test_nobody_else_on_this_machine_may_ask_it(local: Completer) -> None:
    _ = local.window_tokens
    address = vars(local)["_server"].listening_address
    stranger = opened(f"openai:{address}/v1#m")
    with pytest.raises(ModelFailed, match="HTTP 401"):
        stranger.complete(Prompt("", "?", max_tokens=1))


CLOSED = """
import errno, socket, sys
from daypack.llm.completers import open_completer
completer = open_completer(sys.argv[1])
completer.window_tokens
port = int(vars(completer)["_server"].listening_address.rpartition(":")[2])
socket.create_connection(("127.0.0.1", port)).close()
completer.close()
print(socket.socket().connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED)
"""


def test_a_closed_model_is_gone(small_model: str) -> None:
    """In a process of its own: on a busy machine the library sometimes waits for its own thread forever."""
    command = [sys.executable, "-c", CLOSED, f"llama:{small_model}?window=512"]
    for _ in range(3):
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
            assert done.stdout == "True\n", done.stderr
            return
    pytest.fail("the model could not be closed")


def test_its_server_is_recognised_and_bound_over_http(served: str) -> None:
    completer = opened(f"openai:{served}/v1#any")
    assert completer.window_tokens == 2048
    answer = completer.complete(BOUND)
    assert FILLED.fullmatch(answer.text), answer.text
    assert (answer.finish, answer.constraint) == ("stop", "grammar")
    schema = completer.complete(Prompt("Answer as JSON.", "Is it done?", max_tokens=60, schema=SCHEMA))
    assert isinstance(json.loads(schema.text)["done"], bool)
    assert completer.complete(Prompt("", "Tell a story.", max_tokens=2)).finish == "length"


def test_a_bad_grammar_over_http_falls_back_to_an_unbound_answer(served: str) -> None:
    answer = opened(f"openai:{served}/v1#any").complete(Prompt("", "Hello", max_tokens=3, grammar="root ::= ["))
    assert (answer.constraint, answer.completion_tokens) == ("", 3)


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"hello")
    with pytest.raises(ModelFailed, match="not a GGUF file"):
        opened(f"llama:{path}").complete(Prompt("", "?"))


def test_a_broken_model_is_told(small_model: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(Path(small_model).read_bytes()[:100_000])
    with pytest.raises(ModelFailed, match="cannot load the file"):
        opened(f"llama:{path}").complete(Prompt("", "?"))


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelMissing, match=r"pip install 'daypack\[llama\]'"):
        opened(f"llama:{tmp_path}/x.gguf").complete(Prompt("", "?"))
