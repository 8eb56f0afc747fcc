"""The inspector: CPU time of the server for each view of a long session, and bytes and scripting of its page."""

import gzip
import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median
from typing import Any

from bench.histories import Histories
from bench.long_session import NAME, TOKENS, write_long_session
from bench.measure import Block, Taken, alternate, say
from bench.table import Row, Section, compare, duration
from tools.browser import find

sys.path.append("tests")

from browser.driver.chromium import start_chromium
from browser.driver.page import open_page

ROUNDS, OPERATIONS = 9, 10
FIRST_LOAD_BYTES = 150_000
SCRIPTING_MS = 300
BROWSER = Path(".venv", "browser")
_DRAWN = "document.querySelector('.strip svg path')"
_WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")  # seconds of the page's main thread
_TITLE = f"The page ({ROUNDS} rounds of {OPERATIONS} requests)"
_NOTES = (
    "ours: CPU time of the server for one request, with compression; beside it: a request for /health/live",
    "session: the strip with every call; call, diff: another call each time; fit: a dry run of the next call",
    "first load: shell, style, script, the list and the session with all its calls, compressed as a browser gets them",
)


class Server:
    """A running `daypack view` that is asked as a browser does."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdout is None:
            raise RuntimeError("no pipe")
        self.pid = process.pid
        self.entrance: str = json.loads(process.stdout.readline())["url"]
        self.address = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(self.entrance))
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def enter(self) -> bytes:
        """Use the one-time token up; return the shell as sent."""
        return self.get(self.entrance.partition("#")[0].removeprefix(self.address))

    def get(self, path: str) -> bytes:
        """Return the body of an answer as sent."""
        request = urllib.request.Request(
            self.address + path, headers={"Accept-Encoding": "gzip", "Accept": "text/html"}
        )
        with self._opener.open(request, timeout=120) as answer:
            return answer.read()

    def view(self, name: str, **arguments: object) -> bytes:
        """Return the answer of a view as sent."""
        query = urllib.parse.urlencode({"agent": "default", "session": NAME, **arguments})
        return self.get(f"/page/data/{name}?{query}")

    def read(self, name: str, **arguments: object) -> Any:  # noqa: ANN401 — JSON
        """Return the value of a view."""
        return json.loads(unpacked(self.view(name, **arguments)))

    def cpu(self) -> int:
        """Return the CPU time of the server so far, in nanoseconds."""
        spent = 0
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text(encoding="utf-8").split()[0])
        return spent


def unpacked(body: bytes) -> bytes:
    """Return a body without its compression."""
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def measure(histories: Histories) -> Section:
    """Write the session, start the server and ask it."""
    messages, calls = write_long_session(histories)
    with started(histories.home) as server:
        shell = server.enter()
        rows = [_cold(server, messages), *_views(server, messages, calls), _first_load(server, shell)]
    return Section(_TITLE, (*rows, *_scripting(histories.home, calls)), _NOTES)


@contextmanager
def started(home: str) -> Generator[Server]:
    """Run the server of a home."""
    command = [sys.executable, "-m", "daypack", "view", "--no-open", "--json", "--home", home]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


def _cold(server: Server, messages: int) -> Row:
    """The first look at a session folds its events; the fold is kept."""
    before = server.cpu()
    server.view("session")
    return Row("session, the first look ever", messages, duration(server.cpu() - before))


def _views(server: Server, messages: int, calls: int) -> Iterator[Row]:
    events: list[str] = [call[0] for call in server.read("session")["calls"]]
    if len(events) != calls:
        raise RuntimeError(f"{len(events)} calls are listed, {calls} were made")
    step = iter(range(1, 10**9))

    def other() -> str:
        return events[next(step) * 37 % (calls - 1) + 1]  # spread over the whole session

    asked: dict[str, tuple[Callable[[], bytes], int | None]] = {
        "session": (lambda: server.view("session"), 60),
        "call": (lambda: server.view("call", event=other()), 40),
        "diff": (lambda: server.view("diff", after=other()), 60),
        "messages": (lambda: server.view("messages", start=next(step) * 977 % messages + 1, count=200), None),
        "fit": (lambda: server.view("fit", budget=TOKENS // 2), None),
        "compactions": (lambda: server.view("compactions"), None),
    }
    say(f"page: {ROUNDS} rounds")
    blocks = {name: _block(server, ask) for name, (ask, _) in asked.items()}
    series = alternate(
        {"bare": _block(server, lambda: server.get("/health/live")), **blocks}, rounds=ROUNDS, operations=OPERATIONS
    )
    for name, (_, most_ms) in asked.items():
        spent, ratios = series[name].middle("cpu"), compare("", series[name], series["bare"])
        target = f"CPU ≤ {most_ms} ms" if most_ms else ""
        met = spent <= most_ms * 1e6 if most_ms else None
        bare = duration(series["bare"].middle("cpu"))
        yield Row(name, messages, duration(spent), bare, ratios.wall, ratios.quiet, ratios.cpu, target, met)


def _block(server: Server, ask: Callable[[], bytes]) -> Block:
    def block(operations: int) -> Taken:
        walls: list[int] = []
        before = server.cpu()
        for _ in range(operations):
            start = time.perf_counter_ns()
            ask()
            walls.append(time.perf_counter_ns() - start)
        return Taken(walls, server.cpu() - before)

    return block


def _first_load(server: Server, shell: bytes) -> Row:
    assets = re.findall(r'(?:src|href)="(/page/assets/[^"]+)"', unpacked(shell).decode())
    answers = [
        shell,
        *map(server.get, assets),
        server.get("/page/data/start"),
        server.get("/page/data/sessions"),
        server.view("session"),
    ]
    total = sum(map(len, answers))
    raw = sum(len(unpacked(answer)) for answer in answers)
    target = f"≤ {FIRST_LOAD_BYTES // 1000} kB"
    return Row(
        "first load",
        None,
        f"{total / 1000:,.0f} kB",
        f"{raw / 1000:,.0f} kB raw",
        target=target,
        met=total <= FIRST_LOAD_BYTES,
    )


def _scripting(home: str, calls: int) -> Iterator[Row]:
    """Measure what the browser does until the strip is drawn; without a browser the row says so."""
    name, program = f"strip of {calls:,} calls: CPU of the page's own work", find(BROWSER)
    if program is None:
        yield Row(name, ours="no browser")
        return
    say("page: drawing the strip in a browser")
    spent: list[float] = []
    for _ in range(ROUNDS):
        with started(home) as server, start_chromium(program) as chromium, open_page(chromium) as page:
            page.goto(f"{server.entrance}#/s/default/{NAME}")
            page.wait_for(_DRAWN)
            metrics = page.metrics()
            spent.append(sum(metrics[each] for each in _WORK) * 1e9)
    middle = median(spent)
    target, met = f"CPU ≤ {SCRIPTING_MS} ms", middle <= SCRIPTING_MS * 1e6
    yield Row(name, ours=duration(middle), beside=f"{duration(min(spent))} at best", target=target, met=met)
