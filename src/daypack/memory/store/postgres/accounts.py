"""Users and tokens in a PostgreSQL store. What concerns all users is read as the operator."""

# ruff: noqa: S608 — the parts of statements are constants

from typing import TYPE_CHECKING, Any

from daypack.errors import BadInput
from daypack.memory.store.checksums import TokenRecord, UserRecord, checksum
from daypack.memory.store.port import Profile, Token
from daypack.memory.store.postgres.inserts import lock_user
from daypack.memory.store.postgres.statements import TOKEN, USER, USER_COLUMNS, USERS, token_texts, user_texts
from daypack.memory.store.rows import intact, token_of, user_of
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.types.memory import DamagedRecord, User

if TYPE_CHECKING:
    from psycopg import Cursor

_OPERATOR = Scope(role="daypack_operator")
_READING = Scope(role="daypack_operator", reading=True)
_ORDER = 'ORDER BY tenant COLLATE "C", created COLLATE "C", id COLLATE "C"'
_SET = (
    "UPDATE users SET name = %s, email = %s, max_memories = %s, max_entries = %s, max_bytes = %s, crc = %s"
    f" WHERE tenant = %s RETURNING {USER_COLUMNS}"
)
_INSERT = (
    "INSERT INTO tokens(id, digest, tenant, name, scope, created, expires, crc) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)


class PostgresAccounts:
    """The users and tokens of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, user: str) -> User | None:
        """Return a profile; None if there is no such user."""
        if not is_user(user):
            return None
        row = self._rows("get_user", USER, (user,), Scope(user, reading=True))
        return intact(user_of(user_texts(row[0])), "get_user") if row else None

    def list(self) -> tuple[User, ...]:
        """Return all profiles that are intact, by name."""
        rows = self._rows("list users", USERS, (), _READING)
        return tuple(user for user in map(user_of, map(user_texts, rows)) if isinstance(user, User))

    def damaged(self) -> tuple[DamagedRecord, ...]:
        """Return the damaged profiles and tokens."""

        def work(transaction: Transaction) -> "tuple[Cursor[Any], Cursor[Any]]":
            return transaction.execute(USERS), transaction.execute(TOKEN)

        users, tokens = self._database.run("list users", work, _READING)
        found = [
            *(user_of(user_texts(row)) for row in users.fetchall()),
            *(token_of(token_texts(row)) for row in tokens.fetchall()),
        ]
        return tuple(record for record in found if isinstance(record, DamagedRecord))

    def put(self, user: str, profile: Profile) -> User:
        """Change a profile; create it if there is none."""
        check_user(user, "change user")

        def work(transaction: Transaction) -> "Cursor[Any]":
            row = lock_user(transaction).fetchone() or ()
            intact(user_of(user_texts(row)), "change user")  # else what is damaged would get a right checksum
            record = _changed(UserRecord(*user_texts(row)[:6]), profile)
            values = (record.name.encode(), record.email.encode(), *record[3:], checksum(record), user)
            return transaction.execute(_SET, values)

        changed = self._database.resolve("change user", work, Scope(user)).fetchone()
        return intact(user_of(user_texts(changed or ())), "change user")

    def put_token(self, token: Token, digest: bytes) -> None:
        """Store a token; `digest` is the SHA-256 of its secret."""
        check_user(token.user, "new token")
        if not all(map(is_text, (token.token_id, token.scope, token.created_at, token.expires_at or ""))):
            raise BadInput("a field of the token cannot be stored", operation="new token", hint="leave out NUL")
        record = TokenRecord(
            token.token_id, digest.hex(), token.user, token.name, token.scope, token.created_at, token.expires_at
        )
        fields = (token.user, token.name.encode(), token.scope, token.created_at, token.expires_at)
        values = (token.token_id, digest, *fields, checksum(record))

        def work(transaction: Transaction) -> None:
            if transaction.attempt and transaction.row(f"{TOKEN} WHERE digest = %s", (digest,)):
                return
            transaction.execute(_INSERT, values)

        self._database.resolve("new token", work, Scope(token.user))

    def find_token(self, digest: bytes) -> Token | None:
        """Return the token whose secret has this digest; raise Damaged if its scope or time cannot be trusted.

        Its user is not known yet: a policy shows the row to those who have the secret.
        """

        def work(transaction: Transaction) -> "Cursor[Any]":
            transaction.execute("SELECT set_config('daypack.token', %s, true)", (digest.hex(),))
            return transaction.execute(f"{TOKEN} WHERE digest = %s", (digest,))

        row = self._database.run("check token", work, Scope(reading=True)).fetchone()
        return intact(token_of(token_texts(row)), "check token") if row else None

    def tokens(self, user: str | None = None) -> tuple[Token, ...]:
        """Return the intact tokens of a user, or of all users."""
        if user is None:
            rows = self._rows("list tokens", f"{TOKEN} {_ORDER}", (), _READING)
        elif not is_user(user):
            return ()
        else:
            rows = self._rows("list tokens", f"{TOKEN} WHERE tenant = %s {_ORDER}", (user,), Scope(user, reading=True))
        return tuple(token for token in map(token_of, map(token_texts, rows)) if isinstance(token, Token))

    def drop_token(self, token_id: str) -> bool:
        """Delete a token; return False if there was none."""
        if not is_text(token_id):
            return False
        dropped: list[bool] = []

        def work(transaction: Transaction) -> None:
            dropped.append(transaction.row("DELETE FROM tokens WHERE id = %s RETURNING id", (token_id,)) is not None)

        self._database.resolve("revoke token", work, _OPERATOR)
        return any(dropped)

    def _rows(self, operation: str, query: str, values: tuple[Any, ...], scope: Scope) -> "list[tuple[Any, ...]]":
        return self._database.run(
            operation, lambda transaction: transaction.execute(query.encode(), values), scope
        ).fetchall()


def is_user(user: str) -> bool:
    """Return True if a text can be the name of a user in the database; a transaction without a user has the name ""."""
    return bool(user) and is_text(user)


def check_user(user: str, operation: str) -> None:
    """Raise BadInput if a text cannot be the name of a user in the database."""
    if not is_user(user):
        hint = "a name has at least one character, and no NUL"
        raise BadInput(f"{user!r:.100} cannot be the name of a user", operation=operation, hint=hint)


def is_text(value: str) -> bool:
    """Return True if a value of the type `text` can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _changed(record: UserRecord, profile: Profile) -> UserRecord:
    changes: dict[str, Any] = {f"max_{what}": quota for what, quota in profile.quotas.items()}
    if profile.name is not None:
        changes["name"] = profile.name
    if profile.email is not None:
        changes["email"] = profile.email
    return record._replace(**changes)
