"""MCP over standard streams: the loop by itself, and as a process."""

import io
import json
import os
import signal
from collections.abc import Iterator
from typing import Any, cast

import pytest
from serve.wire import (
    Message,
    Process,
    by_id,
    exchange,
    initialize,
    make_offer,
    request,
    stateless,
    tool,
)

from daypack.memory.tools import Memories, open_memory
from daypack.memory.writes.positions import Position
from daypack.serve.mcp.router import Router
from daypack.serve.observe.log import log
from daypack.serve.stdio import loop as stdio

CODES = {"parse": -32700, "request": -32600, "method": -32601, "params": -32602, "version": -32022}


@pytest.fixture
def offer(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Router]:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    offer = make_offer(lambda: open_memory(home=home), home)
    yield offer
    offer.close()


def fault(message: Message) -> tuple[int, Any]:
    return message["error"]["code"], message["id"]


def test_a_handshake_then_a_list_then_a_call(offer: Router) -> None:
    told = by_id(
        exchange(
            offer,
            [
                initialize("2025-06-18"),
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                request(1, "ping"),
                request("two", "tools/list", {}),
                tool(3, "create_memory", title="x"),
            ],
        )
    )
    opened = told[0]["result"]
    assert opened["protocolVersion"] == "2025-06-18"
    assert opened["serverInfo"]["name"] == "daypack"
    assert opened["capabilities"].keys() == {"prompts", "resources", "tools"}
    assert "search_memories" in opened["instructions"]
    assert told[1]["result"] == {}
    assert len(told["two"]["result"]["tools"]) == 9
    called = told[3]["result"]
    assert called["isError"] is False
    assert json.loads(called["content"][0]["text"]) == called["structuredContent"]
    assert "resultType" not in called


@pytest.mark.parametrize("asked", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_known_version_is_agreed_to(asked: str, offer: Router) -> None:
    assert exchange(offer, [initialize(asked)])[0]["result"]["protocolVersion"] == asked


@pytest.mark.parametrize("asked", ["1999-01-01", "2026-07-28", "zzz"])
def test_for_any_other_the_newest_with_a_handshake_is_proposed(asked: str, offer: Router) -> None:
    assert exchange(offer, [initialize(asked)])[0]["result"]["protocolVersion"] == "2025-11-25"


def test_stateless_requests_need_no_handshake_and_are_answered_in_their_own_era(offer: Router) -> None:
    told = by_id(exchange(offer, [stateless(1, "server/discover"), stateless(2, "tools/list"), initialize()]))
    found = told[1]["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    for number in (1, 2):
        result = told[number]["result"]
        assert result["resultType"] == "complete"
        assert result["cacheScope"] == "private"
        assert result["ttlMs"] >= 0
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "daypack"
    assert told[0]["result"]["protocolVersion"] == "2025-11-25"  # both eras in one process


def test_a_stateless_call_has_no_word_on_caching(offer: Router) -> None:
    result = exchange(offer, [stateless(1, "tools/call", name="get_user")])[0]["result"]
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["user_id"] == "local"
    assert not {"ttlMs", "cacheScope"} & result.keys()


def envelope(**changes: object) -> Message:
    names = {"version": "protocolVersion", "capabilities": "clientCapabilities"}
    meta: Message = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    meta |= {f"io.modelcontextprotocol/{names[name]}": value for name, value in changes.items()}
    return {"_meta": {name: value for name, value in meta.items() if value is not ...}}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (request(1, "nothing/there"), "method"),
        (request(1, "logging/setLevel", {"level": "info"}), "method"),
        (request(1, "server/discover"), "method"),
        (request(1, "tools/call"), "params"),
        (request(1, "tools/call", {"name": 5}), "params"),
        (request(1, "tools/call", {"name": "get_user", "arguments": []}), "params"),
        (request(1, "tools/call", {"name": "drop_all"}), "params"),
        (request(1, "tools/list", {"cursor": "x"}), "params"),
        (request(1, "resources/read", {}), "params"),
        (request(1, "resources/read", {"uri": "file:///etc/passwd"}), "params"),
        (request(1, "initialize", {"protocolVersion": 1}), "params"),
        (stateless(1, "ping"), "method"),
        (stateless(1, "nothing/there"), "method"),
        (request(1, "tools/list", envelope(capabilities=...)), "params"),
        (request(1, "tools/list", envelope(capabilities=3)), "params"),
        (request(1, "tools/list", envelope(version=3)), "params"),
        (request(1, "tools/list", envelope(version="2030-01-01")), "version"),
        (request(1, 5), "request"),  # pyright: ignore[reportArgumentType] — no method
        ({"id": 1, "method": "ping"}, "request"),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, "request"),
        ({"jsonrpc": "2.0", "id": 1}, "request"),
        (request(1, "ping", [1]), "request"),
        (request(1, "ping", "text"), "request"),
    ],
)
def test_what_cannot_be_answered_is_refused_under_its_id(message: Message, code: str, offer: Router) -> None:
    told = exchange(offer, [initialize(), message, request(2, "ping")])
    assert fault(told[1]) == (CODES[code], 1)
    assert told[2] == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", "parse"),
        (b"not json", "parse"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', "parse"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', "parse"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', "parse"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', "parse"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 200_000, "parse"),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', "parse"),
        (b"5", "request"),
        (b'"text"', "request"),
        (b"null", "request"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "request"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', "request"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', "request"),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', "request"),
        (b"[]", "request"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "request"),
    ],
)
def test_a_line_that_is_no_message_is_refused_and_the_next_one_answered(line: bytes, code: str, offer: Router) -> None:
    told = exchange(offer, [initialize(), line, request(2, "ping")])
    assert fault(told[1]) == (CODES[code], None)
    assert told[2]["result"] == {}


def test_what_wants_no_answer_gets_none(offer: Router) -> None:
    quiet: list[object] = [
        b"",
        b"   ",
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/unheard_of", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
    ]
    assert exchange(offer, [initialize(), *quiet]) == exchange(offer, [initialize()])


def test_before_the_handshake_only_a_ping_is_answered(offer: Router) -> None:
    told = exchange(offer, [request(1, "ping"), request(2, "tools/list"), request(3, "nothing/there")])
    assert told[0]["result"] == {}
    assert fault(told[1]) == (CODES["params"], 2)
    assert fault(told[2]) == (CODES["method"], 3)


def test_batches_are_a_matter_of_one_version(offer: Router) -> None:
    batch = [
        request(1, "ping"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        tool(2, "get_user"),
        5,
        request(3, "nothing/there"),
    ]
    told = exchange(offer, [initialize("2025-03-26"), batch, [{"jsonrpc": "2.0", "method": "notifications/x"}], []])
    answers = cast("list[list[Message]]", [one for one in told if isinstance(one, list)])
    assert {one["id"] for one in answers[0]} == {1, 2, 3, None}
    alone = cast("list[Message]", [one for one in told if isinstance(one, dict)])
    assert [fault(one) for one in alone if "error" in one] == [(CODES["request"], None)]
    assert len(told) == 3


def test_a_line_of_twenty_megabytes_is_judged_by_the_tool(offer: Router) -> None:
    made = exchange(offer, [initialize(), tool(1, "create_memory", title="x")])[1]["result"]["structuredContent"]
    long = tool(2, "add_entry", memory_id=made["memory_id"], raw_entry="x" * 20_000_000)
    told = by_id(exchange(offer, [initialize(), long, request(3, "ping")]))
    assert told[2]["result"]["isError"]
    assert "20,000,000" in told[2]["result"]["content"][0]["text"]
    assert told[3]["result"] == {}


def test_a_line_over_the_limit_is_passed_over_whole(offer: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE_BYTES", 1000)
    long = request(1, "ping", {"a": "x" * 5_000_000})
    told = exchange(offer, [initialize(), long, request(2, "ping")])
    assert fault(told[1]) == (CODES["request"], None)
    assert told[2]["id"] == 2


def test_the_same_id_twice_is_answered_twice(offer: Router) -> None:
    told = exchange(offer, [initialize(), tool(1, "get_user"), tool(1, "get_user")])
    assert [one["id"] for one in told] == [0, 1, 1]


def test_an_error_nobody_thought_of_ends_one_call_only(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Memories:
        raise ZeroDivisionError("secret")

    asked = [initialize(), request(1, "resources/list"), tool(2, "get_user"), request(3, "ping")]
    told = by_id(exchange(make_offer(fail, home), asked))
    assert fault(told[1]) == (-32603, 1)
    assert told[2]["result"]["isError"]
    assert "secret" not in json.dumps([told[1], told[2]])
    assert told[3]["result"] == {}
    assert log.flush()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    failed = [line for line in lines if line["event"] == "error"]
    assert sorted((line["rpc"], line["operation"], line["error"]) for line in failed) == [
        ("1", "resources/list", "ZeroDivisionError"),
        ("2", "get_user", "ZeroDivisionError"),
    ]
    assert all(line["at"][0].startswith("test_loop.py:") for line in failed)
    assert "secret" not in json.dumps(lines)


class Unread(io.BytesIO):
    """A stream nobody reads any more."""

    def write(self, _: object) -> int:
        raise BrokenPipeError


def test_when_nobody_reads_any_more_the_loop_ends(offer: Router) -> None:
    lines = b"".join(json.dumps(request(number, "ping")).encode() + b"\n" for number in range(3))
    source = io.BytesIO(lines)
    assert not stdio.serve(offer, source, Unread()) or source.tell() < len(lines)


# As a process


def test_a_process_answers_and_ends_with_its_input(home: str) -> None:
    with Process(home) as process:
        assert process.ask(initialize())["result"]["serverInfo"]["name"] == "daypack"
        assert not os.path.exists(home)  # nothing is opened before it is needed
        assert process.ask(tool(1, "create_memory", title="x"))["result"]["structuredContent"]["title"] == "x"
        assert process.finish() == (0, b"", "")


def test_what_is_printed_does_not_reach_the_client(home: str) -> None:
    noise = "import os, daypack.memory.tools as t; f = t.open_memory\n"
    noise += "t.open_memory = lambda **k: (print('noise'), os.system('echo child; cat'), f(**k))[2]\n"
    with Process(home, before=noise) as process:
        process.send(initialize(), tool(1, "get_user"))
        assert [process.receive()["id"], process.receive()["id"]] == [0, 1]
        code, rest, log = process.finish()
    assert (code, rest) == (0, b"")
    assert log.split() == ["noise", "child"] or log.split() == ["child", "noise"]


@pytest.mark.parametrize("closing", ["os.close(2)", "os.close(2); os.open('/dev/full', os.O_WRONLY)"])
def test_a_process_without_a_log_still_answers(closing: str, home: str) -> None:
    broken = "import os, daypack.memory.tools as t\nt.open_memory = lambda **k: 1 / 0\n"
    with Process(home, before=f"{broken}{closing}\n") as process:
        process.send(initialize(), tool(1, "get_user"), request(2, "ping"))
        told = by_id(process.receive() for _ in range(3))
        assert told[1]["result"]["isError"]
        assert process.finish()[:2] == (0, b"")


def waiting(process: Process, home: str) -> tuple[Message, Message]:
    """Return a call that lasts a minute, and a ping."""
    made = process.ask(tool(1, "create_memory", title="x"))["result"]["structuredContent"]
    with open_memory(home=home) as memories:
        position = Position(memories.backend.store.store_id, made["memory_id"], 5, 1)
        later = memories.backend.positions.write_token("local", position)
    return tool(2, "await_consistency", token=later, timeout_ms=60_000), request(3, "ping")


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True])
def test_a_process_that_is_told_to_end_ends_cleanly(busy: bool, told: signal.Signals, home: str) -> None:
    with Process(home) as process:
        process.ask(initialize())
        if busy:
            process.send(*waiting(process, home))
            assert process.receive()["id"] == 3
        process.process.send_signal(told)
        code, rest, log = process.finish(20)
    assert (code, rest, log) == (0, b"", "")


def test_a_process_whose_client_has_gone_does_not_wait_for_a_call_that_lasts(home: str) -> None:
    with Process(home) as process:
        process.ask(initialize())
        process.send(*waiting(process, home))
        assert process.receive()["id"] == 3
        for stream in (process.process.stdin, process.process.stdout):
            assert stream
            stream.close()
        assert process.process.wait(20) == 0


@pytest.mark.parametrize("escape", [b"\\u0000", b"\\ufffe", b"\\ufdd0", b"\\ud83f\\udfff", b"\\ud800"])
def test_what_is_no_character_is_refused_in_a_document(offer: Router, escape: bytes) -> None:
    memory_id = offer.memories().create_memory("x").memory_id
    line = json.dumps(tool(1, "put_context", memory_id=memory_id, content="# A~")).encode().replace(b"~", escape)
    told = exchange(offer, [initialize(), line])[1]
    assert told["id"] == 1
    assert "error" in told or told["result"]["isError"]
    assert "U+" in str(told) or "lone surrogate" in str(told)
    assert offer.memories().get_context(memory_id).version == 1


def test_where_hooks_capture_the_session_the_model_is_not_asked_to_keep_the_document(home: str) -> None:
    with Process(home, "--with-hooks") as process:
        asked = process.ask(initialize())["result"]["instructions"]
    assert "search_memories" in asked
    assert "put_context" not in asked
