"""Fifty users of a database who reach for each other's memories: with ids, with texts and with forged tokens.

Every attempt is answered as if what it reaches for did not exist. Afterwards everybody has all they had.
"""

import base64
import hashlib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.many_workers.fifty_users import Person, Town
from memory.many_workers.hostile_texts import TEXTS, aimed
from memory.many_workers.port_attempts import Aim, load_attempt, methods, outcome, port_attempts
from memory.store.stores import new_entry
from memory_server import read_log, start_server
from tenants_server import Connection, attempts

from daypack.errors import AccessDenied, BadInput, NotFound
from daypack.memory.requests import REQUESTS, AddEntry, Request
from daypack.memory.store.port import NewDocument, NewMemory, Profile
from daypack.memory.tools import Memories
from daypack.types.memory import About, Entry, Where

pytestmark = postgres_server.needs_postgres
_BY_TOOL = {request.tool: request for request in REQUESTS}
_REFUSALS = ("token is not a consistency token of this user", "token belongs to a different store")
_ABOUT = ("session", "role", "author", "at", "source")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        url = postgres_server.new_database()
        town = Town(url, tmp_path_factory.mktemp("town"), 21)
        town.check_people()
        yield town
        town.close()
        postgres_server.drop_database(url)


@pytest.fixture(autouse=True)
def _everybody_is_well(town: Town, campaign: Campaign) -> Iterator[None]:
    town.chance.seed(campaign.seed)
    yield
    town.check_people()
    town.check_records()


def _facts(other: Person) -> dict[str, object]:
    return {
        "victim": other.name,
        "bait": other.bait,
        "number": other.number,
        "memory": other.memory_id,
        "entry": other.entry_id,
    }


def test_no_method_of_the_store_reaches_another_user(town: Town, campaign: Campaign) -> None:
    first = town.people[0]
    aims = [Aim.at_nobody(town.chance, first) for _ in range(2)]
    absent, again = (
        [outcome(aim, lambda call=call: call(town.store)) for _, call in port_attempts(first, aim)] for aim in aims
    )
    assert absent == again
    names = [name for name, _ in port_attempts(first, aims[0])]
    assert {*names, "load"} == methods()
    for number in range(campaign.size("attacks", 1_200)):
        me, other = town.two()
        at = number % (len(names) + 1)
        if at == len(names):
            made = load_attempt(me, Aim.at(other))(town.store)
            assert isinstance(made, msgspec.Struct)
            town.check_answer(me, made)
            assert other.memory_id not in repr(made)
            continue
        aim = Aim.at(other)
        _, call = port_attempts(me, aim)[at]
        found = outcome(aim, lambda call=call: call(town.store))
        assert found == absent[at], (names[at], me, other)
        town.check_answer(me, found)


def test_no_tool_reaches_another_user(town: Town, campaign: Campaign) -> None:
    first = town.people[0]
    nobody = Aim.at_nobody(town.chance, first)
    forged = first.barrier[::-1]  # signed by nobody

    def tried(me: Person, aim: Aim, barrier: str) -> list[tuple[str, str]]:
        own = town.memories(me)
        calls = attempts(me.scratch_id, aim.memory_id, aim.entry_id, barrier)
        return [outcome(aim, lambda tool=tool, value=value: _call(own, tool, value)) for tool, value in calls]

    absent = tried(first, nobody, forged)
    ran, size = 0, campaign.size("attacks", 800)
    while ran < size:
        ran += len(absent)
        me, other = town.two()
        found = tried(me, Aim.at(other), other.barrier)
        assert found == absent
        own = town.memories(me)
        assert {memory.memory_id for memory in own.memories()}.isdisjoint({other.memory_id, other.scratch_id})
        for cursor in (other.memory_id, nobody.memory_id):
            with pytest.raises(NotFound, match="there is no such memory"):
                own.list_memories(after=cursor)
        town.check_answer(me, found, own.list_memories(), own.get_user())


def _call(own: Memories, tool: str, arguments: dict[str, Any]) -> Any:
    try:
        request = msgspec.convert(arguments, _BY_TOOL[tool], strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(str(error), operation=tool) from error
    return own.call(request)


def _text_fields() -> list[tuple[type[Request[Any]], str, bool]]:
    """Return every field of a request that is a text, or a list of texts."""
    found: list[tuple[type[Request[Any]], str, bool]] = []
    for request in REQUESTS:
        for field in msgspec.structs.fields(request):
            hints = set(_parts(field.type))
            if hints & {str, Any, Literal}:
                found.append((request, field.name, tuple in hints))
    return found


def _parts(hint: Any) -> Iterator[Any]:
    """Yield the types that a type is made of."""
    yield typing.get_origin(hint) or hint
    for part in typing.get_args(hint):
        yield from _parts(part)


def _required(tool: str, me: Person) -> dict[str, Any]:
    return {
        "create_memory": {"title": "t"},
        "get_user": {},
        "add_entry": {"memory_id": me.scratch_id, "raw_entry": "the vault opens", "summary": "s"},
        "put_context": {"memory_id": me.scratch_id, "content": "c"},
        "search_memories": {"memory_id": me.memory_id, "query": "vault", "top_k": 100, "explain": True},
        "await_consistency": {"timeout_ms": 0},
    }.get(tool, {"memory_id": me.memory_id})


def test_a_hostile_text_in_any_field_of_a_tool_is_only_a_text(town: Town, campaign: Campaign) -> None:
    fields = _text_fields()
    assert {request.tool for request, _, _ in fields} == set(_BY_TOOL) - {"get_user"}
    assert len(fields) > 25
    for _ in range(campaign.size("attacks", 1_400)):
        me, other = town.two()
        request, name, many = town.chance.choice(fields)
        text = aimed(town.chance.choice(TEXTS), **_facts(other))
        arguments = _required(request.tool, me) | {name: (text, "tag") if many else text}
        own = town.memories(me)
        try:
            answer = own.call(request(**arguments))
        except (BadInput, NotFound) as error:
            town.check_answer(me, str(error))
            continue
        town.check_answer(me, answer)
        if request is AddEntry and not answer.replayed:
            (stored,) = own.list_entries(me.scratch_id, 1).entries
            assert getattr(stored, name, text) == (arguments[name] or None), (name, text)
        elif request.tool == "put_context":
            assert own.get_context(me.scratch_id).content == answer.content


def test_a_hostile_text_in_any_field_of_the_store_is_only_a_text(town: Town, campaign: Campaign) -> None:
    """Below the limits of the tools: nothing but the store itself treats the texts."""
    store, names = town.store, (*_ABOUT, "raw", "summary", "tag", "key", "title", "document", "where", "user", "id")
    for _ in range(campaign.size("attacks", 600)):
        me, other = town.two()
        name = town.chance.choice(names)
        text = aimed(town.chance.choice(TEXTS), **_facts(other))[:2_000]
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-8", "replace").decode()
        if name == "where":
            for where in (Where(session=text), Where(role=text), Where(author=text), Where(tags=(text,))):
                found = store.find(me.name, me.memory_id, where)
                assert found == frozenset() or me.session == text
        elif name == "user":
            _reach_as(town, text, other)
        elif name == "id":
            for call in (store.memory, store.newest, store.document):
                with pytest.raises(NotFound):
                    call(me.name, text if text not in (other.memory_id,) else text + "0")
            with pytest.raises(NotFound):
                store.seq_of(me.name, me.memory_id, text)
        elif name == "title":
            new = NewMemory(title=text, memory_type=text, description=text)
            made = store.load(me.name, new, (NewDocument(text),), ())
            assert (made.title, made.memory_type, made.description) == (text, text, text)
            store.delete(me.name, made.memory_id)
        elif name == "document":
            assert store.put_document(me.name, me.scratch_id, text).content == text
            assert store.document(me.name, me.scratch_id).content == text
        elif name == "key":
            key = f"{text}{town.chance.random()}"
            [added] = store.add(me.name, me.scratch_id, [new_entry("r", client_key=key)])
            stored = store.find_key(me.name, me.scratch_id, key)
            assert stored is not None
            assert stored.entry_id == added.entry_id
        else:
            about: dict[str, Any] = {name: text} if name in _ABOUT else {}
            tags = (text,) if name == "tag" and text and "\n" not in text else ()
            raw, summary = (text if name == field else "r" for field in ("raw", "summary"))
            [added] = store.add(me.name, me.scratch_id, [new_entry(raw, summary, tags=tags, **about)])
            [stored] = store.pick(me.name, me.scratch_id, [added.seq]).values()
            assert isinstance(stored, Entry)
            assert (stored.raw_entry, stored.summary) == (raw, summary)
            expected = About(tags=tags, **about)
            assert all(getattr(stored, field) == getattr(expected, field) for field in (*_ABOUT, "tags"))
            if tags:
                assert added.seq in store.find(me.name, me.scratch_id, Where(tags=tags))


def _reach_as(town: Town, name: str, other: Person) -> None:
    """A user with any name has nothing of another; a name that cannot be one is refused without a word about others."""
    if name == other.name:
        return
    store = town.store
    with pytest.raises(NotFound):
        store.memory(name, other.memory_id)
    assert name in {person.name for person in town.people} or store.memories(name) == ()
    assert name in {person.name for person in town.people} or store.accounts.tokens(name) == ()
    try:
        Memories(town.backend, name)
    except BadInput:
        return
    profile = store.accounts.put(name, Profile(name=name[:50]))
    assert profile.user_id == name
    town.check_answer(None, profile, store.accounts.find(name))


def _forgeries(town: Town, me: Person, other: Person) -> Iterator[str]:
    """Yield consistency tokens that nobody gave to this user."""
    own, foreign = (base64.urlsafe_b64decode(one.barrier + "==") for one in (me, other))

    def text(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    bit = town.chance.randrange(8 * len(own))
    flipped = bytearray(own)
    flipped[bit // 8] ^= 1 << bit % 8
    log = slice(-24, -16)
    yield text(bytes(flipped))
    yield other.barrier
    yield text(foreign[:-16] + own[-16:])
    yield text(own[:-16] + foreign[-16:])
    yield text(own[:9] + foreign[9:25] + own[25:])  # the memory of another
    yield text(own[: log.start] + bytes(8) + own[-16:])  # no position of the log
    yield text(own[: log.start] + b"\xff" * 8 + own[-16:])
    yield text(b"\x02" + own[1 : log.start] + own[-16:])  # of a version without a position
    yield text(b"\x02" + own[1:])
    yield text(b"\x04" + own[1:])
    yield text(own[:25] + bytes(8) + own[33:])  # any write
    yield me.barrier + "A"
    yield me.barrier[:-1]
    yield me.barrier.swapcase()
    yield ""
    key = hashlib.sha256(b"").digest()
    yield text(own[:-16] + hashlib.blake2b(own[:-16] + me.name.encode(), key=key, digest_size=16).digest())


def test_no_forged_consistency_token_is_taken(town: Town, campaign: Campaign) -> None:
    ran, size = 0, campaign.size("attacks", 400)
    while ran < size:
        me, other = town.two()
        own = town.memories(me)
        own.await_consistency(timeout_ms=0)  # reports what failed before
        for token in _forgeries(town, me, other):
            ran += 1
            with pytest.raises(BadInput) as waiting:
                own.await_consistency(token=token, timeout_ms=0)
            with pytest.raises(BadInput) as reading:
                own.since(token)
            assert waiting.value.problem == reading.value.problem
            assert waiting.value.problem in _REFUSALS
        assert own.await_consistency(token=me.barrier, level="visible").status == "consistent"


def test_no_forged_bearer_token_is_taken(town: Town, campaign: Campaign) -> None:
    users = town.memories(town.people[0]).users
    tokens = {person.name: users.new_token(person.name) for person in town.people[:10]}
    refusals: set[str] = set()
    for number in range(campaign.size("attacks", 300)):
        _, other = town.two()
        name, (secret, token) = town.chance.choice(list(tokens.items()))
        at = town.chance.randrange(len(secret))
        changed = chr(ord(secret[at]) ^ 1 << town.chance.randrange(7))
        forged = [
            secret[:at] + changed + secret[at + 1 :],
            secret + town.chance.choice(TEXTS),
            secret[:at] + "\x00" + secret[at:],
            token.token_id,
            hashlib.sha256(secret.encode()).hexdigest(),
            "dp_" + aimed(town.chance.choice(TEXTS), **_facts(other)),
            name,
            secret.swapcase(),
        ][number % 8]
        if forged == secret:
            continue
        with pytest.raises(AccessDenied) as raised:
            users.check_token(forged)
        refusals.add(str(raised.value))
        assert users.check_token(secret).user == name
    assert len(refusals) == 1


def test_no_request_to_a_server_reaches_another_user(town: Town, campaign: Campaign, tmp_path: Path) -> None:
    people = town.chance.sample(town.people, 10)
    users = town.memories(people[0]).users
    bearers = {person.name: users.new_token(person.name).secret for person in people}
    log = tmp_path / "log"
    before = f"import os; os.dup2(os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT), 2)"
    options = ("--store", town.url, "--user", people[0].name, "--require-token", "--rate", "0", "--bad-tokens", "0")
    ran, size = 0, campaign.size("attacks", 1_000)
    with start_server(str(tmp_path / "home"), *options, "--log-level", "debug", before=before, quiet=False) as server:
        lines = {person.name: Connection(server, bearers[person.name]) for person in people}
        first, nobody = people[0], Aim.at_nobody(town.chance, people[0])
        line = lines[first.name]
        calls = attempts(first.scratch_id, nobody.memory_id, nobody.entry_id, first.barrier[::-1])
        absent = [[route(*call) for call in calls] for route in line.routes]
        fields = _text_fields()
        while ran < size:
            me, other = town.chance.sample(people, 2)
            line = lines[me.name]
            for at, call in enumerate(attempts(me.scratch_id, other.memory_id, other.entry_id, other.barrier)):
                ran += 1
                route = town.chance.randrange(2)
                assert line.routes[route](*call) == absent[route][at], call
            for _ in range(20):
                ran += 1
                request, name, many = town.chance.choice(fields)
                text = aimed(town.chance.choice(TEXTS), **_facts(other)).encode("utf-8", "replace").decode()
                arguments = _required(request.tool, me) | {name: [text] if many else text}
                status, body = town.chance.choice(line.routes)(request.tool, arguments)
                assert status < 500, (request.tool, name, text, body)
                town.check_answer(me, body)
            ran += 1
            forged = Connection(server, bearers[me.name][:-2] + "AA")
            assert forged.api("list_entries", {"memory_id": me.memory_id})[0] == 401
            forged.close()
        for person, line in ((person, lines[person.name]) for person in people):
            status, body = line.api("search_memories", {"memory_id": person.memory_id, "query": "vault", "top_k": 10})
            assert status == 200
            assert [hit["memory_id"] for hit in msgspec.json.decode(body)["entries"]] == [person.memory_id] * 10
            town.check_answer(person, body)
            line.close()
        with server.client(bearers[people[0].name]) as client:
            for path in ("/metrics", "/health"):
                response = client.get(path)
                assert response.status_code == 200
                town.check_silence([response.content])
    written = log.read_text()
    assert [line for line in read_log(written) if line["level"] == "error"] == []
    town.check_silence([written.encode()])


def test_the_numbers_of_a_user_say_nothing_about_others(town: Town, campaign: Campaign) -> None:
    """What a write of one user returns and what is counted is the same, whatever others do meanwhile."""
    for _ in range(campaign.size("attacks", 100)):
        me, other = town.two()
        own = town.memories(me)
        before = own.get_user().quotas.used
        first = own.add_entry(me.scratch_id, "one", "one")
        town.memories(other).add_entry(other.scratch_id, "vault", "vault")
        town.memories(other).put_context(other.scratch_id, "vault")
        second = own.add_entry(me.scratch_id, "two", "two")
        assert second.seq == first.seq + 1
        used = own.get_user().quotas.used
        assert (used.memories, used.entries) == (before.memories, before.entries + 2)
        assert own.get_memory(me.scratch_id).stats.documents >= 1
        shown = repr((first, second, own.get_memory(me.scratch_id), own.list_entries(me.scratch_id, 2)))
        with psycopg.connect(town.url) as connection:
            row = connection.execute("SELECT number FROM daypack.memories WHERE id = %s", (me.scratch_id,)).fetchone()
        assert row is not None
        assert f"number={row[0]}" not in shown
