"""The outermost layer of the HTTP server: gives every request an id and reports how it ended."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from daypack.memory.audit_log.record import Deed
from daypack.serve.audited import asked_memory, audit_refused
from daypack.serve.http.bodies import Message, Receive
from daypack.serve.http.gate import MCP_PATH, App, Scope, Send
from daypack.serve.http.health import Health
from daypack.serve.observe.metrics import METHODS, OTHER, ROUTES
from daypack.serve.observe.observer import Observer
from daypack.serve.observe.request_facts import RequestFacts, accept_request_id, current

if TYPE_CHECKING:
    from daypack.serve.http.tenants import Tenants

_HEADER = b"x-request-id"
_API = "/api/"
_PAGE_CALLS = ("/page/data", "/page/do", "/page/assets")
_CALLING = frozenset({MCP_PATH, "/api", "/api/memories"})


class Observed:
    """ASGI middleware around the gate, so that what the gate refuses is reported too.

    `health` says whether the server stops: then every answer ends its connection.
    """

    def __init__(
        self,
        app: App,
        observer: Observer,
        tenants: "Tenants",
        health: Health,
        *,
        names: Iterable[str],
        end_streams: Callable[[], None],
    ) -> None:
        """`names` are those of calls that may be logged, `end_streams` ends the answers that have no end."""
        self.observer = observer
        self.health = health
        self.end_streams = end_streams
        self.tenants = tenants
        self._app = app
        self._names = frozenset((*names, *METHODS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        facts = RequestFacts("http", _route(scope["path"]), _sent_id(scope))
        facts.client = (scope.get("client") or ("",))[0]
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                await self._audit_refusal(facts, scope)
                headers = [*message.get("headers", ()), (_HEADER, facts.request_id.encode())]
                if self.health.state == "stopping" and not any(name.lower() == b"connection" for name, _ in headers):
                    headers.append((b"connection", b"close"))  # the next request goes to another server
                message = {**message, "headers": headers}
            await send(message)

        token = current.set(facts)
        try:
            await self._app(scope, receive, send_with_id)
            await self._audit_refusal(facts, scope)  # of a call within a stream
        except Exception:
            status = status or 500
            raise
        finally:
            current.reset(token)
            self._name_tool(facts, scope)
            self.observer.finished(facts, status, started)

    async def _audit_refusal(self, facts: RequestFacts, scope: Scope) -> None:
        """Record a call that was refused before its tool ran: a read-only token, a limit, a body that is no object."""
        if not facts.user or not facts.error or facts.audited or facts.route not in _CALLING:
            return
        self._name_tool(facts, scope)
        if facts.tool in METHODS:
            return
        action = "write" if facts.tool in self.tenants.toolset(None).writing else "read"
        memory = asked_memory(_read_arguments(scope.get("daypack.json")).get("memory_id"))
        deed = Deed(action=action, tool=facts.tool, user=facts.user, memory=memory, result=facts.error)
        await anyio.to_thread.run_sync(audit_refused, self.tenants.backend.audit, deed)

    def _name_tool(self, facts: RequestFacts, scope: Scope) -> None:
        """Add the tool, or else the method; a name that no tool has is not repeated: it could be anything."""
        name = ""
        if facts.route == MCP_PATH:
            facts.rpc_id, name = _read_rpc(scope.get("daypack.json"))
        elif facts.route == "/api/memories":
            name = "list_memories"
        elif facts.route == "/api":
            name = scope["path"].removeprefix(_API)
        elif facts.route in _PAGE_CALLS:
            name = scope["path"].removeprefix(f"{facts.route}/")
        facts.tool = name if not name or name in self._names else OTHER


def _read_arguments(message: object) -> dict[str, Any]:
    """Return the arguments of a call, of /api or within JSON-RPC; empty if there are none."""
    for name in ("params", "arguments"):
        if isinstance(message, dict) and name in message:
            message = cast("dict[str, Any]", message)[name]
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}


def _route(path: str) -> str:
    """Return the route of a path: one of a few names, whatever callers send."""
    if path in ROUTES:
        return path
    if path.startswith(_API):
        return "/api"
    return next((route for route in _PAGE_CALLS if path.startswith(f"{route}/")), "other")


def _sent_id(scope: Scope) -> str:
    sent = [value for name, value in scope["headers"] if name.lower() == _HEADER]
    return accept_request_id(sent[0].decode("latin-1")) if len(sent) == 1 else ""


def _read_rpc(message: object) -> tuple[str, str]:
    """Return the id and the tool, or else the method, of a JSON-RPC request; empty if it is something else."""
    if not isinstance(message, dict):
        return "", ""
    fields = cast("dict[str, Any]", message)
    name, params = fields.get("method"), fields.get("params")
    if name == "tools/call" and isinstance(params, dict):
        name = cast("dict[str, Any]", params).get("name")
    return accept_request_id(str(fields.get("id", ""))), name if isinstance(name, str) else ""
