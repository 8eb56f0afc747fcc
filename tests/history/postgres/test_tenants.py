"""Users of a database who reach for each other's sessions: with names, numbers, texts, groups and spoilt connections.

Every attempt is answered as if what it reaches for did not exist. Afterwards everybody has the same rows as before.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.many_workers.hostile_texts import TEXTS, aimed

import daypack
from daypack.errors import BadName, DaypackError, NotFound, SessionMissing
from daypack.files.commit import Task
from daypack.history.logs.upstream import Mark
from daypack.history.postgres import appends
from daypack.history.postgres.appends import Added, Append, new_writer
from daypack.history.postgres.cache import store_of
from daypack.history.postgres.store import Opened, SessionStore, close_databases
from daypack.history.postgres.stored import SmallFiles, StoredSession
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.session import Session

pytestmark = postgres_server.needs_postgres
USERS = 10
_TABLES = ("sessions", "session_lines", "session_blobs")
_LONG = "A long text that is stored as a blob. " * 150
LINE = b'{"seq":1,"id":"msg-1","role":"user","content":"forged"}\n'


class Person:
    """A user with a session that nobody else may see, and one to write to."""

    def __init__(self, number: int, url: str, home: Path) -> None:
        self.name = f"user-{number}"
        self.secret = f"secret-{uuid4().hex}"
        settings: dict[str, Any] = {"home": home, "uid": self.name, "store": url, "model": "gpt-4o", "workspace": ""}
        self.vault: Session = daypack.open_session("vault", agent=f"agent-{number}", **settings)
        self.vault.append("user", f"The word is {self.secret}.", client_key=f"key-{self.secret}")
        self.vault.pin("word", f"{self.secret} {_LONG}")
        self.vault.history.facets.write_meta({"note": self.secret})
        self.vault.prepare(budget=8_000)
        self.scratch: Session = daypack.open_session("scratch", **settings)
        self.scratch.append("user", "Hello.")
        store = store_of(self.vault.layout)
        self.agent = self.vault.agent
        found = store.find(self.agent, "vault")
        assert found is not None
        self.number = found.stored.number
        self.blobs = found.stored.blob_names()
        newest = (log.reader.newest() for log in (self.vault.history.messages, self.vault.history.events))
        self.marks = [Mark(slot.end, slot.crc) for slot in newest]
        assert self.blobs


class Town:
    """The users of one database, and what they have."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.chance = random.Random(0)
        self.people = [Person(number, url, folder / "home") for number in range(USERS)]
        self.names = {person.name for person in self.people}
        self.database = Database(url, most=1, patience=5.0)
        self._vaults = self._rows()
        assert len(self._vaults) >= 5 * USERS

    def two(self) -> tuple[Person, Person]:
        me, other = self.chance.sample(self.people, 2)
        return me, other

    def text(self, other: Person) -> str:
        """Return a text that means something to SQL, aimed at another user."""
        facts = {"victim": other.name, "bait": other.agent, "number": other.number, "memory": "m", "entry": "e"}
        return aimed(self.chance.choice(TEXTS), **facts)[:2_000]

    def plain_text(self, other: Person) -> str:
        """Return such a text that UTF-8 can encode: others are refused before they reach the database."""
        return self.text(other).encode("utf-8", "replace").decode()

    def check_answer(self, me: Person | None, *answers: object) -> None:
        """Check that an answer has no word of anybody else."""
        told = repr(answers)
        for person in self.people:
            assert person is me or person.secret not in told

    def check_everything(self) -> None:
        """Check that all vaults have the rows they had, and that their owners read them."""
        assert self._rows() == self._vaults
        for person in self.people:
            assert [message.text for message in person.vault.messages()] == [f"The word is {person.secret}."]
            assert person.vault.pins == {"word.md": f"{person.secret} {_LONG}"}
            self.check_answer(person, list(person.scratch.messages()), person.scratch.pins, person.scratch.meta)

    def _rows(self) -> Counter[tuple[Any, ...]]:
        """Return all rows of vaults, as nobody but an administrator sees them."""
        numbers = [person.number for person in self.people]
        with psycopg.connect(self.url) as connection:
            return Counter(
                (table, *row)
                for table in _TABLES
                for row in connection.execute(
                    f"SELECT {table}::text FROM daypack.{table} WHERE {'number' if table == 'sessions' else 'session'}"
                    " = ANY(%s)".encode(),
                    (numbers,),
                ).fetchall()
            )

    def close(self) -> None:
        for person in self.people:
            person.vault.close()
            person.scratch.close()
        self.database.close()
        close_databases()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    url = postgres_server.new_database()
    town = Town(url, tmp_path_factory.mktemp("town"))
    yield town
    town.close()
    postgres_server.drop_database(url)


@pytest.fixture(autouse=True)
def _everybody_is_well(town: Town, campaign: Campaign) -> Iterator[None]:
    town.chance.seed(campaign.seed)
    yield
    town.check_everything()


def _attempt(town: Town, me: Person, attack: Callable[[], object]) -> object:
    """Return what an attack is answered; an error is an answer too."""
    try:
        answer = attack()
    except (DaypackError, psycopg.Error) as error:
        answer = f"{type(error).__name__}: {error}"
    town.check_answer(me, answer)
    return answer


def test_no_name_opens_a_session_of_another(town: Town, campaign: Campaign) -> None:
    for number in range(campaign.size("attacks", 900)):
        me, other = town.two()
        text = town.text(other)
        home = town.folder / "names"
        named: dict[str, str] = {"name": "vault", "agent": other.agent, "uid": f"thief-{me.name}"}
        named[("name", "agent", "uid")[number % 3]] = text
        if named["uid"] in town.names:
            continue
        try:
            session = daypack.open_session(home=home, store=town.url, **named)  # type: ignore[arg-type]
        except BadName as error:
            town.check_answer(None, str(error))
            continue
        with session:
            assert (list(session.messages()), session.pins, session.children) == ([], {}, ())
            town.check_answer(None, session.meta, session.state)
            assert "note" not in session.meta


def test_no_listing_shows_a_session_of_another(town: Town, campaign: Campaign) -> None:
    for _ in range(campaign.size("attacks", 500)):
        me, other = town.two()
        text = town.plain_text(other)
        own, of_text = SessionStore(town.database, me.name), SessionStore(town.database, text)
        for store, agent in ((own, other.agent), (own, text)):
            answer = _attempt(town, me, partial(_looked_up, store, agent))
            assert isinstance(answer, str) or answer == (None, False, [])
        town.check_answer(me, own.agents(), list(own.heads()))
        assert other.number not in {head.number for head in own.heads()}
        if text not in town.names:  # sessions of a user with that name may exist
            answer = _attempt(town, me, partial(_listed, of_text))
            assert isinstance(answer, str) or other.number not in {head.number for head in of_text.heads()}
            found = _attempt(town, me, partial(of_text.find, other.agent, "vault"))
            assert not isinstance(found, Opened) or found.stored.number != other.number


def _looked_up(store: SessionStore, agent: str) -> tuple[object, ...]:
    return store.find(agent, "vault"), store.has(agent, "vault"), store.names(agent)


def _listed(store: SessionStore) -> tuple[object, ...]:
    return store.agents(), list(store.heads())


def test_no_forged_number_reaches_a_session_of_another(town: Town, campaign: Campaign) -> None:
    absent = 10**15
    for number in range(campaign.size("attacks", 1_200)):
        me, other = town.two()
        tenant = me.name if number % 4 else town.plain_text(other)
        if tenant in town.names - {me.name}:
            continue
        mark = town.chance.choice([Mark(), other.marks[0], other.marks[1]])
        added = Added(town.chance.randrange(2), mark, LINE, town.chance.randrange(1 << 32), new_writer())
        name = town.chance.choice([other.blobs[0], "sha256-new", town.plain_text(other)])
        found, nothing = (
            _attempt(town, me, _reaching(StoredSession(town.database, tenant, chosen), other, added, name)[number % 8])
            for chosen in (other.number, absent)
        )
        assert repr(found) == repr(nothing), (number % 8, tenant)


def _reaching(stored: StoredSession, other: Person, added: Added, name: str) -> list[Callable[[], object]]:
    return [
        lambda: stored.fetch([Mark(), Mark()], 0, 0),
        lambda: stored.fetch(other.marks, 0, 0),
        lambda: stored.append(0, added, {}),
        lambda: stored.append(0, added, {name: b"forged"}),
        lambda: stored.blob(name),
        stored.blob_names,
        lambda: stored.change_meta({"note": "forged"}),
        lambda: stored.reaches(0, 1, other.marks),
    ]


def test_no_append_of_a_group_reaches_a_session_of_another(town: Town, campaign: Campaign) -> None:
    files = SmallFiles(b"{}\n", b"/\n", b"now\n")
    for number in range(campaign.size("attacks", 500)):
        me, other = town.two()
        own = SessionStore(town.database, me.name).create("groups", f"group-{number}", files).stored.number
        theirs = SessionStore(town.database, other.name).create("groups", f"group-{number}", files).stored.number

        places = [
            (me.name, own, Mark()),
            (me.name, other.number, other.marks[0]),
            (other.name, theirs, Mark()),
            (town.plain_text(other), other.number, other.marks[0]),
            (me.name, theirs, Mark(len(LINE), 7)),
        ]
        group = [
            Append(town.database, tenant, session, 0, Added(0, mark, LINE, 7, new_writer()), {})
            for tenant, session, mark in places
        ]
        if group[3].tenant in town.names:
            continue
        town.chance.shuffle(group)
        tasks = [Task[Database](each, "append") for each in group]
        try:
            appends._store_all(tasks)  # pyright: ignore[reportPrivateUsage] — what a leading thread does
            outcomes = [task.answers[0] for task in tasks]
        except DaypackError as error:  # a text that cannot be a tenant
            town.check_answer(me, str(error))
            outcomes = ["busy"] * len(group)
        for each, outcome in zip(group, outcomes, strict=True):
            legal = (each.tenant, each.session) in ((me.name, own), (other.name, theirs))
            assert outcome in (("stored", "busy") if legal else ("gone", "busy")), each
            if outcome == "busy":
                answer = _attempt(town, me, each.store)
                assert answer == "stored" if legal else answer == "gone" or "Failed" in str(answer)


def test_a_hostile_text_in_a_session_is_only_a_text(town: Town, campaign: Campaign) -> None:
    for number in range(campaign.size("attacks", 900)):
        me, other = town.two()
        text = town.text(other)
        session = me.scratch
        try:
            if number % 6 == 0:
                key = f"{text}{number}"
                stored = session.append("user", "keyed", client_key=key)
                assert session.append("user", "keyed", client_key=key).seq == stored.seq
                assert stored.client_key == key
            elif number % 6 == 1:
                assert session.append("user", text, name=text[:60] or None, meta={text: text}).text == text
                assert session.tail(1)[0].text == text
            elif number % 6 == 2:
                session.append_event("notes", {text: [text]})
            elif number % 6 == 3:
                name = session.history.blobs.put(text.encode())
                session.append_event("notes", {"blob": name})
                assert session.history.blobs.get(name) == text.encode()
            elif number % 6 == 4:
                session.pin(text[:40], f"{text} {number}")
            else:
                session.history.facets.write_meta({text: text})
                assert session.meta[text] == text
        except (DaypackError, UnicodeEncodeError) as error:
            town.check_answer(me, str(error))
    for person in town.people:
        fresh = daypack.open_session("scratch", home=town.folder / "other", uid=person.name, store=town.url)
        assert list(fresh.messages()) == list(person.scratch.messages())
        fresh.close()


def test_no_blob_of_another_is_read_by_its_name(town: Town, campaign: Campaign) -> None:
    for number in range(campaign.size("attacks", 400)):
        me, other = town.two()
        name = town.chance.choice(other.blobs) if number % 2 else town.plain_text(other)
        with pytest.raises((DaypackError, ValueError)) as raised:
            me.scratch.history.blobs.get(name)
        town.check_answer(me, str(raised.value))
        assert isinstance(raised.value, NotFound) or number % 2 == 0


class Broken(Exception):
    """A mistake in the work of a transaction."""


def _mishaps(other: Person) -> list[Callable[[Transaction], object]]:
    def broken(transaction: Transaction) -> None:
        transaction.rows("SELECT meta FROM sessions")
        raise Broken

    def becoming(transaction: Transaction) -> None:
        transaction.become(other.name, "daypack_operator")
        raise Broken

    def appending(transaction: Transaction) -> None:
        transaction.rows("SELECT daypack.reach_of_session(%s, %s)", (other.name, other.number))
        raise Broken

    def lost(transaction: Transaction) -> None:
        transaction.connection.close()
        raise Broken

    def left_open(transaction: Transaction) -> None:
        transaction.execute("DECLARE kept CURSOR WITH HOLD FOR SELECT data FROM session_lines")
        raise Broken

    return [
        broken,
        becoming,
        appending,
        lost,
        left_open,
        lambda transaction: transaction.rows("SELECT 1 / 0"),
        lambda transaction: transaction.rows("INSERT INTO session_lines SELECT * FROM session_lines"),
        lambda transaction: transaction.rows("DELETE FROM session_lines"),
        lambda transaction: transaction.rows("UPDATE session_blobs SET data = ''"),
    ]


def test_nothing_of_a_user_is_left_on_a_connection(town: Town, campaign: Campaign) -> None:
    for number in range(campaign.size("attacks", 300)):
        me, other = town.two()
        mishaps = _mishaps(other)
        scope = Scope(other.name if number % 2 else me.name)
        with suppress(DaypackError, psycopg.Error, Broken):
            town.database.run("go wrong", mishaps[number % len(mishaps)], scope)
        store = SessionStore(town.database, me.name)
        town.check_answer(me, store.agents(), list(store.heads()))
        assert store.find(other.agent, "vault") is None
        with pytest.raises(SessionMissing):
            StoredSession(town.database, me.name, other.number).fetch(other.marks, 0, 0)
        for table in _TABLES:
            rows = town.database.run("look", lambda at, table=table: at.rows(f"SELECT tenant FROM {table}"), Scope())
            assert rows == []


def _statements(other: Person) -> list[tuple[str, tuple[Any, ...]]]:
    """Return direct SQL that reaches for the rows of another, with the rights of a worker."""
    found: list[tuple[str, tuple[Any, ...]]] = []
    theirs = (other.name, other.number)
    lines = "tenant, session, log, start, stop, crc, writer, data"
    columns = "tenant, agent, name, folded, meta, cwd, created"
    for table in _TABLES:
        found += [
            (f"SELECT * FROM {table} WHERE tenant = %s", (other.name,)),
            (f"SELECT * FROM {table} WHERE tenant <> current_setting('daypack.tenant')", ()),
            (f"SELECT * FROM {table} WHERE tenant LIKE '%%' OR true", ()),
            (f"SELECT count(*) FROM {table} WHERE tenant = %s HAVING count(*) > 0", (other.name,)),
            (f"DELETE FROM {table} WHERE tenant = %s RETURNING *", (other.name,)),
            (
                f"UPDATE {table} SET tenant = current_setting('daypack.tenant') WHERE tenant = %s RETURNING *",
                (other.name,),
            ),
            (f"UPDATE {table} SET tenant = %s RETURNING *", (other.name,)),
            (f"TRUNCATE {table}", ()),
            (f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY", ()),
            (f"CREATE POLICY mine ON {table} USING (true)", ()),
            (f"SELECT * FROM {table} FOR UPDATE SKIP LOCKED", ()),
        ]
    for table in _TABLES[1:]:
        found += [(f"SELECT * FROM {table}_{part} WHERE tenant = %s", (other.name,)) for part in range(8)]
    found += [
        ("UPDATE sessions SET meta = 'forged' WHERE number = %s RETURNING *", (other.number,)),
        ("UPDATE sessions SET generation = 9 WHERE tenant = %s RETURNING *", (other.name,)),
        (f"INSERT INTO session_lines({lines}) VALUES (%s, %s, 0, 0, 1, 0, gen_random_uuid(), 'x') RETURNING *", theirs),
        ("INSERT INTO session_blobs(tenant, session, name, data) VALUES (%s, %s, 'x', 'x') RETURNING *", theirs),
        (f"INSERT INTO sessions({columns}) VALUES (%s, 'a', 'n', 'n', '', '', '') RETURNING *", (other.name,)),
        ("SELECT most_common_vals FROM pg_stats WHERE schemaname = 'daypack' AND most_common_vals::text <> ''", ()),
    ]
    return found


def test_no_statement_of_a_worker_reaches_the_rows_of_another(town: Town, campaign: Campaign) -> None:
    size = campaign.size("attacks", 300)
    statements = [*range(len(_statements(town.people[0])))]
    for number in range(size):
        me, other = town.two()
        at = statements[(town.chance.randrange(len(statements)) + number) % len(statements)]
        query, values = _statements(other)[at]

        def work(transaction: Transaction, query: str = query, values: tuple[Any, ...] = values) -> list[Any]:
            rows = transaction.rows(query, values)
            transaction.execute("ROLLBACK")
            return rows

        answer = _attempt(town, me, lambda work=work, me=me: town.database.run("attack", work, Scope(me.name)))
        if not isinstance(answer, str):  # else it was refused
            assert {tenant for tenant, *_ in cast(list[tuple[str]], answer)} <= {me.name}, query
