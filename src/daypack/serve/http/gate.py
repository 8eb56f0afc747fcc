"""Who may come in: the one gate in front of every door. It checks host, origin, token, media type and body."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from daypack.errors import AccessDenied, BadInput, TooLong
from daypack.llm.addresses import is_loopback
from daypack.serve.http.bodies import MAX_BODY_BYTES, Message, Receive, collect, drain, read_json
from daypack.serve.http.errors import Problem, Send, answer, describe

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
# Nothing is told there that is not in the documentation.
OPEN_PATHS = ("/health", "/openapi.json")
MCP_PATH = "/mcp"
_MAX_HEADER_BYTES = 32 << 10
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 — what somebody bound, not what we bind
_MARKS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_HOW_TO_PROVE = "send the header Authorization: Bearer TOKEN; `daypack token new USER` makes one"


class Caller(NamedTuple):
    """Whose memories a request may reach, and whether it may write."""

    user: str
    writes: bool


class Policy(NamedTuple):
    """What the gate lets through. `hosts` are names and addresses this server is known by, beside loopback."""

    user: str = "local"
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    token_required: bool = False
    max_body_bytes: int = MAX_BODY_BYTES


def choose_policy(user: str, bound: str, allowed: Iterable[str], *, require_token: bool) -> Policy:
    """Return the policy for a bound address: whoever can be reached from elsewhere wants a token from everybody."""
    hosts = frozenset(name.strip("[]").lower() for name in allowed)
    everywhere = bound in _EVERYWHERE
    own = set[str]() if everywhere else {bound.lower()}
    return Policy(
        user=user,
        hosts=frozenset(own | hosts),
        any_address=everywhere,
        token_required=require_token or not is_loopback(bound) or bool(hosts),
    )


class Gate:
    """Lets a request through to the doors, with its caller and its JSON, or answers it."""

    def __init__(self, app: App, policy: Policy, check_token: Callable[[str], Awaitable[Caller | None]]) -> None:
        self._app = app
        self._policy = policy
        self._check_token = check_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        send = _marked(send)
        headers = _Headers(scope)
        try:
            replay = await self._admit(scope, headers, receive)
        except _Rejected as rejected:
            await self._reject(rejected, scope, headers, receive, send)
        except ConnectionError:
            return  # nobody is there to be answered
        else:
            await self._app(scope, replay, send)

    async def _admit(self, scope: Scope, headers: "_Headers", receive: Receive) -> Receive:
        if headers.size > _MAX_HEADER_BYTES:
            raise _Rejected(Problem(431, "TooLong", "the headers are too long"))
        self._check_place(scope, headers)
        is_open = scope["path"] in OPEN_PATHS
        if headers.announce_body and (is_open or scope["method"] != "POST"):
            raise _Rejected(Problem(400, "BadInput", "a body is read with POST only"))
        if is_open:
            return receive
        scope["daypack.caller"] = await self._caller(headers)
        if scope["method"] != "POST":
            return receive
        self._check_form(headers)
        try:
            body = await collect(receive, most=self._policy.max_body_bytes)
            scope["daypack.json"] = read_json(body)
        except TooLong as error:
            raise _Rejected(describe(error)._replace(status=413)) from error
        except TimeoutError as error:
            raise _Rejected(Problem(408, "TimedOut", str(error)), ended=False) from error
        except BadInput as error:
            raise _Rejected(describe(error), ended=True) from error
        return _replayed(body, receive)

    def _check_place(self, scope: Scope, headers: "_Headers") -> None:
        """Refuse what a browser was led to: a foreign name for this address, or a page of somebody else."""
        host = headers.one("host")
        if host is None or not self._knows(_host_name(host)):
            hint = "use the address the server printed, or start it with --allow-host NAME"
            raise _Rejected(Problem(421, "AccessDenied", "this server does not answer to that host name", hint))
        for origin in headers.every("origin"):
            if not self._is_own(origin, f"{scope.get('scheme', 'http')}://{host}"):
                raise _Rejected(Problem(403, "AccessDenied", "requests from pages of another origin are not answered"))

    def _is_own(self, origin: str, here: str) -> bool:
        if origin.lower() == here.lower():
            return True
        try:
            parts = urlsplit(origin)
            name = parts.hostname or ""
            plain = parts.scheme in ("http", "https") and not (parts.path or parts.query or parts.username)
        except ValueError:
            return False
        return plain and (is_loopback(name) or name in self._policy.hosts)

    def _knows(self, name: str) -> bool:
        if is_loopback(name) or name in self._policy.hosts:
            return True
        return self._policy.any_address and _is_address(name)  # a page of another origin has a name, not an address

    async def _caller(self, headers: "_Headers") -> Caller:
        if not headers.every("authorization"):
            if self._policy.token_required:
                raise _unknown("a token is needed")
            return Caller(self._policy.user, writes=True)
        scheme, _, token = (headers.one("authorization") or "").partition(" ")
        caller = await self._check_token(token.strip()) if scheme.lower() == "bearer" and token else None
        if caller is None:
            raise _unknown("this token is not valid")
        return caller

    def _check_form(self, headers: "_Headers") -> None:
        kind, _, parameters = (headers.one("content-type") or "").partition(";")
        charset = parameters.replace(" ", "").replace('"', "").lower()
        if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
            raise _Rejected(Problem(415, "BadInput", "the body must be JSON", "send Content-Type: application/json"))
        if any(coding.strip().lower() != "identity" for coding in headers.every("content-encoding")):
            raise _Rejected(Problem(415, "BadInput", "packed bodies are not read", "send it without Content-Encoding"))
        length = headers.one("content-length")
        most = self._policy.max_body_bytes
        if length is not None and length.isascii() and length.isdigit() and int(length) > most:
            raise _Rejected(Problem(413, "TooLong", f"the body has {length} bytes", f"send at most {most:,} bytes"))

    async def _reject(
        self, rejected: "_Rejected", scope: Scope, headers: "_Headers", receive: Receive, send: Send
    ) -> None:
        told = dict(rejected.headers)
        if headers.announce_body and rejected.ended is not True:
            # One who waits for "100 Continue" has sent nothing yet, and a late one has had its time.
            ended = rejected.ended is None and not headers.every("expect") and await drain(receive)
            if not ended:
                told["connection"] = "close"
        problem = rejected.problem
        body = problem.rpc_body if scope["path"] == MCP_PATH else problem.body
        await answer(send, problem.status, body, told)


class _Rejected(Exception):
    """Ends the admission of a request. `ended`: its body was read to the end; None: nobody has tried."""

    def __init__(self, problem: Problem, *, ended: bool | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.ended = ended
        self.headers = headers or {}


class _Headers:
    """The headers of a request, each with all its values."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[str, list[str]] = {}
        self.size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        for name, value in scope["headers"]:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    @property
    def announce_body(self) -> bool:
        """Whether a body comes with the request."""
        return bool(self.every("transfer-encoding")) or any(length != "0" for length in self.every("content-length"))

    def every(self, name: str) -> list[str]:
        """Return all values of a header."""
        return self._values.get(name, [])

    def one(self, name: str) -> str | None:
        """Return the value of a header that may be given once; given twice it counts for nothing."""
        found = self.every(name)
        return found[0] if len(found) == 1 else None


def require_write(caller: Caller, tool: str) -> None:
    """Refuse a tool that writes to a caller who may only read."""
    if not caller.writes:
        hint = "use a token of scope write"
        raise AccessDenied("this token may only read", operation=tool, hint=hint)


def _unknown(problem: str) -> _Rejected:
    return _Rejected(Problem(401, "AccessDenied", problem, _HOW_TO_PROVE), headers={"www-authenticate": "Bearer"})


def _host_name(host: str) -> str:
    """Return a Host header without its port; nothing when it is no host."""
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        name = host
    elif not (port.isascii() and port.isdigit()):
        return ""
    return name.strip("[]").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _marked(send: Send) -> Send:
    """Return a `send` that forbids caches and guesses in every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [one for one in message.get("headers", ()) if one[0].lower() not in (b"cache-control",)]
            message = {**message, "headers": [*kept, *_MARKS]}
        await send(message)

    return sending


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body that was read already, then what comes."""
    waiting = [body]

    async def receiving() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receiving
