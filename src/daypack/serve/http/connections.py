"""Connections: HTTP/1.1 with timeouts and strict framing, and which connection is closed when there are too many.

A caller that only holds connections open does not lock others out: a new connection replaces the oldest one that waits
for its caller (for a request, for the rest of one, or for its answer to be read), of the caller with the most.
"""

import asyncio
import select
import ssl
import time
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from daypack.serve.http.limits import Shares, caller_address
from daypack.serve.http.wire.framing import FRAMING_HINT, StrictConnection
from daypack.serve.observe.request_facts import RequestFacts
from daypack.serve.problems import Problem
from daypack.serve.reach.proxies import Proxies

if TYPE_CHECKING:
    from daypack.serve.http.turns import Call
    from daypack.serve.observe.observer import Observer

HEADER_SECONDS = 15.0
KEEP_ALIVE_SECONDS = 30
UNREAD_SECONDS = 30.0  # a caller reads so long …
_LEAST_READ_BYTES = 32 << 10  # … at least so much of an answer that is larger than its buffers
MAX_HEADER_BYTES = 64 << 10  # buffered while the headers are incomplete
_MAX_PIPELINED_BYTES = 64 << 10  # sent before the answer to an earlier request
_LOOKED_AT = 8  # candidates that are asked whether their request has just arrived
_GOODBYE_SECONDS = 1.0  # for a caller to answer the end of TLS


class Member(Protocol):
    """A connection as the table of connections sees it, whether its TLS handshake is done or not."""

    group: str
    rank: int

    @property
    def waits_since(self) -> float | None:
        """Since when the connection waits for its caller; None: the server works for it."""
        ...

    def has_input(self) -> bool:
        """Return True if bytes have arrived that were not read yet."""
        ...

    def close(self, reason: str) -> None:
        """Close the connection and count the reason."""
        ...


class Connections:
    """The open connections of a server, grouped by caller: a user or, before a token was accepted, an address."""

    def __init__(self, shares: Shares, observer: "Observer", proxies: Proxies) -> None:
        self.proxies = proxies
        self.usage = shares.usage
        self.observer = observer
        self._most, self._most_per_caller = shares.limits.connections, shares.limits.connections_per_caller
        self._open: set[Member] = set()
        self._sizes: Counter[str] = Counter()

    def add(self, connection: Member) -> None:
        """Add a new connection; if there are too many, close others."""
        self._open.add(connection)
        self._sizes[connection.group] += 1
        self._make_room(connection)

    def discard(self, connection: Member) -> None:
        """Forget a connection."""
        if connection in self._open:
            self._open.remove(connection)
            self._leave_group(connection.group)

    def move(self, connection: Member, group: str) -> None:
        """Count a connection for another caller."""
        if connection in self._open and connection.group != group:
            self._leave_group(connection.group)
            self._sizes[group] += 1
            connection.group = group
            self._make_room(connection)

    def _leave_group(self, group: str) -> None:
        self._sizes[group] -= 1
        if not self._sizes[group]:
            del self._sizes[group]

    def close_waiting(self) -> None:
        """Close the connections that wait for their caller: for the rest of a request, or for it to read its answer."""
        for connection in [each for each in self._open if each.waits_since is not None]:
            connection.close("shutdown")

    def _make_room(self, newest: Member) -> None:
        if self._sizes[newest.group] > self._most_per_caller:
            self._close_oldest(newest.group, newest)
        if len(self._open) > self._most:
            for group, _ in self._sizes.most_common():
                if self._close_oldest(group, newest):
                    return

    def _close_oldest(self, group: str, newest: Member) -> bool:
        group_members = (each for each in self._open if each.group == group and each is not newest)
        waiting = [each for each in group_members if each.waits_since is not None]
        oldest = nsmallest(_LOOKED_AT, waiting, key=lambda each: (each.rank, each.waits_since))
        chosen = next((each for each in oldest if not each.has_input()), oldest[0] if oldest else None)
        if chosen is None:
            return False
        self.discard(chosen)
        chosen.close("too many")
        return True


class Connection(H11Protocol):
    """One connection. uvicorn limits the size of headers; this adds their time, strict framing and problems as JSON."""

    def __init__(self, connections: Connections, **options: Any) -> None:  # noqa: ANN401 — uvicorn's
        super().__init__(**options)
        self.conn = StrictConnection(h11.SERVER, MAX_HEADER_BYTES)
        self.group = ""
        self.rank = 0  # 1: has been answered, 2: with a token or as a user of this machine
        self.since: float | None = None  # since when it waits for its caller; None: the server works for it
        self.call: Call | None = None
        self._connections = connections
        self._timeout: TimerHandle | None = None
        self._unread_since: float | None = None  # since when its caller does not read what was answered
        self._unread_timeout: TimerHandle | None = None
        self._request: object = None
        answer = self.app

        async def answer_here(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
            scope["daypack.connection"] = self
            connections.proxies.apply(scope)
            await answer(scope, receive, send)

        self.app = answer_here

    # What happens to it

    def connection_made(self, transport: Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take the connection into the table; it has limited time for its first request."""
        super().connection_made(transport)
        self.group = caller_address(self.client[0]) if self.client else ""
        self.since = time.monotonic()
        self._update_timeout()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the call that was in progress."""
        self._connections.discard(self)
        for timeout in (self._timeout, self._unread_timeout):
            if timeout is not None:
                timeout.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._leave_call()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._update_timeout()
        self._update_since()
        working = self.since is None and not self.transport.is_closing()
        if working and self.flow.read_paused:  # a disconnect is noticed only while reading
            if len(self.conn.trailing_data[0]) > _MAX_PIPELINED_BYTES:
                self.close("pipelined")
            else:
                self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Wait for the next request; the connection now counts for its user."""
        if self.call is not None:
            self.rank = 2
            self._connections.move(self, f"user {self.call.caller.user}")
        else:
            self.rank = max(self.rank, 1)
        self.call = None
        self.since = time.monotonic()
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:  # uvicorn's would wait until the answer is read
            self.timeout_keep_alive_task.cancel()
            self._expect_request()
        self._update_since()

    def pause_writing(self) -> None:
        """Limit the time of a caller that does not read: later answers, and their calls, wait for it."""
        super().pause_writing()
        self._unread_since = time.monotonic()
        self._expect_reading()

    def resume_writing(self) -> None:
        """The caller has read what was sent."""
        super().resume_writing()
        self._unread_since = None
        if self._unread_timeout is not None:
            self._unread_timeout.cancel()

    def shutdown(self) -> None:
        """Close the connection if it is idle; a request that has arrived, or is about to, is still answered.

        Called when the server does not accept connections any more. Answers now end their connection.
        """
        is_idle = not self.cycle or self.cycle.response_complete
        if not is_idle or (self.cycle and not self.has_input()):
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP with the documented JSON, and close the connection."""
        self._connections.usage.refused["malformed"] += 1
        cycle = self.cycle
        if cycle and not cycle.response_complete:  # the body is malformed, and the request is being read
            cycle.disconnected = True
            cycle.message_event.set()
            self._leave_call()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            problem = self.conn.problem or Problem(400, "BadInput", msg, FRAMING_HINT)
            body, facts = problem.body, RequestFacts("http", "other")
            facts.client, facts.error = self.client[0] if self.client else "", problem.code
            self._connections.observer.finished(facts, problem.status, time.monotonic())
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"x-request-id", facts.request_id.encode()),
                (b"connection", b"close"),
            ]
            response = h11.Response(status_code=problem.status, headers=headers, reason=STATUS_PHRASES[problem.status])
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # What the table of connections asks

    @property
    def waits_since(self) -> float | None:
        """Since when the connection waits for its caller; None: the server works for it."""
        return self._unread_since if self.since is None else self.since

    def has_input(self) -> bool:
        """Return True if bytes have arrived that were not read yet."""
        return _has_input(self.transport)

    def close(self, reason: str) -> None:
        """Close the connection and count the reason; what its caller did not read is dropped."""
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            return
        self._connections.usage.closed[reason] += 1
        # The end of TLS waits for the caller, and the file is needed for another connection.
        if self.transport.get_write_buffer_size() or self.scheme == "https":
            self.transport.abort()
        else:
            self.transport.close()

    def _expect_request(self) -> None:
        def close_if_read() -> None:
            if self._unread_since is None:
                self.close("idle")
            else:  # a large answer on its way has a limit of its own
                self._expect_request()

        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, close_if_read)

    def _expect_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()

        def close_unless_read() -> None:
            if self.transport.get_write_buffer_size() > unread - _LEAST_READ_BYTES:
                self.close("unread")
            else:
                self._expect_reading()

        self._unread_timeout = self.loop.call_later(UNREAD_SECONDS, close_unless_read)

    def _leave_call(self) -> None:
        if self.call is not None:
            self.call.leave()
            self.call = None

    def _update_since(self) -> None:
        cycle = self.cycle
        if not cycle or cycle.response_complete:
            return
        if not cycle.more_body:
            self.since = None
        elif cycle is not self._request:  # measured from its headers: a body that trickles does not stay young
            self.since = time.monotonic()
        self._request = cycle

    def _update_timeout(self) -> None:
        waiting = self.conn.their_state is h11.IDLE
        if waiting and self._timeout is None:
            self._timeout = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)
        elif not waiting and self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _close_if_idle(self) -> None:
        self._timeout = None
        if self.conn.their_state is h11.IDLE:
            self.close("slow headers")


class Handshake(asyncio.Protocol):
    """A connection before its TLS handshake is done: it has a place in the table, which others may need.

    asyncio's own TLS servers have no limit for the number of connections in this state, and one of a minute for each.
    """

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        connection: Callable[..., Connection],
        **options: Any,  # noqa: ANN401 — uvicorn's
    ) -> None:
        self.group = ""
        self.rank = 0
        self._connections = connections
        self._context = context
        self._connection = connection(**options)
        self._all = self._connection.connections
        self._since = time.monotonic()
        self._received = b""  # a request may arrive with the end of the handshake
        self._shaking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection into the table and begin the handshake."""
        assert isinstance(transport, Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        self.group = caller_address(str(address[0])) if address else ""
        self._all.add(self)  # pyright: ignore[reportArgumentType] — closed by its `shutdown`
        self._connections.add(self)
        self._shaking = asyncio.get_running_loop().create_task(self._shake_hands())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 — asyncio's
        """Forget the connection."""
        self._leave()

    def data_received(self, data: bytes) -> None:
        """Keep what was sent right after the handshake."""
        self._received += data

    def shutdown(self) -> None:
        """Close it: the server ends, and no request has arrived yet."""
        self._transport.abort()

    @property
    def waits_since(self) -> float | None:
        """Since when the handshake lasts."""
        return self._since

    def has_input(self) -> bool:
        """Return True if bytes have arrived that were not read yet."""
        return _has_input(self._transport)

    def close(self, reason: str) -> None:
        """Close the connection and count the reason."""
        self._connections.usage.closed[reason] += 1
        self._transport.abort()

    async def _shake_hands(self) -> None:
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                self._transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HEADER_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except (
            OSError,
            ssl.SSLError,
        ):  # not TLS, a version that is too old, a certificate that is not trusted, or late
            self._transport.abort()
            encrypted = None
        finally:
            self._leave()
        if encrypted is not None and not encrypted.is_closing():
            encrypted.set_protocol(self._connection)
            self._connection.connection_made(encrypted)
            if self._received:
                self._connection.data_received(self._received)

    def _leave(self) -> None:
        self._connections.discard(self)
        self._all.discard(self)  # pyright: ignore[reportArgumentType]


def _has_input(transport: Transport) -> bool:
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return False
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return any(events & select.POLLIN and not events & select.POLLHUP for _, events in poller.poll(0))
