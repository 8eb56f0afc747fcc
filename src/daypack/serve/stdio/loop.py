"""The MCP server loop on standard input and output. It imports little, so that it is ready before the first request.

One message per line. The loop answers trivial requests itself and queues the rest for the workers, so that a ping is
answered while a search runs. Only messages reach the client: anything printed goes to standard error.
"""

import os
import sys
import time
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from threading import Lock
from typing import Any, BinaryIO, NoReturn, cast

from daypack.serve.mcp import jsonrpc
from daypack.serve.mcp.jsonrpc import INVALID_REQUEST, Id, Notification, Params, Request, RpcError
from daypack.serve.mcp.lifecycle import Lifecycle, add_version_fields
from daypack.serve.mcp.router import Job, Router
from daypack.serve.observe.log import log
from daypack.serve.observe.observer import Observer
from daypack.serve.observe.request_facts import RequestFacts, accept_request_id
from daypack.serve.stdio.calls import Batch, Call, Calls, Reply
from daypack.serve.stdio.workers import Workers

MAX_LINE_BYTES = 64 << 20  # of one message; tools have smaller limits of their own
_GRACE_SECONDS = 1.0  # for running calls when the server is terminated
_LOG_SECONDS = 0.05  # for the last log lines: clients wait a tenth of a second before they send SIGKILL
_TRIVIAL = ("initialize", "server/discover", "ping")


class Terminated(BaseException):
    """The process received SIGTERM or SIGINT."""


class Output:
    """The stream of outgoing lines. Safe for threads: each line is written as a whole."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = Lock()
        self.broken = False

    def send(self, line: bytes) -> None:
        """Write a line. After the client has closed its end, this and all later lines are dropped."""
        with self._lock:
            if self.broken:
                return
            try:
                self._sink.write(line + b"\n")
                self._sink.flush()
            except (OSError, ValueError):
                self.broken = True

    def has_reader(self) -> bool:
        """Return True while the client keeps its end open."""
        from select import POLLERR, poll  # noqa: PLC0415 — only needed at the end

        try:
            poller = poll()
            poller.register(self._sink.fileno(), POLLERR)
            return not self.broken and not any(events & POLLERR for _, events in poller.poll(0))
        except (OSError, ValueError):  # the stream has no file descriptor
            return not self.broken


class Conversation:
    """The messages exchanged with one client."""

    def __init__(self, router: Router, output: Output, observer: Observer) -> None:
        self._router = router
        self._observer = observer
        self._output = output
        self._lifecycle = Lifecycle(router.instructions)
        self._calls = Calls(output.send)
        self.workers = Workers()

    def receive(self, line: bytes) -> None:
        """Process a line: one message, or an array of messages where the version allows it."""
        try:
            value = jsonrpc.read_line(line)
            if isinstance(value, list):
                self._receive_batch(cast("list[object]", value))
                return
        except RpcError as error:
            self._output.send(jsonrpc.write_error(error.id, error))
            return
        self._receive_message(value, self._reply)

    def reject(self, problem: str) -> None:
        """Send the error for a line that was not parsed."""
        self._output.send(jsonrpc.write_error(None, RpcError(INVALID_REQUEST, "Invalid Request", problem)))

    def _receive_batch(self, values: list[object]) -> None:
        if not self._lifecycle.allows_batches:
            raise RpcError(INVALID_REQUEST, "Invalid Request", "this protocol version has no batches")
        if not values:
            raise RpcError(INVALID_REQUEST, "Invalid Request", "the batch is empty")
        batch = Batch(len(values), self._output.send)
        for value in values:
            self._receive_message(value, batch.reply)

    def _receive_message(self, value: object, reply: Reply) -> None:
        try:
            message = jsonrpc.read_message(value)
        except RpcError as error:
            reply(jsonrpc.write_error(error.id, error))
            return
        if isinstance(message, Request):
            self._answer(message, reply)
            return
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            self._calls.cancel(message.params.get("requestId"))
        reply(None)

    def _answer(self, request: Request, reply: Reply) -> None:
        method, params = request.method, request.params
        started = time.monotonic()
        facts = self._facts(request)
        try:
            version = self._lifecycle.check_request(method, params)
            result = self._answer_trivial(method, params)
            job = self._router.route(method, params) if result is None else Job(lambda: result, at_once=True)
        except RpcError as error:
            facts.error, facts.status = "RpcError", 400
            reply(jsonrpc.write_error(request.id, error))
            self._observer.finished(facts, facts.status, started)
            return
        call = Call(request.id, lambda: add_version_fields(version, method, job.work()), reply, facts)
        call.token = _progress_token(params)

        def run() -> None:
            call.run()
            self._observer.finished(facts, facts.status, started)

        if job.at_once:
            run()
            return
        self._calls.add(call)

        def run_queued() -> None:
            run()
            self._calls.remove(call)

        self.workers.put(run_queued, writing=job.writes)

    def _facts(self, request: Request) -> RequestFacts:
        facts = RequestFacts("stdio", "stdio")
        facts.user = self._observer.user
        facts.rpc_id = accept_request_id(str(request.id))
        known = request.method in self._router.methods
        facts.tool = request.method if known or request.method in _TRIVIAL else "other"
        if request.method == "tools/call":
            name = request.params.get("name")
            facts.tool = name if isinstance(name, str) and name in self._router.tools else "other"
        return facts

    def _answer_trivial(self, method: str, params: Params) -> dict[str, Any] | None:
        """Return the result of a request that needs no work, or None for all others."""
        if method == "initialize":
            return self._lifecycle.initialize(params)
        if method == "server/discover":
            return self._lifecycle.discover()
        return {} if method == "ping" else None

    def _reply(self, line: bytes | None) -> None:
        if line is not None:
            self._output.send(line)


def serve(router: Router, source: BinaryIO, sink: BinaryIO, observer: Observer | None = None) -> bool:
    """Answer lines until the input ends or the process is terminated; return True if all calls were finished."""
    output = Output(sink)
    conversation = Conversation(router, output, observer or Observer())
    try:
        while not output.broken and (line := source.readline(MAX_LINE_BYTES)):
            if not line.endswith(b"\n") and len(line) >= MAX_LINE_BYTES:
                _skip_line(source)
                conversation.reject(f"a message may have at most {MAX_LINE_BYTES:,} bytes")
            elif not line.isspace():
                conversation.receive(line)
        # No more requests: calls still running are answered as long as the client reads.
        return conversation.workers.drain(keep_waiting=output.has_reader)
    except Terminated:
        return conversation.workers.drain(_GRACE_SECONDS)


def run(router: Router, observer: Observer) -> NoReturn:
    """Serve standard input and output until the client disconnects or sends a signal; then exit the process."""
    import signal  # noqa: PLC0415 — costs 2 ms with its enums

    def terminate(_signal: int, _frame: object) -> NoReturn:
        raise Terminated

    signals = (signal.SIGTERM, signal.SIGINT)  # some clients send SIGINT
    done = False
    try:
        for number in signals:
            signal.signal(number, terminate)
        done = serve(router, *_claim_streams(), observer)
    except Terminated:  # before the loop started, or during its shutdown
        pass
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)  # already exiting
    if done:
        router.close()
    # Exit at once: clients wait a tenth of a second before they send SIGKILL. A call that is still running in a thread
    # has committed its write or has not.
    log.flush(_LOG_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def _skip_line(source: BinaryIO) -> None:
    while (part := source.readline(1 << 20)) and not part.endswith(b"\n"):
        pass


def _claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private copies of standard input and output, and point the originals elsewhere.

    From now on, in this process and its children, prints go to standard error and reads find nothing. The copies are
    never closed: a thread may still write after the loop has ended.
    """
    source, sink = (fcntl(number, F_DUPFD_CLOEXEC, 3) for number in (0, 1))  # from 3: descriptor 2 may be unused
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(null, 1)
    os.close(null)
    return os.fdopen(source, "rb", closefd=False), os.fdopen(sink, "wb", closefd=False)


def _progress_token(params: Params) -> Id | None:
    meta = params.get("_meta")
    token = cast("dict[str, Any]", meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, (int, str)) and not isinstance(token, bool) else None
