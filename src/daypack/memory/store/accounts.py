"""The port to where users are kept: profiles with quotas and usage, and the tokens of a server."""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from daypack.types.memory import User

Scope = Literal["read", "write"]


class Profile(Struct, frozen=True, kw_only=True):
    """What to change of a user; `quotas` may name memories, entries and bytes (None: no limit), others stay."""

    name: str | None = None
    email: str | None = None
    quotas: Mapping[str, int | None] = {}


class Token(Struct, frozen=True, kw_only=True):
    """A secret somebody may use a server with; the secret itself is not kept."""

    token_id: str
    user: str
    name: str
    scope: Scope
    created_at: str
    expires_at: str | None = None


class Accounts(Protocol):
    """The users of a store."""

    def find(self, user: str) -> User | None:
        """Return a profile with what is used of its quotas; None when there is none."""
        ...

    def list(self) -> tuple[User, ...]:
        """Return all profiles, by name."""
        ...

    def put(self, user: str, profile: Profile) -> User:
        """Change a profile, making it when there is none."""
        ...

    def put_token(self, token: Token, digest: bytes) -> None:
        """Keep a token; `digest` is the SHA-256 of its secret."""
        ...

    def find_token(self, digest: bytes) -> Token | None:
        """Return the token whose secret has this digest."""
        ...

    def tokens(self, user: str | None = None) -> tuple[Token, ...]:
        """Return the tokens of a user, or all."""
        ...

    def drop_token(self, token_id: str) -> bool:
        """Forget a token; say whether there was one."""
        ...
