"""Users of a memory store: profiles, quotas, and the tokens that identify them to a server.

A token's secret is shown once; the store has only its SHA-256, so the file reveals no secret.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from daypack.errors import AccessDenied, BadInput, NotFound, UserMissing
from daypack.history.layout import check_name
from daypack.memory.limits import check_length, check_text
from daypack.memory.store.port import Accounts, Profile, Scope, Token
from daypack.memory.times import format_time, now_ms, parse_time
from daypack.types.memory import User

_PREFIX = "dp_"
_NAME_CHARS = 100
_EMAIL_CHARS = 254
_QUOTAS = ("memories", "entries", "bytes")
_MAX_QUOTA = 1 << 62


class Grant(NamedTuple):
    """The user a token identifies and its scope; `write` includes reading."""

    user: str
    scope: Scope
    token_id: str


class NewToken(NamedTuple):
    """A new token; its secret cannot be read again."""

    secret: str
    token: Token


class Users:
    """The users of one store. Threads may share it."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def get(self, user: str) -> User:
        """Return a profile; the first call creates it."""
        return self._accounts.find(check_name(user, "user")) or self._accounts.put(user, Profile())

    def find(self, user: str) -> User:
        """Return an existing profile, or raise UserMissing."""
        profile = self._accounts.find(check_name(user, "user"))
        if profile is None:
            hint = f"`daypack user list` lists them; create it with `daypack user set {user}`"
            raise UserMissing("there is no such user", operation="find user", place=user, hint=hint)
        return profile

    def list(self) -> tuple[User, ...]:
        """Return all users."""
        return self._accounts.list()

    def put(
        self,
        user: str,
        *,
        name: str | None = None,
        email: str | None = None,
        quotas: Mapping[str, int | None] | None = None,
    ) -> User:
        """Change a profile; create it if there is none.

        `quotas` may name memories, entries and bytes; None removes a limit, the others are unchanged.
        """
        for field, text, max_chars in (("name", name, _NAME_CHARS), ("email", email, _EMAIL_CHARS)):
            if text is not None:
                _check_line(text, field, max_chars)
        changes = dict(quotas or {})
        for resource, quota in changes.items():
            if resource not in _QUOTAS or not _is_quota(quota):
                hint = f"a quota is a number for {', '.join(_QUOTAS)}, or None for no limit"
                raise BadInput(f"quota {resource!r} is {quota!r}", operation="change user", hint=hint)
        return self._accounts.put(check_name(user, "user"), Profile(name=name, email=email, quotas=changes))

    # Tokens

    def new_token(self, user: str, name: str = "", scope: Scope = "write", expires: str | None = None) -> NewToken:
        """Create a token for an existing user; `expires` is an ISO 8601 time."""
        import secrets  # noqa: PLC0415 — 8 ms that only new tokens need

        self.find(user)
        _check_line(name, "name", _NAME_CHARS)
        if scope not in get_args(Scope):
            raise BadInput(f"scope is {scope!r}", operation="new token", hint="scope must be read or write")
        until = parse_time(expires)
        if expires is not None and until is None:
            hint = "write an ISO 8601 time, for example 2027-01-31"
            raise BadInput(f"expires is {expires!r}", operation="new token", hint=hint)
        secret = _PREFIX + secrets.token_urlsafe(32)
        token = Token(
            token_id=secrets.token_hex(8),
            user=user,
            name=name,
            scope=scope,
            created_at=format_time(now_ms()),
            expires_at=None if until is None else format_time(until),
        )
        self._accounts.put_token(token, _digest(secret))
        return NewToken(secret, token)

    def check_token(self, secret: str) -> Grant:
        """Return the grant of a secret; unknown, revoked and expired tokens raise the same AccessDenied."""
        # Looked up by its digest, so that the time it takes reveals nothing about the secret.
        known = isinstance(cast(object, secret), str) and secret.isascii()
        return _grant(self._accounts.find_token(_digest(secret)) if known else None)

    def check_token_id(self, user: str, token_id: str) -> Grant:
        """Return the grant of a user's token by its public id, for a caller that has proved to know its secret."""
        return _grant(next((token for token in self.tokens(user) if token.token_id == token_id), None))

    def tokens(self, user: str | None = None) -> tuple[Token, ...]:
        """Return the tokens of a user, or of all users, without secrets."""
        return self._accounts.tokens(user)

    def revoke(self, token_id: str) -> None:
        """Invalidate a token immediately."""
        if not self._accounts.drop_token(check_text(token_id, "token id", "revoke token")):
            hint = "list the ids with `daypack token list`"
            raise NotFound("there is no such token", operation="revoke token", place=token_id[:64], hint=hint)


def _grant(token: Token | None) -> Grant:
    if token is None or (token.expires_at is not None and (parse_time(token.expires_at) or 0) <= now_ms()):
        hint = "create one with `daypack token new USER`"
        raise AccessDenied("the token is not valid", operation="check token", hint=hint)
    return Grant(token.user, token.scope, token.token_id)


def _is_quota(quota: object) -> bool:
    if isinstance(quota, bool) or not isinstance(quota, int | None):
        return False
    return quota is None or 0 <= quota <= _MAX_QUOTA


def _digest(secret: str) -> bytes:
    from hashlib import sha256  # noqa: PLC0415 — 2 ms

    return sha256(secret.encode()).digest()


def _check_line(text: str, field: str, max_chars: int) -> None:
    check_length(check_text(text, field, "change user"), max_chars, field, "change user")
    if not text.isprintable():
        raise BadInput(
            f"{field} has a control character", operation="change user", hint="use printable characters only"
        )
