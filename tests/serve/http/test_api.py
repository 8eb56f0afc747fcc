"""The JSON API: the nine tools, their results and their refusals, through a server that runs."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import msgspec
import pytest
from memory_server import Server

from daypack.memory.tools import open_memory
from daypack.types import memory as types
from daypack.types.memory import PLACEHOLDER

MISSING = "0" * 32
OWN = "one that is there"
NINE = {
    "create_memory",
    "get_memory",
    "add_entry",
    "list_entries",
    "get_context",
    "put_context",
    "await_consistency",
    "get_user",
    "search_memories",
}


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    with server.client() as client:
        return client.get("/openapi.json").json()


def new_memory(server: Server, title: str = "work") -> str:
    answered = server.call("create_memory", title=title)
    assert answered.status_code == 200, answered.text
    return answered.json()["memory_id"]


@pytest.mark.requirement("G18")
def test_results_have_no_secrets(server: Server) -> None:
    secret = "ghp_" + "0aB1" * 9
    memory_id = new_memory(server, "keys")
    about = {"author": secret, "tags": [secret, "plain"], "session": secret}
    added = server.call("add_entry", memory_id=memory_id, raw_entry=f"the key: {secret}", metadata=about)
    assert added.status_code == 200, added.text
    server.call("put_context", memory_id=memory_id, content=f"- the key: {secret}")
    titled = server.call("create_memory", title=secret)
    with server.client() as client:
        answers = [
            added,
            titled,
            server.call("list_entries", memory_id=memory_id),
            server.call("search_memories", memory_id=memory_id, query="the key"),
            server.call("get_context", memory_id=memory_id),
            server.call("get_memory", memory_id=titled.json()["memory_id"]),
            client.get("/api/memories"),
        ]
    for answered in answers:
        assert answered.status_code == 200
        assert secret not in answered.text
    assert answers[2].json()["entries"][0]["tags"] == ["[redacted:github-token]", "plain"]


@pytest.mark.requirement("S2-T1", "S2-T2", "S2-T3", "S2-T4", "S2-T5", "S2-T6", "S2-T7", "S2-T8", "S2-T9")
def test_each_of_the_nine_answers_with_its_type_and_its_schema(server: Server, described: dict[str, Any]) -> None:
    seen: set[str] = set()

    def call(tool: str, kind: Any, **arguments: Any) -> Any:
        answered = server.call(tool, **arguments)
        assert answered.status_code == 200, answered.text
        assert answered.headers["content-type"] == "application/json"
        good = described["paths"][f"/api/{tool}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answered.json(), described | good)
        seen.add(tool)
        return msgspec.json.decode(answered.content, type=kind)

    memory: types.Memory = call("create_memory", types.Memory, title="Nine", memory_type="project", description="all")
    memory_id = memory.memory_id
    assert call("get_memory", types.Memory, memory_id=memory_id).title == "Nine"
    assert call("get_context", types.ContextDocument, memory_id=memory_id).content == PLACEHOLDER
    raw = "Ada moved the meeting with Nadia to 3 May 2026."
    about = {"session": "s1", "role": "user", "author": "Ada", "at": "2026-04-01T10:00:00Z", "tags": ["plan"]}
    added: types.Added = call("add_entry", types.Added, memory_id=memory_id, raw_entry=raw, summary="moved", **about)
    call("add_entry", types.Added, memory_id=memory_id, raw_entry="Chen 喜欢爵士乐。", client_key="k1")
    page: types.EntryPage = call("list_entries", types.EntryPage, memory_id=memory_id, limit="1")
    assert (page.count, page.entries[0].raw_entry) == (1, "Chen 喜欢爵士乐。")
    assert call("put_context", types.ContextDocument, memory_id=memory_id, content="# Plans").version == 2
    held: types.Consistency = call("await_consistency", types.Consistency, memory_id=memory_id, token=added.token)
    assert held.status == "consistent"
    found: types.SearchResult = call(
        "search_memories", types.SearchResult, memory_id=memory_id, query="meeting with Nadia", explain=True
    )
    assert found.entries[0].raw_entry == raw
    assert (found.entries[0].author, found.entries[0].tags) == ("Ada", ("plan",))
    assert found.entries[0].score_parts
    assert found.latest_context == "# Plans"
    assert call("search_memories", types.SearchResult, memory_id=memory_id, query="爵士乐").entries[0].seq == 2
    assert call("get_user", types.User).user_id == "ada"
    assert seen == NINE


@pytest.mark.requirement("S2-T9")
def test_a_search_says_that_nothing_is_relevant_and_what_is_superseded(server: Server) -> None:
    memory_id = new_memory(server)
    texts = ("The staging port is 5432.", "The staging port is 5433 now.")
    old, new = (server.call("add_entry", memory_id=memory_id, raw_entry=text).json()["entry_id"] for text in texts)
    found = server.call("search_memories", memory_id=memory_id, query="Which port does staging have?").json()
    assert [(hit["entry_id"], hit.get("superseded_by")) for hit in found["entries"]] == [(new, None), (old, new)]
    foreign = server.call("search_memories", memory_id=memory_id, query="Which museum does Ingrid like?").json()
    assert (foreign["count"], foreign["notes"]) == (0, [types.NOTHING_RELEVANT])


def test_the_callers_own_memories_are_listed(server: Server) -> None:
    made = new_memory(server, "listed")
    with server.client() as client:
        listed = msgspec.json.decode(client.get("/api/memories").content, type=types.MemoryPage)
        assert client.post("/api/memories", json={}).status_code == 404
    assert made in {one.memory_id for one in listed.memories}


def test_the_list_of_memories_has_pages_as_described(server: Server, described: dict[str, Any]) -> None:
    made = [new_memory(server, f"page {at}") for at in range(3)]
    operation = described["paths"]["/api/memories"]["get"]
    assert (operation["operationId"], [one["name"] for one in operation["parameters"]]) == (
        "list_memories",
        ["limit", "after"],
    )
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    seen: list[str] = []
    with server.client() as client:
        after: str | None = ""
        while after is not None:
            page = client.get("/api/memories", params={"limit": 2} | ({"after": after} if after else {})).json()
            jsonschema.validate(page, described | schema)
            assert page["count"] == len(page["memories"]) <= page["applied_limit"] == 2
            seen += [one["memory_id"] for one in page["memories"]]
            after = page["next_after"]
        assert len(seen) == len(set(seen))
        assert seen[-3:] == made
        assert client.get("/api/memories", params={"limit": 1000}).json()["applied_limit"] == 100
        for params in ({"limit": "0"}, {"limit": "x"}, {"page": "2"}):
            refused = client.get("/api/memories", params=params)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "BadInput")
        assert client.get("/api/memories", params={"after": MISSING}).status_code == 404


def test_the_description_of_a_page_names_damaged_memories(described: dict[str, Any]) -> None:
    page = described["paths"]["/api/memories"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "damaged" in page["properties"]


def test_the_description_is_valid_openapi_and_names_every_tool(described: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    OpenAPIV31SpecValidator(described).validate()
    assert set(described["paths"]) == {f"/api/{name}" for name in NINE} | {
        "/api/memories",
        "/health",
        "/health/live",
        "/health/ready",
        "/metrics",
    }
    for tool in NINE:
        asked = described["paths"][f"/api/{tool}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator.check_schema(asked)
        assert asked["additionalProperties"] is False


def test_health_says_ok_and_nothing_else(server: Server) -> None:
    with server.client() as client:
        answered = client.get("/health")
    assert (answered.status_code, answered.content) == (200, b'{"status":"ok"}')
    assert "server" not in answered.headers


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("get_memory", {"memory_id": MISSING}, 404, "MemoryMissing"),
        ("get_memory", {"memory_id": "../../etc/passwd"}, 404, "MemoryMissing"),
        ("get_memory", {}, 400, "BadInput"),
        ("get_memory", {"memory_id": 7}, 400, "BadInput"),
        ("get_memory", {"memory_id": MISSING, "user": "bob"}, 400, "BadInput"),
        ("create_memory", {"title": "x" * 51}, 400, "TooLong"),
        ("create_memory", {"title": ""}, 400, "BadInput"),
        ("list_entries", {"memory_id": OWN, "limit": [1]}, 400, "BadInput"),
        ("await_consistency", {"token": "foreign"}, 400, "BadInput"),
        ("search_memories", {"memory_id": OWN, "query": "x", "top_k": 101}, 400, "BadInput"),
        ("no_such_tool", {}, 404, "NotFound"),
        ("erase_memory", {"memory_id": MISSING}, 404, "NotFound"),
        ("recall", {"id": "msg-1"}, 404, "NotFound"),
        ("__class__", {}, 404, "NotFound"),
    ],
)
def test_a_refusal_has_its_status_and_its_name(
    server: Server, tool: str, arguments: dict[str, Any], status: int, code: str
) -> None:
    if arguments.get("memory_id") == OWN:
        arguments = arguments | {"memory_id": new_memory(server)}
    answered = server.call(tool, **arguments)
    assert answered.status_code == status, answered.text
    error = answered.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert server.home not in answered.text


@pytest.mark.requirement("T7", "X45")
def test_caps_are_counted_in_characters_and_the_length_seen_is_told(server: Server) -> None:
    memory_id = new_memory(server, "caps")
    for unit in ("x", "界", "😀"):
        for length, status in ((4999, 200), (5000, 200), (5001, 400)):
            answered = server.call("put_context", memory_id=memory_id, content=unit * length)
            assert answered.status_code == status
            assert status == 200 or "5,001" in answered.json()["error"]["message"]
        for length, status in ((511, 200), (512, 200), (513, 400)):
            answered = server.call("add_entry", memory_id=memory_id, raw_entry="r", summary=unit * length)
            assert answered.status_code == status
            assert status == 200 or "513" in answered.json()["error"]["message"]


def test_a_client_key_stands_for_one_payload(server: Server) -> None:
    memory_id = new_memory(server, "keys")
    first = server.call("add_entry", memory_id=memory_id, raw_entry="once", client_key="k").json()
    again = server.call("add_entry", memory_id=memory_id, raw_entry="once", client_key="k").json()
    assert (again["entry_id"], again["replayed"]) == (first["entry_id"], True)
    other = server.call("add_entry", memory_id=memory_id, raw_entry="twice", client_key="k")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "KeyConflict")


@pytest.mark.requirement("G13")
def test_a_write_that_failed_is_reported_by_the_next_barrier_once(server: Server) -> None:
    memory_id = new_memory(server, "failing")
    server.call("await_consistency")  # reports what other tests did
    server.call("add_entry", memory_id=memory_id, raw_entry="x" * 20_000, client_key="long")
    told = server.call("await_consistency", memory_id=memory_id).json()
    assert (told["status"], told["failed_writes"][0]["client_key"]) == ("failed", "long")
    assert server.call("await_consistency", memory_id=memory_id).json()["status"] == "consistent"


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"7"])
def test_arguments_are_one_object(server: Server, body: bytes) -> None:
    with server.client() as client:
        answered = client.post("/api/get_user", content=body, headers={"Content-Type": "application/json"})
    assert (answered.status_code, answered.json()["error"]["code"]) == (400, "BadInput")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api", 404),
        ("GET", "/mcp/", 404),
        ("GET", "/health/", 404),
        ("GET", "/docs", 404),
        ("GET", "/api/get_user", 405),
        ("DELETE", "/api/get_user", 405),
        ("OPTIONS", "/api/get_user", 405),
        ("POST", "/api/get_user/more", 404),
        ("GET", "/..%2f..%2fetc/passwd", 404),
        ("GET", "/mcp", 405),
        ("DELETE", "/mcp", 405),
        ("OPTIONS", "/mcp", 405),
        ("GET", "/x//health", 404),
    ],
)
def test_everything_else_is_answered_in_json(server: Server, method: str, path: str, status: int) -> None:
    with server.client() as client:
        answered = client.post(path, json={}) if method == "POST" else client.request(method, path)
    assert answered.status_code == status
    assert answered.json()["error"]["message"]
    assert answered.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answered.headers


@pytest.mark.requirement("G13")
def test_what_sixteen_threads_add_is_there_and_searchable_after_the_barrier(server: Server) -> None:
    memory_id = new_memory(server, "crowd")
    server.call("await_consistency")  # reports what other tests did

    def add(thread: int) -> list[str]:
        with server.client() as client:
            given = [f"thread{thread} said number{thread * 50 + at}" for at in range(50)]
            answers = [client.post("/api/add_entry", json={"memory_id": memory_id, "raw_entry": raw}) for raw in given]
        assert {one.status_code for one in answers} == {200}
        return [one.json()["entry_id"] for one in answers]

    with ThreadPoolExecutor(16) as pool:
        ids = [entry_id for added in pool.map(add, range(16)) for entry_id in added]
    assert len(set(ids)) == 800
    held = server.call("await_consistency", memory_id=memory_id, timeout_ms=60_000).json()
    assert (held["status"], held["search_index"]) == ("consistent", True)
    assert server.call("get_memory", memory_id=memory_id).json()["stats"]["entries"] == 800
    with server.client() as client:
        for number in (0, 399, 799):
            found = client.post(
                "/api/search_memories", json={"memory_id": memory_id, "query": f"number{number}", "top_k": 1}
            )
            assert found.json()["entries"][0]["raw_entry"].endswith(f"number{number}")


def test_those_who_wait_for_a_barrier_keep_nobody_from_working(server: Server) -> None:
    memory_id = new_memory(server, "waiting")
    server.call("await_consistency")  # reports what other tests did
    token = server.call("add_entry", memory_id=memory_id, raw_entry="x").json()["token"]
    assert server.call("await_consistency", token=token, level="durable").json()["status"] == "consistent"
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            assert server.call("await_consistency", memory_id=memory_id, timeout_ms=1000).status_code == 200

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(work) for _ in range(8)]
        try:
            assert {server.call("get_user").status_code for _ in range(10)} == {200}
        finally:
            done.set()
        for one in waiting:
            one.result()


def test_a_connection_is_kept_for_the_next_call_also_after_a_refusal(server: Server) -> None:
    place = urlsplit(server.url)
    line = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    line.connect()
    own = line.sock
    for body, status in (("{}", 200), ('{"a":1}', 400), ("{", 400), ("{}", 200)):
        line.request("POST", "/api/get_user", body, {"Content-Type": "application/json"})
        answered = line.getresponse()
        assert (answered.status, json.loads(answered.read()) != {}) == (status, True)
    assert line.sock is own
    line.close()


@pytest.mark.parametrize("escape", ["\\u0000", "\\ufffe", "\\uffff", "\\ufdd0", "\\ud83f\\udfff", "\\ud800"])
def test_what_is_no_character_is_refused_in_a_document(server: Server, escape: str) -> None:
    memory_id = new_memory(server)
    body = f'{{"memory_id": "{memory_id}", "content": "# A{escape}"}}'
    with server.client() as client:
        answered = client.post("/api/put_context", content=body, headers={"content-type": "application/json"})
    error = answered.json()["error"]
    assert (answered.status_code, error["code"]) == (400, "BadInput")
    assert "surrogate" in error["message"] or "content has U+" in error["message"]
    assert server.call("get_context", memory_id=memory_id).json()["version"] == 1


def test_a_path_or_method_that_is_not_there_says_what_to_call(server: Server) -> None:
    with server.client() as client:
        start = client.get("/")
        assert (start.status_code, start.json()["name"]) == (200, "daypack")
        assert {"/mcp", "/api/TOOL", "/openapi.json"} <= start.json()["paths"].keys()
        for method, path, status, hint in (
            ("GET", "/api/search_memories", 405, "send POST /api/search_memories"),
            ("GET", "/mcp", 405, "send POST /mcp"),
            ("DELETE", "/mcp", 405, "no sessions to delete"),
            ("GET", "/mcp/", 404, "the MCP endpoint is /mcp"),
            ("GET", "/api", 404, "/api/search_memories"),
            ("GET", "/elsewhere", 404, "GET / lists them"),
        ):
            refused = client.request(method, path)
            assert refused.status_code == status, path
            assert hint in refused.json()["error"]["hint"]


def test_pages_of_memories_continue_after_one_that_was_deleted_meanwhile(server: Server) -> None:
    with open_memory(home=server.home, user="ada") as memories, server.client() as client:
        made = [memories.create_memory(f"page {number}").memory_id for number in range(5)]
        first = made[1]
        memories.delete_memory(first)
        page = client.get("/api/memories", params={"after": first})
        assert [memory["memory_id"] for memory in page.json()["memories"]] == made[2:]
        memories.erase_memory(first)
        assert client.get("/api/memories", params={"after": first}).status_code == 404
