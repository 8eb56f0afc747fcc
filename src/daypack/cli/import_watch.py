"""`daypack import --watch`: import what agents write as they write it, until Ctrl-C or SIGTERM."""

import argparse
import os
import select
import signal
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from daypack.cli.import_progress import short_path
from daypack.cli.terminal import counted, error_line, json_text, print_note, safe_line
from daypack.errors import BadInput, LockUnavailable
from daypack.files.lock import held_without_waiting
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.setup.past import ProjectCapture, captured_hosts
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import Found, PathsScanner, PlacesScanner, Scanner
from daypack.importers.all_places.watch import Gone, Watch
from daypack.importers.formats import ENDINGS, FORMATS, is_of_format
from daypack.importers.places import PLACES

_LOCK = "watch.lock"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(args: argparse.Namespace, format: str | None, paths: Sequence[str], places: Sequence[str]) -> int:  # noqa: A002
    """Watch paths, or places if there are none, until a signal ends it; exit code 0."""
    home = find_home(args.home, args.uid)
    for path in paths:
        if not os.path.exists(path):
            raise BadInput("no such file or folder", operation="watch", place=path, hint="create it, or name another")
    with _only_watcher(home), _Signals() as signals:
        capture = ProjectCapture(home, captured_hosts(home))
        ledger = Ledger(home, stored=not paths)
        named = set(map(os.path.abspath, paths))

        def find_new(found: Sequence[Found]) -> NewFiles:
            new = NewFiles(home, found, ledger, capture, growing=True)
            for each in new.files if paths else ():
                if each.file.path not in named and not is_of_format(format, each.file.path):
                    ledger.note_unreadable(each.file)  # another file in a folder of transcripts
            if paths:
                new.keep(lambda each: not ledger.is_done(each.file, capturing=False))
            return new

        print_note(f"watching {_describe(places, paths)}; Ctrl-C ends it")
        Watch(_scanner(format, paths, places), find_new, _Printer(json=args.json).show, signals).run()
    return 0


def _scanner(format: str | None, paths: Sequence[str], places: Sequence[str]) -> Scanner:  # noqa: A002
    if not paths:
        return PlacesScanner(places, os.environ)
    return PathsScanner(paths, FORMATS[format].endings if format else ENDINGS)


def _describe(places: Sequence[str], paths: Sequence[str]) -> str:
    return ", ".join(map(short_path, paths) if paths else (PLACES[name].title for name in places))


@contextmanager
def _only_watcher(home: Home) -> Generator[None]:
    """Hold the lock of the one watch that a home may have; the file has its process id."""
    path = os.path.join(home.folder, _LOCK)
    with held_without_waiting(path) as held:
        if not held:
            with open(path, encoding="ascii", errors="replace") as file:
                process = safe_line(file.read(20))
            raise LockUnavailable(
                f"another watch of this home is running (process {process or 'unknown'})",
                operation="watch",
                place=path,
                hint=f"end it first (kill {process or 'PID'}), or choose another home with --home",
            )
        with open(path, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        yield


class _Signals:
    """The time of a watch, which the first SIGINT or SIGTERM stops after the present file; a second one ends it."""

    def __init__(self) -> None:
        self._stopped = False
        self._read, self._write = os.pipe()

    def __enter__(self) -> "_Signals":
        self._before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(self._read)
        os.close(self._write)

    def _stop(self, *_: object) -> None:
        self._stopped = True
        os.write(self._write, b"x")
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def now(self) -> float:
        return time.monotonic()

    def cpu(self) -> float:
        return time.process_time()

    def wait(self, seconds: float) -> None:
        select.select([self._read], [], [], seconds)

    def is_stopped(self) -> bool:
        return self._stopped


class _Printer:
    """Prints a line for each import, and for each file that is gone."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def show(self, event: Done | Gone) -> None:
        if self._json:
            print(json_text(_as_json(event)), flush=True)
        elif isinstance(event, Gone):
            print_note(f"{short_path(event.path)} is {event.state}; what was imported from it stays")
        elif event.failure:
            print_note(f"not imported: {short_path(event.failure.path)}: {error_line(event.failure.problem)}")
            if event.failure.hint:
                print_note(f"  → {error_line(event.failure.hint)}")
        else:
            if event.found.place and not event.reports and event.entries:
                title = PLACES[event.found.place].title
                print(f"{title}: {counted(event.entries, 'new entry', 'new entries')}", flush=True)
            for report in event.reports:
                if report.new:
                    new = counted(report.new, "new message")
                    print(f"{safe_line(report.agent)}/{safe_line(report.session)}: {new}", flush=True)


def _as_json(event: Done | Gone) -> dict[str, object]:
    if isinstance(event, Gone):
        return {"event": event.state, "path": event.path}
    path = event.found.file.path
    if event.failure:
        return {"event": "failed", "path": path, "problem": event.failure.problem, "hint": event.failure.hint}
    sessions = [{"agent": report.agent, "session": report.session, "new": report.new} for report in event.reports]
    return {"event": "imported", "path": path, "sessions": sessions, "new": event.messages, "entries": event.entries}
