"""Memory servers: CPU time from process start to the first answer, compared with a bare server of the official SDK."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from socket import socket

from bench.histories import Histories
from bench.measure import Block, Taken, alternate, say
from bench.table import Row, Section, compare, duration

ROUNDS = 9
_MOST_STDIO_MS, _MOST_HTTP_MS = 250, 3_000
_WAIT_SECONDS = 60
_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Nine tools that do nothing: what the SDK itself needs.
_BARE = """
import sys
from mcp.server.mcpserver import MCPServer
from starlette.responses import JSONResponse
server = MCPServer("bare", log_level="ERROR")
for number in range(9):
    def tool(memory_id: str, text: str = "", limit: int = 10) -> str:
        return text
    server.add_tool(tool, name=f"tool_{number}", description="Does nothing.")
if sys.argv[1:]:
    @server.custom_route("/health", methods=["GET"])
    async def health(request):
        return JSONResponse({"status": "ok"})
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
"""
_REQUESTS = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def measure(histories: Histories) -> Section:
    """Measure both servers, each beside the SDK's."""
    script = os.path.join(os.path.dirname(sys.executable), "daypack")
    daypack = [script] if os.path.exists(script) else [sys.executable, "-m", "daypack"]
    home = ["--home", os.path.join(histories.folder, "served")]
    bare = [sys.executable, "-c", _BARE]
    say(f"servers: {ROUNDS} rounds")
    blocks: dict[str, Block] = {
        "stdio": _starting(lambda: _ask_stdio([*daypack, "mcp", *home])),
        "bare stdio": _starting(lambda: _ask_stdio(bare)),
        "http": _starting(lambda: _ask_http(lambda port: [*daypack, "serve", *home, "--port", port])),
        "bare http": _starting(lambda: _ask_http(lambda port: [*bare, port])),
    }
    series = alternate(blocks, rounds=ROUNDS, operations=1)
    rows: list[Row] = []
    for label, name, most in (
        ("daypack mcp: initialize, tools/list", "stdio", _MOST_STDIO_MS),
        ("daypack serve: /health", "http", _MOST_HTTP_MS),
    ):
        ours, beside = series[name], series[f"bare {name}"]
        ratios = compare("", ours, beside)
        spent = ours.middle("cpu")
        figures = (duration(spent), duration(beside.middle("cpu")), ratios.wall, ratios.quiet, ratios.cpu)
        target = f"CPU ≤ {most:,} ms"
        rows.append(Row(label, None, *figures, target=target, met=spent <= most * 1e6))
    notes = ("ours and beside are CPU times from the start of the process to the answer, with its children's",)
    return Section(f"Servers ({ROUNDS} rounds)", tuple(rows), notes)


def _starting(ask: Callable[[], int]) -> Block:
    """Time starts of a server until its answer; `ask` returns the CPU time that took."""

    def block(operations: int) -> Taken:
        walls: list[int] = []
        spent = 0
        for _ in range(operations):
            start = time.perf_counter_ns()
            spent += ask()
            walls.append(time.perf_counter_ns() - start)
        return Taken(walls, spent)

    return block


@contextmanager
def _started(command: Sequence[str]) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _ask_stdio(command: Sequence[str]) -> int:
    with _started(command) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        process.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in _REQUESTS))
        answer = b""
        while b'"tools"' not in answer or not answer.endswith(b"\n") or b'"id":2' not in answer.replace(b" ", b""):
            data = process.stdout.read(1 << 16)
            if not data:
                raise RuntimeError(f"{command[0]} ended before it answered: {answer[:200]!r}")
            answer += data
        return _cpu_of(process.pid)


def _ask_http(command: Callable[[str], Sequence[str]]) -> int:
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with _started(command(str(port))) as process:
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                    answer.read()
                return _cpu_of(process.pid)
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _cpu_of(pid: int) -> int:
    """Return the CPU time of a process and of its children, running and ended, in nanoseconds."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    spent = sum(int(field) for field in fields[11:15]) * _TICK
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return spent + sum(_cpu_of(int(child)) for child in file.read().split())
