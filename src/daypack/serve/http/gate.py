"""The gate in front of every endpoint: checks host, origin, token, media type and body, in this order."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Protocol

from daypack.errors import AccessDenied, BadInput, DaypackError, RateLimited, TooLong
from daypack.serve.http.address import Origin, Policy, parse_host, parse_origin
from daypack.serve.http.bodies import Message, Receive, collect, drain, read_json
from daypack.serve.http.limits import Shares, caller_address
from daypack.serve.http.page_requests import ASSETS, ENTER, ENTER_HINT, HEADERS, LIVE, Visitors, is_foreign, is_page
from daypack.serve.http.turns import Call, Caller, CallerGone
from daypack.serve.observe.request_facts import current
from daypack.serve.problems import Problem, describe, report
from daypack.serve.reach.resource import METADATA_PATHS, challenge

Scope = MutableMapping[str, Any]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
# Served without a token: they reveal only what the documentation says.
OPEN_PATHS = ("/", "/health", "/health/live", "/health/ready", "/openapi.json", *METADATA_PATHS)
MCP_PATH = "/mcp"
_MAX_HEADER_BYTES = 32 << 10
_NO_CACHE, _NO_SNIFFING = (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")
_AUTHORIZATION_HINT = "send the header Authorization: Bearer TOKEN; create a token with `daypack token new USER`"


# Returns the caller of a user's token, by its id; None if it is not valid any more. The last argument is the address.
CheckTokenId = Callable[[str, str, str], Awaitable[Caller | None]]


class CheckToken(Protocol):
    """Returns the caller a token belongs to. `guessing`: its address has sent too many bad tokens."""

    def __call__(self, secret: str, address: str, *, guessing: bool = False) -> Awaitable[Caller | None]:
        """Return None for a token that is not valid."""
        ...


class Gate:
    """ASGI middleware that passes a request on, with its caller and parsed JSON in the scope, or rejects it."""

    def __init__(
        self,
        app: App,
        policy: Policy,
        check_token: CheckToken,
        shares: Shares | None = None,
        visitors: Visitors | None = None,
        check_token_id: CheckTokenId | None = None,
    ) -> None:
        """`visitors` knows the cookies of the page; None: there is no page. `check_token_id` is for signed cookies."""
        self._app = app
        self._policy = policy
        self._check_token = check_token
        self._shares = shares or Shares()
        self._visitors = visitors
        self._check_token_id = check_token_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        send = self._with_security_headers(scope["path"], send)
        headers = _Headers(scope)
        try:
            replay_body = await self._admit(scope, headers, receive)
        except _Rejected as rejected:
            await self._reject(rejected, scope, headers, receive, send)
        except ConnectionError:
            return  # the client is gone
        except DaypackError as error:  # a limit, or a store that does not answer
            await self._reject(_Rejected(report("gate", error)), scope, headers, receive, send)
        else:
            await self._pass_on(scope, replay_body, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call | None = scope.get("daypack.call")
        try:
            with suppress(CallerGone):
                await self._app(scope, receive, send)
        finally:
            if call is not None and scope["path"] != LIVE:
                self._shares.end_call(call.caller.user)

    async def _admit(self, scope: Scope, headers: "_Headers", receive: Receive) -> Receive:
        if headers.size > _MAX_HEADER_BYTES:
            raise _Rejected(Problem(431, "TooLong", "the headers are too long"))
        self._check_host_and_origin(scope, headers)
        path = scope["path"]
        is_open = path in OPEN_PATHS or path.startswith(ASSETS)
        if headers.announces_body and (is_open or scope["method"] != "POST"):
            raise _Rejected(Problem(400, "BadInput", "only POST requests may have a body"))
        if is_open:
            return receive
        caller = None
        if path != ENTER:
            caller = scope["daypack.caller"] = await self._caller(scope, headers)
            facts = current.get()
            if facts is not None:
                facts.user, facts.token_id = caller.user, caller.token_id
            await self._shares.check_rate(caller.user)
        if scope["method"] != "POST":
            self._begin_call(scope, caller)
            return receive
        self._check_media_type(headers)
        try:
            body = await collect(receive, most=self._policy.max_body_bytes)
            scope["daypack.json"] = read_json(body)
        except TooLong as error:
            raise _Rejected(describe(error)._replace(status=413)) from error
        except TimeoutError as error:
            raise _Rejected(Problem(408, "TimedOut", str(error)), body_read=False) from error
        except BadInput as error:
            raise _Rejected(describe(error), body_read=True) from error
        try:
            self._begin_call(scope, caller)
        except RateLimited as error:
            raise _Rejected(describe(error), body_read=True) from error
        return _replay_body(body, receive)

    def _begin_call(self, scope: Scope, caller: Caller | None) -> None:
        """Count the call, and let its connection end it on a disconnect. A stream of the page only waits."""
        if caller is None:
            return
        if scope["path"] != LIVE:
            self._shares.begin_call(caller.user)
        call = scope["daypack.call"] = Call(caller)
        if (connection := scope.get("daypack.connection")) is not None:
            connection.call = call

    def _check_host_and_origin(self, scope: Scope, headers: "_Headers") -> None:
        """Reject DNS rebinding (an unknown host name) and requests from web pages of other origins."""
        host = parse_host(headers.single("host") or "")
        if host is None or not self._policy.knows_host(host[0]):
            hint = "use the address the server printed, or start it with --allow-host NAME"
            raise _Rejected(Problem(421, "AccessDenied", "unknown host name", hint))
        scheme = scope.get("scheme", "http")
        own = Origin(scheme, host[0], host[1] or (443 if scheme == "https" else 80))
        scope["daypack.origin"] = own
        resource = self._policy.resource
        scope["daypack.metadata"] = resource.metadata_address(own.url) if resource is not None else ""
        if self._serves_page(scope["path"]):
            if is_foreign(scope["path"], headers.all, own, self._policy):
                raise _Rejected(Problem(403, "AccessDenied", "the page answers only to itself", ENTER_HINT))
            return
        for text in headers.values("origin"):
            origin = parse_origin(text)
            if origin is None or not self._policy.allows_origin(origin, own):
                raise _Rejected(
                    Problem(403, "AccessDenied", "requests from web pages of other origins are not allowed")
                )

    async def _caller(self, scope: Scope, headers: "_Headers") -> Caller:
        is_page = self._serves_page(scope["path"])
        address = client_address(scope)
        if not headers.values("authorization"):
            if is_page:
                return await self._visitor(scope, headers, address)
            if self._policy.token_required:
                raise _unauthorized(scope, "a token is required")
            return Caller(self._policy.user, writes=True)
        scheme, _, token = (headers.single("authorization") or "").partition(" ")
        is_token = scheme.lower() == "bearer" and token
        caller = await check_secret(self._check_token, self._shares, token.strip() if is_token else "", address)
        if caller is None:
            raise _unauthorized(scope, "the token is not valid", error="invalid_token")
        scope["daypack.pass"] = f"token {caller.token_id}"
        return caller

    async def _visitor(self, scope: Scope, headers: "_Headers", address: str) -> Caller:
        """Return the user whose cookie this is. One that was made from a token is valid as long as the token."""
        assert self._visitors is not None
        found = self._visitors.find(headers.values("cookie"), scope["daypack.origin"].port)
        caller = found and found.caller
        if found is not None and found.secret:
            caller = await self._check_token(found.secret, address)
        elif found is not None and found.token is not None and self._check_token_id is not None:
            caller = await self._check_token_id(*found.token, address)
        if found is None or caller is None:
            raise _unauthorized(scope, "the page needs a token", ENTER_HINT)
        scope["daypack.pass"] = found.key
        return caller

    def _serves_page(self, path: str) -> bool:
        return self._visitors is not None and is_page(path)

    def _with_security_headers(self, path: str, send: Send) -> Send:
        """Return a `send` that forbids sniffing, caching except of assets, and what the page does not need."""
        more = [_NO_SNIFFING, *(HEADERS if self._serves_page(path) else ())]

        async def wrapped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not path.startswith(ASSETS) or message["status"] != 200:
                    headers = [header for header in headers if header[0].lower() != b"cache-control"] + [_NO_CACHE]
                message = {**message, "headers": [*headers, *more]}
            await send(message)

        return wrapped

    def _check_media_type(self, headers: "_Headers") -> None:
        kind, _, parameters = (headers.single("content-type") or "").partition(";")
        charset = parameters.replace(" ", "").replace('"', "").lower()
        if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
            sent = f"not {kind.strip()[:64]!r}" if kind.strip() else "and Content-Type is missing"
            hint = 'send the header Content-Type: application/json and a JSON object, for instance {"query": "…"}'
            raise _Rejected(Problem(415, "BadInput", f"the body must be JSON, {sent}", hint))
        if any(coding.strip().lower() != "identity" for coding in headers.values("content-encoding")):
            raise _Rejected(Problem(415, "BadInput", "compressed bodies are not accepted", "omit Content-Encoding"))
        length = headers.single("content-length")
        most = self._policy.max_body_bytes
        if length is not None and length.isascii() and length.isdigit() and int(length) > most:
            raise _Rejected(
                Problem(413, "TooLong", f"the body has {int(length):,} bytes", f"send at most {most:,} bytes")
            )

    async def _reject(
        self, rejected: "_Rejected", scope: Scope, headers: "_Headers", receive: Receive, send: Send
    ) -> None:
        response_headers = rejected.problem.headers | rejected.headers
        if headers.announces_body and rejected.body_read is not True:
            # A client that waits for "100 Continue" has sent nothing yet, and a slow one has used its time.
            drained = rejected.body_read is None and not headers.values("expect") and await drain(receive)
            if not drained:
                response_headers["connection"] = "close"
        problem = rejected.problem
        facts = current.get()
        if facts is not None:
            facts.error = problem.code
        body = problem.rpc_body if scope["path"] == MCP_PATH else problem.body
        await send_json(send, problem.status, body, response_headers)


class _Rejected(Exception):
    """A request the gate does not pass on. `body_read` is None if the body was not touched yet."""

    def __init__(
        self, problem: Problem, *, body_read: bool | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.body_read = body_read
        self.headers = headers or {}


class _Headers:
    """The headers of a request; a header may have several values."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[str, list[str]] = {}
        self.size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        for name, value in scope["headers"]:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    @property
    def announces_body(self) -> bool:
        """True if the headers announce a body."""
        return bool(self.values("transfer-encoding")) or any(length != "0" for length in self.values("content-length"))

    @property
    def all(self) -> Mapping[str, list[str]]:
        """The values by the name in lower case."""
        return self._values

    def values(self, name: str) -> list[str]:
        """Return all values of a header."""
        return self._values.get(name, [])

    def single(self, name: str) -> str | None:
        """Return the value of a header, or None if it is missing or repeated."""
        values = self.values(name)
        return values[0] if len(values) == 1 else None


def require_write(caller: Caller, tool: str) -> None:
    """Raise AccessDenied if the caller has a read-only token."""
    if not caller.writes:
        raise AccessDenied("this token is read-only", operation=tool, hint="use a token with scope write")


def client_address(scope: Scope) -> str:
    """Return the address that a request came from, as limits count it."""
    return caller_address((scope.get("client") or ("",))[0])


async def check_secret(check_token: CheckToken, shares: Shares, secret: str, address: str) -> Caller | None:
    """Return the caller a token belongs to; count it if it is not valid, RateLimited after too many."""
    caller = None
    if secret:
        # A token has 256 random bits, so guessing is hopeless: the limit saves work. The token is checked in spite
        # of it, in a short queue, so that the mistakes of one user do not lock out others at the same address.
        try:
            caller = await check_token(secret, address, guessing=shares.is_guessing(address))
        except RateLimited:
            shares.usage.refused["token checks"] += 1
            raise
    if caller is None:
        await shares.count_bad_token(address)
    return caller


async def send_json(send: Send, status: int, body: bytes, headers: Mapping[str, str] = {}) -> None:
    """Send a complete JSON response."""
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _unauthorized(scope: Scope, problem: str, hint: str = _AUTHORIZATION_HINT, *, error: str = "") -> _Rejected:
    headers = {"www-authenticate": challenge(scope["daypack.metadata"], error)}
    return _Rejected(Problem(401, "AccessDenied", problem, hint), headers=headers)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first yields the body that was already read."""
    pending = [body]

    async def wrapped() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return wrapped
