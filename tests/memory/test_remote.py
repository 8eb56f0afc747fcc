"""The nine tools of a server behave as those at home do, and a network that breaks loses or doubles nothing."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from memory_server import Server, start_server
from scripted_endpoint import Endpoint, Reply, Seen

from daypack import errors
from daypack.errors import AccessDenied, BadInput, DaypackError, KeyConflict, MemoryMissing, ServerFailed, TooLong
from daypack.llm import client
from daypack.memory import remote
from daypack.memory.keeper import Keeper
from daypack.memory.remote import RETRY, RemoteMemories
from daypack.memory.requests import GetUser
from daypack.memory.tools import open_memory
from daypack.memory.writes.positions import Position
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.memory import About, Where

MEMORY = {"memory_id": "m", "title": "t", "memory_type": "chat", "created_at": "2026-11-16T06:00:00Z"}
ADDED = {
    "memory_id": "m",
    "entry_id": "e",
    "seq": 1,
    "created_at": "2026-11-16T06:00:00Z",
    "summary": "s",
    "token": "k",
}
Answer = Callable[[Seen], Reply]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RETRY", RETRY._replace(pause_seconds=0.001))


def always(body: Any, status: int = 200, **more: Any) -> Answer:
    return lambda _: Reply(body, status, **more)


def refusal(code: str, status: int, message: str = "no", hint: str = "") -> Answer:
    return always({"error": {"code": code, "message": message, "hint": hint}}, status)


def first(bad: Reply, then: Any, times: int = 1) -> Answer:
    """Fail so many times, then answer."""
    left = [bad] * times
    return lambda _: left.pop() if left else Reply(then)


CUT = Reply(b"{}" * 50, cut_at=3)


def test_arguments_travel_flat_and_without_those_nobody_gave() -> None:
    with Endpoint(always(ADDED)) as server, RemoteMemories(server.url, token="secret") as memories:
        about = About(session="s", author="Ada", tags=("x",), source="messages:3")
        memories.add_entry("m", "raw", about=about, client_key="k")
        seen = server.seen[0]
        assert (seen.method, seen.path) == ("POST", "/api/add_entry")
        assert seen.headers["authorization"] == "Bearer secret"
        assert seen.json == {
            "memory_id": "m",
            "raw_entry": "raw",
            "client_key": "k",
            "session": "s",
            "author": "Ada",
            "tags": ["x"],
            "source": "messages:3",
        }


def test_the_address_for_mcp_clients_means_the_same_server() -> None:
    with Endpoint(always({"memories": [MEMORY], "count": 1, "applied_limit": 100})) as server:
        for url in (server.url, f"{server.url}/", f"{server.url}/mcp", f"{server.url}/mcp/"):
            with RemoteMemories(url) as memories:
                assert [one.memory_id for one in memories.memories()] == ["m"]
        assert {(one.method, one.path) for one in server.seen} == {("GET", "/api/memories?limit=100")}
        with RemoteMemories(f"{server.url}/below") as memories:
            memories.memories()
        assert server.seen[-1].path == "/below/api/memories?limit=100"


@pytest.mark.parametrize("url", ["", "127.0.0.1:8420", "ftp://x", "http://", "http://[::1", "http://x:99999"])
def test_what_is_no_address_is_said_at_once(url: str) -> None:
    with pytest.raises(BadInput, match=r"not the address of a server or a database .*http://.*postgresql://"):
        RemoteMemories(url)


@pytest.mark.parametrize("url", ["postgresq://ada:s3cret@h/y", "postgresq://h/y?password=s3cret", "ada:s3cret@h"])
def test_a_misspelt_address_of_a_database_is_shown_without_its_password(url: str) -> None:
    with pytest.raises(BadInput, match=r"h.* is not the address .*postgresql://USER@HOST/DATABASE") as caught:
        open_memory(url=url)
    assert "s3cret" not in str(caught.value)


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_TOKEN", "from outside")
    with Endpoint(always(MEMORY)) as server, RemoteMemories(server.url) as memories:
        memories.get_memory("m")
        assert server.seen[0].headers["authorization"] == "Bearer from outside"
        assert "from outside" not in repr(memories)


REFUSED = Reply({"error": {"code": "AccessDenied", "message": "no token", "hint": "send one"}}, 401)


def test_a_token_goes_only_to_the_address_it_was_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_TOKEN", "from outside")
    with Endpoint(lambda _: REFUSED) as server:
        monkeypatch.setenv("DAYPACK_URL", "https://memory.example.org")
        with open_memory(url=server.url) as memories, pytest.raises(AccessDenied, match="address in DAYPACK_URL"):
            memories.get_memory("m")
        assert "authorization" not in server.seen[-1].headers
        with RemoteMemories(server.url, token="for this one") as memories, pytest.raises(AccessDenied):
            memories.get_memory("m")
        assert server.seen[-1].headers["authorization"] == "Bearer for this one"
        monkeypatch.setenv("DAYPACK_URL", f"{server.url}/mcp")
        with open_memory(url=server.url) as memories, pytest.raises(AccessDenied):
            memories.get_memory("m")
        assert server.seen[-1].headers["authorization"] == "Bearer from outside"


def test_a_token_is_not_followed_to_another_address() -> None:
    with (
        Endpoint(always(MEMORY)) as other,
        Endpoint(lambda _: Reply(b"", 307, {"Location": f"{other.url}/api/get_memory"})) as server,
        RemoteMemories(server.url, token="secret") as memories,
    ):
        with pytest.raises(ServerFailed, match="HTTP 307"):
            memories.get_memory("m")
        assert other.seen == []


@pytest.mark.parametrize("url", ["http://memory.example.org", "http://192.0.2.7:8420", "http://127.0.0.1.example.org"])
def test_a_token_is_refused_for_an_address_where_others_could_read_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="not sent over a network without encryption") as caught:
        RemoteMemories(url, token="secret")
    assert "https" in caught.value.hint
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("DAYPACK_TOKEN", "secret")
    with pytest.raises(BadInput, match="without encryption"):
        open_memory(url=url)
    monkeypatch.delenv("DAYPACK_TOKEN")
    open_memory(url=url).close()


def test_an_address_in_a_file_gets_no_token_that_does_not_name_it() -> None:
    found = "https://elsewhere.invalid"
    for place, sent in (("", ""), (found, "secret"), ("https://memory.example.org", "")):
        environ = {"DAYPACK_TOKEN": "secret", "DAYPACK_URL": place}
        assert remote.find_token(found, environ, named=False)[0] == sent
    assert remote.find_token(found, {"DAYPACK_TOKEN": "secret"}, named=True) == ("secret", "")
    withheld = remote.find_token(found, {"DAYPACK_TOKEN": "secret"}, named=False)[1]
    assert withheld.endswith(f"set DAYPACK_URL={found} if the token is for this server")


def test_an_address_has_no_password() -> None:
    with pytest.raises(BadInput, match="has a name or a password") as caught:
        RemoteMemories("https://ada:hunter2@memory.example.org")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("TooLong", 400, TooLong),
        ("MemoryMissing", 404, MemoryMissing),
        ("KeyConflict", 409, KeyConflict),
        ("AccessDenied", 401, AccessDenied),
        ("QuotaExceeded", 403, errors.QuotaExceeded),
        ("WriteFailed", 507, errors.WriteFailed),
        ("Internal", 500, ServerFailed),
        ("Exception", 500, ServerFailed),
        ("annotations", 500, ServerFailed),
    ],
)
def test_an_error_of_the_server_is_raised_here(code: str, status: int, kind: type[DaypackError]) -> None:
    with Endpoint(refusal(code, status, "because", "do this")) as server, RemoteMemories(server.url) as memories:
        with pytest.raises(DaypackError) as caught:
            memories.get_memory("m")
        assert type(caught.value) is kind
        assert (caught.value.problem, caught.value.hint) == ("because", "do this")


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"", b"[]", b'"\xff"'])
@pytest.mark.parametrize("status", [200, 404, 500, 302])
def test_what_is_no_daypack_server_is_said(body: bytes, status: int) -> None:
    with Endpoint(always(body, status)) as server, RemoteMemories(server.url) as memories:
        with pytest.raises(ServerFailed, match="a daypack server"):
            memories.get_memory("m")
        assert len(server.seen) == 1


def test_nobody_there_is_said_with_the_command_that_helps() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerFailed, match="daypack serve"):
            RemoteMemories(url).get_memory("m")


@pytest.mark.parametrize("bad", [CUT, Reply({"error": {"code": "LockUnavailable", "message": "busy"}}, 503)])
def test_what_may_be_repeated_is_asked_again(bad: Reply) -> None:
    with Endpoint(first(bad, MEMORY, RETRY.attempts - 1)) as server, RemoteMemories(server.url) as memories:
        assert memories.get_memory("m").title == "t"
        assert len(server.seen) == RETRY.attempts
    with Endpoint(first(bad, ADDED)) as server, RemoteMemories(server.url) as memories:
        assert memories.add_entry("m", "raw", client_key="k").entry_id == "e"
        assert [one.json["client_key"] for one in server.seen] == ["k", "k"]


@pytest.mark.parametrize("bad", [CUT, Reply({"error": {"code": "LockUnavailable", "message": "busy"}}, 503)])
def test_a_write_without_a_key_is_never_sent_twice(bad: Reply) -> None:
    writes: list[Callable[[RemoteMemories], object]] = [
        lambda memories: memories.add_entry("m", "raw"),
        lambda memories: memories.put_context("m", "text"),
        lambda memories: memories.create_memory("t"),
        lambda memories: memories.await_consistency(),
    ]
    for write in writes:
        with Endpoint(always(bad.body, bad.status, cut_at=bad.cut_at)) as server:
            with RemoteMemories(server.url) as memories, pytest.raises(DaypackError):
                write(memories)
            assert len(server.seen) == 1


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.05)
    with (
        Endpoint(always(MEMORY, delay_seconds=0.5)) as server,
        pytest.raises(ServerFailed, match="no response in time"),
    ):
        RemoteMemories(server.url).create_memory("t")


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_BODY_BYTES", 10)
    with Endpoint(always(MEMORY)) as server, pytest.raises(ServerFailed, match="more than 10 bytes"):
        RemoteMemories(server.url).get_memory("m")


def test_a_named_user_must_be_the_one_the_server_knows() -> None:
    def answer(seen: Seen) -> Reply:
        return Reply({"user_id": "ada", "name": "Ada"} if seen.path == "/api/get_user" else MEMORY)

    with Endpoint(answer) as server:
        with RemoteMemories(server.url, user="ada") as memories:
            assert memories.get_memory("m").memory_id == "m"
            memories.get_memory("m")
            assert [one.path for one in server.seen].count("/api/get_user") == 1
        with RemoteMemories(server.url, user="local") as memories:
            assert memories.get_memory("m").memory_id == "m"
        del server.seen[:]
        with RemoteMemories(server.url, user="bob") as memories:
            for _ in range(2):
                with pytest.raises(AccessDenied, match="'ada'"):
                    memories.add_entry("m", "raw")
            assert {one.path for one in server.seen} == {"/api/get_user"}


def test_what_cannot_be_sent_is_refused_here() -> None:
    with Endpoint(always(ADDED)) as server, RemoteMemories(server.url) as memories:
        with pytest.raises(BadInput):
            memories.add_entry("m", "\ud800")
        with pytest.raises(BadInput):
            memories.put_context("m", object())
        assert server.seen == []


class Closing:
    """A server that promises to keep connections and closes each after its first answer."""

    def __init__(self, body: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.asked = 0
        self._closed = threading.Semaphore(0)
        self._answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                with line:
                    if line.recv(65536):
                        self.asked += 1
                    line.sendall(self._answer)
                self._closed.release()

    def wait_closed(self) -> None:
        assert self._closed.acquire(timeout=20)

    def close(self) -> None:
        self._listening.close()


def test_a_connection_the_server_closed_meanwhile_is_not_used_again() -> None:
    server = Closing(json.dumps(ADDED).encode())
    with RemoteMemories(server.url) as memories:
        for times in range(1, 4):
            assert memories.add_entry("m", "raw without a key").entry_id == "e"
            server.wait_closed()
            assert server.asked == times
    server.close()


# With a server that runs


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_server(str(tmp_path_factory.mktemp("remote") / "home")) as server:
        yield server


@pytest.mark.requirement("S2-T1", "S2-T2", "S2-T3", "S2-T4", "S2-T5", "S2-T6", "S2-T7", "S2-T8", "S2-T9")
def test_the_nine_answer_from_afar_as_they_do_at_home(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")  # as the server's is
    about = About(
        session="s", role="user", author="Ada", at="2026-05-01T10:00:00Z", tags=("a", "b"), source="messages:3"
    )
    with open_memory(home=server.home) as near, open_memory(url=server.url) as far:
        made = far.create_memory("Afar", "project", "from another machine")
        assert near.get_memory(made.memory_id).title == made.title == "Afar"
        memory_id = made.memory_id
        added = far.add_entry(memory_id, "Ada booked the quay.", about=about, client_key="k")
        again = far.add_entry(memory_id, "Ada booked the quay.", about={"session": "s", **_rest(about)}, client_key="k")
        assert (again.entry_id, again.replayed) == (added.entry_id, True)
        far.add_entry(memory_id, "Ben paid 4,200 euros.", "Ben paid.")
        assert far.put_context(memory_id, "# Quay").version == 2
        assert far.put_context(memory_id, {}).content == near.get_context(memory_id).content
        assert far.await_consistency(memory_id, added.token, 20_000).status == "consistent"
        assert far.list_entries(memory_id, "1") == near.list_entries(memory_id, 1)
        assert far.get_context(memory_id) == near.get_context(memory_id)
        assert far.get_memory(memory_id) == near.get_memory(memory_id)
        assert far.get_user() == near.get_user()
        assert far.memories() == near.memories()
        assert far.list_memories(1) == near.list_memories("1")
        assert far.list_memories(after=memory_id) == near.list_memories(after=memory_id)
        with pytest.raises(MemoryMissing):
            far.list_memories(after="0" * 32)
        with pytest.raises(BadInput, match="limit is 0"):
            far.list_memories(0)
        for query, where in (("quay", None), ("euros", Where(since="2026-01-01")), ("booked", {"author": "Ada"})):
            assert far.search_memories(memory_id, query, 5, explain=True, where=where) == near.search_memories(
                memory_id, query, 5, explain=True, where=where
            )
        with pytest.raises(TooLong, match="5,001"):
            far.put_context(memory_id, "x" * 5001)
        assert far.await_consistency().status == "failed"
        with pytest.raises(MemoryMissing):
            far.get_memory("0" * 32)
        with pytest.raises(KeyConflict):
            far.add_entry(memory_id, "Another text.", client_key="k")
        position = Position(near.backend.store.store_id, memory_id, 1000, 0)
        never = near.backend.positions.write_token(near.user, position)
        assert far.await_consistency(memory_id, never, 50).status == "timeout"


def test_everything_on_the_type_of_a_remote_memory_works_against_a_server(server: Server) -> None:
    with open_memory(url=server.url) as memories:
        memory_id = memories.create_memory("Whole").memory_id
        tried: dict[str, object] = {
            "create_memory": memories.create_memory("Other"),
            "get_memory": memories.get_memory(memory_id),
            "add_entry": memories.add_entry(memory_id, "The quay is booked."),
            "list_entries": memories.list_entries(memory_id),
            "get_context": memories.get_context(memory_id),
            "put_context": memories.put_context(memory_id, "# Quay"),
            "await_consistency": memories.await_consistency(memory_id),
            "get_user": memories.get_user(),
            "search_memories": memories.search_memories(memory_id, "quay"),
            "memories": memories.memories(),
            "list_memories": memories.list_memories(),
            "find_memory": memories.find_memory("Whole"),
            "with_default": memories.with_default(GetUser()),
            "default_memory": memories.default_memory == "",
            "default_origin": memories.default_origin == "DAYPACK_MEMORY",
            "find_default": memories.find_default is None,
            "deadline": memories.deadline is NO_DEADLINE,
            "flush_every": memories.flush_every,
            "call": memories.call(GetUser()),
            "remote": memories.remote,
            "place": memories.place,
            "within": memories.within(Deadline.after(60)).get_user(),
            "close": memories.close() or True,
        }
        assert tried.keys() == {name for name in dir(RemoteMemories) if not name.startswith("_")}
        assert all(tried.values())


def test_the_keeper_of_a_remote_memory_writes_its_document(server: Server) -> None:
    with open_memory(url=server.url) as memories:
        memory_id = memories.create_memory("Kept").memory_id
        with Keeper(memories, memory_id, flush_every=memories.flush_every) as keeper:
            keeper.observe("user", "My name is Ada and I live in Lisbon.", author="Ada")
        assert "Ada" in memories.get_context(memory_id).content


def _rest(about: About) -> dict[str, Any]:
    return {name: getattr(about, name) for name in ("role", "author", "at", "tags", "source")}


def test_threads_share_one_and_each_keeps_its_connection(server: Server) -> None:
    with RemoteMemories(server.url) as memories:
        memory_id = memories.create_memory("threads").memory_id

        def add(thread: int) -> list[str]:
            return [memories.add_entry(memory_id, f"entry{thread}x{at}").entry_id for at in range(25)]

        with ThreadPoolExecutor(8) as pool:
            ids = {one for added in pool.map(add, range(8)) for one in added}
        assert len(ids) == 200
        assert memories.await_consistency(memory_id, timeout_ms=60_000).status == "consistent"
        assert memories.search_memories(memory_id, "entry7x24", 1).entries[0].raw_entry == "entry7x24"


def test_a_child_process_opens_its_own_connection(server: Server) -> None:
    with RemoteMemories(server.url) as memories:
        memory_id = memories.create_memory("fork").memory_id
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if [memories.add_entry(memory_id, "child").seq for _ in range(20)] else 1
            finally:
                os._exit(code)
        for _ in range(20):  # on one shared connection, answers would be mixed up
            assert memories.get_memory(memory_id).title == "fork"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memories.add_entry(memory_id, "parent").seq == 21


def test_a_closed_one_opens_again_when_it_is_used(server: Server) -> None:
    memories = RemoteMemories(server.url)
    memory_id = memories.create_memory("closing").memory_id
    memories.close()
    assert memories.get_memory(memory_id).memory_id == memory_id
    memories.close()
