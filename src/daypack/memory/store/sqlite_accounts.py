"""Users and tokens in the SQLite file of a memory store."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from daypack.memory.store.checksums import TokenRecord, UserRecord, checksum
from daypack.memory.store.port import Profile, Token
from daypack.memory.store.rows import intact, seal_user, token_of, user_of
from daypack.memory.store.tables import TOKEN, USER
from daypack.types.memory import DamagedRecord, User

if TYPE_CHECKING:
    from sqlite3 import Connection

Run = Callable[[str, Callable[["Connection"], Any]], Any]


class SqliteAccounts:
    """The users and tokens of one file, over the connections of its store."""

    def __init__(self, read: Run, write: Run) -> None:
        self._read = read
        self._write = write

    def find(self, user: str) -> User | None:
        """Return a profile; None if there is no such user."""
        row = self._read(
            "get_user", lambda connection: connection.execute(f"{USER} WHERE user = ?", (user,)).fetchone()
        )
        return intact(user_of(row), "get_user") if row else None

    def list(self) -> tuple[User, ...]:
        """Return all profiles that are intact, by name."""
        rows = self._read("list users", lambda connection: connection.execute(f"{USER} ORDER BY user").fetchall())
        return tuple(user for user in map(user_of, rows) if isinstance(user, User))

    def damaged(self) -> tuple[DamagedRecord, ...]:
        """Return the damaged profiles and tokens."""

        def work(connection: "Connection") -> tuple[DamagedRecord, ...]:
            found = [*map(user_of, connection.execute(USER)), *map(token_of, connection.execute(TOKEN))]
            return tuple(record for record in found if isinstance(record, DamagedRecord))

        return self._read("list users", work)

    def put(self, user: str, profile: Profile) -> User:
        """Change a profile; create it if there is none."""
        changes: dict[str, str | int | None] = {}
        if profile.name is not None:
            changes["name"] = profile.name
        if profile.email is not None:
            changes["email"] = profile.email
        changes |= {f"max_{what}": quota for what, quota in profile.quotas.items()}

        def work(connection: "Connection") -> User:
            number = user_number(connection, user)
            found = connection.execute(f"{USER} WHERE number = ?", (number,)).fetchone()
            intact(user_of(found), "change user")  # else what is damaged would get a right checksum
            if changes:
                setting = ", ".join(f"{name} = ?" for name in changes)
                connection.execute(f"UPDATE users SET {setting} WHERE number = ?", (*changes.values(), number))  # noqa: S608
                seal_user(connection, number)
            changed = connection.execute(f"{USER} WHERE number = ?", (number,)).fetchone()
            return intact(user_of(changed), "change user")

        return self._write("change user", work)

    def put_token(self, token: Token, digest: bytes) -> None:
        """Store a token; `digest` is the SHA-256 of its secret."""
        fields = (token.user, token.name, token.scope, token.created_at, token.expires_at)
        crc = checksum(TokenRecord(token.token_id, digest.hex(), *fields))
        row = (token.token_id, digest, *fields, crc)
        query = "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        self._write("new token", lambda connection: connection.execute(query, row).rowcount)

    def find_token(self, digest: bytes) -> Token | None:
        """Return the token whose secret has this digest; raise Damaged if its scope or time cannot be trusted."""
        query = f"{TOKEN} WHERE digest = ?"
        row = self._read("check token", lambda connection: connection.execute(query, (digest,)).fetchone())
        return intact(token_of(row), "check token") if row else None

    def tokens(self, user: str | None = None) -> tuple[Token, ...]:
        """Return the intact tokens of a user, or of all users."""
        query = f"{TOKEN} WHERE ?1 IS NULL OR user = ?1 ORDER BY user, created, id"
        rows = self._read("list tokens", lambda connection: connection.execute(query, (user,)).fetchall())
        return tuple(token for token in map(token_of, rows) if isinstance(token, Token))

    def drop_token(self, token_id: str) -> bool:
        """Delete a token; return False if there was none."""
        query = "DELETE FROM tokens WHERE id = ?"
        return self._write("revoke token", lambda connection: connection.execute(query, (token_id,)).rowcount) > 0


def user_number(connection: "Connection", user: str) -> int:
    """Return the number of a user; create the user if there is none."""
    crc = checksum(UserRecord(user, user, "", None, None, None))
    connection.execute("INSERT OR IGNORE INTO users(user, name, crc) VALUES (?, ?, ?)", (user, user, crc))
    return connection.execute("SELECT number FROM users WHERE user = ?", (user,)).fetchone()[0]
