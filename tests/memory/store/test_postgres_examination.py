"""The examination of a PostgreSQL store finds what was changed by hand, and nothing else."""

from collections.abc import Iterator

import postgres_server
import psycopg
import pytest
from memory.store.stores import ME, OTHER, fill, make, new_entry

from daypack.memory.store.port import NewDocument, NewMemory, Profile, Token
from daypack.memory.store.postgres.examination import examine
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database

pytestmark = postgres_server.needs_postgres
MEMORY = "a" * 32


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(Database(database_url))
    store.load(ME, NewMemory(title="t", memory_id=MEMORY), (NewDocument("one"), NewDocument("two")), ())
    entries = [new_entry(f"entry {number}", "sum", tags=("t", "ü"), author="Jo") for number in range(3)]
    store.add(ME, MEMORY, entries)
    store.accounts.put_token(Token(token_id="a", user=ME, name="x", scope="read", created_at="2025"), b"1" * 32)
    store.accounts.put(OTHER, Profile(name="Zoë"))
    yield store
    store.close()


def test_an_intact_store_has_no_problems(store: PostgresStore) -> None:
    (entry, *_) = fill(store, make(store), "one", "two")
    store.add(ME, MEMORY, [new_entry(str(number)) for number in range(30)])
    store.erase_entry(ME, store.memories(ME)[1].memory_id, entry)
    store.delete(ME, MEMORY)
    store.rewrite(lambda text: text.replace("entry", "[erased]"), None)
    store.erase(OTHER, make(store, OTHER))
    assert examine(store.database) == []


CHANGES = {
    "UPDATE entries SET raw = 'x' WHERE seq = 2": [
        "entry 2 (",
        "memory aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: it counts 3 entries, ",
    ],
    "UPDATE entries SET author = 'Oj'": ["entry 1 (", "entry 2 (", "entry 3 ("],
    "UPDATE documents SET content = 'eno' WHERE version = 1": ["document 1 of memory aaa"],
    "UPDATE documents SET content = content || content": [
        "document 1 of",
        "document 2 of",
        "no version of its document",
    ],
    "UPDATE memories SET title = 'x'": ["memory aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: checksum mismatch"],
    "UPDATE memories SET newest = 2": ["its newest entry is 2; its records have 3"],
    "UPDATE memories SET documents = 1": ["its newest document is 1; its records have 2"],
    "UPDATE memories SET bytes = bytes + 1": ["it counts 3 entries", "user me: its usage is 1 memories"],
    "DELETE FROM tags WHERE seq = 1": ["tags differ from its entries"],
    "INSERT INTO tags VALUES ('me', 77, 'x', 1)": ["1 rows of tags (memory number 77 of me): their memory does not"],
    "UPDATE users SET memories = 7": ["user me: its usage is 7", "user other: its usage is 7"],
    "UPDATE users SET max_entries = 1 WHERE tenant = 'other'": ["user other: checksum mismatch"],
    "DELETE FROM users WHERE tenant = 'me'": ["memory aaa", "token a: its user me does not exist"],
    "UPDATE tokens SET scope = 'write'": ["token a: checksum mismatch"],
    "UPDATE jobs SET dead = now(), attempts = 5, problem = 'no model'": [
        "the index of memory aaa",
        "the index of memory aaa",
    ],
    "DELETE FROM store": ["the store's id"],
    "ALTER TABLE entries NO FORCE ROW LEVEL SECURITY": ["table entries: row-level security is not forced"],
    "ALTER TABLE tags DISABLE ROW LEVEL SECURITY": ["table tags: row-level security is not forced"],
    "GRANT DELETE ON entries TO daypack_app": ["table entries: daypack_app has more rights than it should: DELETE"],
    "GRANT SELECT ON entries_3 TO daypack_app": ["table entries_3: daypack_app has more rights than it should: SELECT"],
    "GRANT SELECT ON documents TO PUBLIC": ["table documents: everybody has rights: SELECT"],
    "REVOKE INSERT ON documents FROM daypack_app": ["table documents: daypack_app lacks rights: INSERT"],
    "CREATE POLICY open ON entries USING (true)": ["table entries: the policy open is none of the schema"],
    "DROP POLICY own ON entries": ["table entries: the policy own does not exist"],
    "ALTER POLICY own ON memories USING (true)": ["table memories: the policy own does not compare the tenant"],
    "ALTER TABLE entries DETACH PARTITION entries_3": ["table entries: partition 3 does not exist"],
    "GRANT CREATE ON SCHEMA daypack TO PUBLIC": ["schema daypack: PUBLIC may create objects in it"],
    "ALTER SCHEMA daypack OWNER TO postgres": ["schema daypack: postgres may create objects in it"],
    "CREATE FUNCTION cardinality(text[]) RETURNS int LANGUAGE sql AS 'SELECT 1'": [
        "function daypack.cardinality(text[]): it belongs to postgres",
    ],
    "CREATE OPERATOR || (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)": [
        "operator daypack.||(text,text): it belongs to postgres",
    ],
}


@pytest.mark.parametrize("statement", CHANGES)
def test_what_was_changed_by_hand_is_found(store: PostgresStore, database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET search_path = daypack")
        connection.execute(statement.encode())
    found = examine(store.database)
    problems = [f"{problem.what}: {problem.problem}" for problem in found]
    for wanted in CHANGES[statement]:
        assert any(wanted in problem for problem in problems), (wanted, problems)
    assert all(problem.step is None for problem in found)
