"""MCP over standard input and output: a loop that is ready before a client's first request, because it needs little.

One message per line. The loop answers what it knows by itself and hands the rest to the lanes, so that a ping is
answered while a search runs. Nothing but messages reaches the client: whatever is printed goes to standard error.
"""

import os
import sys
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, cast

from daypack.serve.stdio import jsonrpc
from daypack.serve.stdio.calls import Batch, Call, Calls, Job, Reply
from daypack.serve.stdio.jsonrpc import INVALID_REQUEST, Fault, Id, Notification, Params, Request
from daypack.serve.stdio.lifecycle import Lifecycle, dress
from daypack.serve.stdio.workers import Lanes

if TYPE_CHECKING:
    from daypack.serve.stdio.requests import Offer

MAX_LINE_BYTES = 64 << 20  # of one message; a tool says more exactly what is too long for it
_GRACE_SECONDS = 1.0  # for calls that run when the server is told to end


class Ended(BaseException):
    """The server was told to end."""


class Wire:
    """Where lines go to. Threads may write; each line goes out whole."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = Lock()
        self.broken = False

    def send(self, line: bytes) -> None:
        """Write a line. When nobody reads any more it is dropped, and so is all that follows."""
        with self._lock:
            if self.broken:
                return
            try:
                self._sink.write(line + b"\n")
                self._sink.flush()
            except (OSError, ValueError):
                self.broken = True

    def is_read(self) -> bool:
        """Say whether somebody is still there to read."""
        from select import POLLERR, poll  # noqa: PLC0415 — at the end only

        try:
            watch = poll()
            watch.register(self._sink.fileno(), POLLERR)
            return not self.broken and not any(seen & POLLERR for _, seen in watch.poll(0))
        except (OSError, ValueError):  # no descriptor stands behind it
            return not self.broken


class Conversation:
    """One client: what has been agreed, what is being done for it."""

    def __init__(self, offer: "Offer", wire: Wire) -> None:
        self._offer = offer
        self._wire = wire
        self._lifecycle = Lifecycle(offer.instructions)
        self._calls = Calls(wire.send)
        self.lanes = Lanes()

    def take(self, line: bytes) -> None:
        """Take one line: a message, or in one version an array of them."""
        try:
            value = jsonrpc.read_line(line)
            if isinstance(value, list):
                self._take_batch(cast("list[object]", value))
                return
        except Fault as fault:
            self._wire.send(jsonrpc.write_fault(None, fault))
            return
        self._take_one(value, self._reply)

    def refuse(self, problem: str) -> None:
        """Tell of a line that was not read."""
        self._wire.send(jsonrpc.write_fault(None, Fault(INVALID_REQUEST, "Invalid Request", problem)))

    def _take_batch(self, values: list[object]) -> None:
        if not self._lifecycle.batches:
            raise Fault(INVALID_REQUEST, "Invalid Request", "this version of the protocol has no batches")
        if not values:
            raise Fault(INVALID_REQUEST, "Invalid Request", "the batch is empty")
        batch = Batch(len(values), self._wire.send)
        for value in values:
            self._take_one(value, batch.reply)

    def _take_one(self, value: object, reply: Reply) -> None:
        try:
            message = jsonrpc.read_message(value)
        except Fault as fault:
            reply(jsonrpc.write_fault(fault.id, fault))
            return
        if isinstance(message, Request):
            self._answer(message, reply)
            return
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            self._calls.cancel(message.params.get("requestId"))
        reply(None)

    def _answer(self, request: Request, reply: Reply) -> None:
        method, params = request.method, request.params
        try:
            version = self._lifecycle.admit(method, params)
            known = self._known(method, params)
            job = self._offer.prepare(method, params) if known is None else Job(lambda: known, at_once=True)
        except Fault as fault:
            reply(jsonrpc.write_fault(request.id, fault))
            return
        call = Call(request.id, lambda: dress(version, method, job.work()), reply, _progress_token(params))
        if job.at_once:
            call.run()
            return
        self._calls.add(call)

        def run() -> None:
            call.run()
            self._calls.remove(call)

        self.lanes.put(run, writing=job.writes)

    def _known(self, method: str, params: Params) -> dict[str, Any] | None:
        """Return what can be answered without work."""
        if method == "initialize":
            return self._lifecycle.initialize(params)
        if method == "server/discover":
            return self._lifecycle.discover()
        return {} if method == "ping" else None

    def _reply(self, line: bytes | None) -> None:
        if line is not None:
            self._wire.send(line)


def serve(offer: "Offer", source: BinaryIO, sink: BinaryIO) -> bool:
    """Answer every line of a source until it ends or somebody ends it; say whether all calls were done by then."""
    wire = Wire(sink)
    conversation = Conversation(offer, wire)
    try:
        while not wire.broken and (line := source.readline(MAX_LINE_BYTES)):
            if not line.endswith(b"\n") and len(line) >= MAX_LINE_BYTES:
                _skip_line(source)
                conversation.refuse(f"a message has at most {MAX_LINE_BYTES:,} bytes")
            elif not line.isspace():
                conversation.take(line)
        # No more requests: what was asked for is still answered, as long as somebody reads it.
        return conversation.lanes.drain(go_on=wire.is_read)
    except Ended:
        return conversation.lanes.drain(_GRACE_SECONDS)


def run(offer: "Offer") -> NoReturn:
    """Serve this process's standard streams until the client goes, or ends it by a signal; then end the process."""
    import signal  # noqa: PLC0415 — with the enumerations it brings, 2 ms

    def end(_signal: int, _frame: object) -> NoReturn:
        raise Ended

    endings = (signal.SIGTERM, signal.SIGINT)  # some clients end a server by the latter
    done = False
    try:
        for one in endings:
            signal.signal(one, end)
        done = serve(offer, *_take_streams())
    except Ended:  # before it began, or while it was ending
        pass
    finally:
        for one in endings:
            signal.signal(one, signal.SIG_IGN)  # it is ending already
    if done:
        offer.close()
    # At once: clients wait a tenth of a second before they use force. Where a call still runs in a thread, what it
    # wrote is in the store, or nothing of it is.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def _skip_line(source: BinaryIO) -> None:
    while (part := source.readline(1 << 20)) and not part.endswith(b"\n"):
        pass


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for the wire: from now on who prints prints to standard error, and who reads
    finds nothing; so do programs that are started.

    They are never closed: a thread may still write when the loop has ended.
    """
    source, sink = (fcntl(number, F_DUPFD_CLOEXEC, 3) for number in (0, 1))  # 2 may be free
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
    os.close(nothing)
    return os.fdopen(source, "rb", closefd=False), os.fdopen(sink, "wb", closefd=False)


def _progress_token(params: Params) -> Id | None:
    meta = params.get("_meta")
    token = cast("dict[str, Any]", meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, (int, str)) and not isinstance(token, bool) else None
