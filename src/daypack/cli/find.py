"""Search all sessions of all agents: what was said, done and printed, best matches first.
Each result has the command that shows it in its session."""

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict, astuple

from daypack.cli.options import add_store, existing_agent, find_sessions, natural
from daypack.cli.progress_bar import ProgressBar
from daypack.cli.suggested import place_given
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, shell_word, terminal_width
from daypack.text.columns import age, columns
from daypack.types.kinds import ROLES

if TYPE_CHECKING:
    from daypack.upkeep.find import Filters, Found, Hit
    from daypack.upkeep.find.update import Progress

_INDENT = "    "
_PIPE_COLUMNS = 160  # of a line, where output is not a terminal
_ANNOUNCED = 2_000  # messages to index; fewer take no time
_MOST_WORDS = 8  # of a query that a note lists
_WORD_CHARS = 20  # so much shorter a cut line may get, to end between words
_MIDDLE = 0.4  # where in a cut line the first match is


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("query", nargs="+", help="words, a question, a path, a name or a number to search for")
    parser.add_argument("--agent", action="append", default=[], metavar="NAME", help="only sessions of this agent")
    parser.add_argument("--project", metavar="DIR|NAME", default="", help="only sessions in this repository")
    parser.add_argument("--since", metavar="TIME", default="", help="only from this time on: 2026-11-01, yesterday, 7d")
    parser.add_argument("--until", metavar="TIME", default="", help="only up to this time")
    parser.add_argument("--role", action="append", default=[], choices=ROLES, help="only messages with this role")
    parser.add_argument("-k", metavar="N", type=natural, default=10, help="number of results (default: %(default)s)")
    parser.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Print the best matches; exit code 1 if there are none."""
    from daypack.upkeep.find import Filters, find  # noqa: PLC0415 — 30 ms that help does without

    home = find_sessions(args)
    place = [word for option in place_given(args).items() for word in option]
    agents = tuple(existing_agent(home, name) for name in args.agent)
    filters = Filters(agents=agents, project=args.project, roles=tuple(args.role), since=args.since, until=args.until)
    with _Indexing() as indexing:
        found = find(home, " ".join(args.query), filters, limit=args.k, on_progress=indexing.show)
    if args.json:
        print(json_text([_fields(hit, place) for hit in found.hits]))
    else:
        _print(found, place)
    _print_notes(found, filters, is_json=args.json)
    return 0 if found.hits else 1


def _print_notes(found: "Found", filters: "Filters", *, is_json: bool) -> None:
    """Print what a reader should know about the results, or why there are none."""
    if not found.complete:
        print_note("another process is indexing: its newest messages were not searched; try again in a moment")
    if is_json:
        return
    if found.absent:
        words = ", ".join(map(safe_line, found.absent[:_MOST_WORDS]))
        print_note(f"no session mentions: {words}{' …' if len(found.absent) > _MOST_WORDS else ''}")
    if found.weak and found.hits:
        print_note("only weak matches: each has few of the words, so only the best are shown")
    if not found.hits:
        scope = f"{counted(found.messages, 'message')} of {counted(found.sessions, 'session')}"
        hint = (
            "" if found.sessions or any(astuple(filters)) else " (`daypack import --all` imports those of your agents)"
        )
        print_note(f"nothing found in {scope}{hint}")


class _Indexing:
    """Shows how far indexing is; that of many messages is announced."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None

    def __enter__(self) -> "_Indexing":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__()
            if kind is KeyboardInterrupt:
                print_note("what was indexed is kept: the next `daypack find` continues there")

    def show(self, progress: "Progress") -> None:
        """Draw the bar."""
        text = f"indexing {counted(progress.sessions, 'session')}: {progress.done:,} of {progress.total:,} messages"
        if self._bar is None:
            if progress.total < _ANNOUNCED:
                return
            self._bar = ProgressBar(progress.total)
            print_note(f"{text} (this happens once; later only what is new)")
        self._bar.show(progress.done, text)


def _print(found: "Found", place: Sequence[str]) -> None:
    now = time.time()
    for number, hit in enumerate(found.hits):
        if number:
            print()
        parts = (hit.project, age(hit.ts, now), hit.role)
        print(" · ".join((colour(safe_line(hit.agent), "cyan"), *(safe_line(part) for part in parts if part))))
        print(f"{_INDENT}{_draw(hit, terminal_width(_PIPE_COLUMNS) - len(_INDENT))}")
        print(f"{_INDENT}{colour(_command(hit.short_command, place), 'dim')}")
        if counts := _counts(hit):
            print(f"{_INDENT}{colour(counts, 'dim')}")


def _counts(hit: "Hit") -> str:
    """Return what is not shown, as a comment of the shell: it does no harm if it is copied with the command."""
    more = f"{hit.more:,} more in this session" if hit.more else ""
    same = f"the same in {counted(hit.same, 'other session')}" if hit.same else ""
    return f"# {', '.join(filter(None, (more, same)))}" if more or same else ""


def _command(words: Sequence[str], place: Sequence[str]) -> str:
    return " ".join(map(shell_word, (*words, *place)))


def _draw(hit: "Hit", width: int) -> str:
    """Return the best line with its matches highlighted; of a long line, the part around the first match."""
    line = hit.line
    first = hit.marks[0][0] if hit.marks else 0
    start, stop = 0, len(line)
    if columns(line) > width:
        start = _word_start(line, max(0, min(first - int(_MIDDLE * width), len(line) - width)), first)
        stop = min(len(line), start + width - 2)
        while columns(line[start:stop]) > width - 2 and stop > start:
            stop -= max(1, (columns(line[start:stop]) - width + 2) // 2)
        if stop < len(line):
            space = line.rfind(" ", stop - _WORD_CHARS, stop + 1)
            stop = space if space > first else stop
    shown: list[str] = []
    at = start
    for begin, end in hit.marks:
        if begin >= at and end <= stop:
            shown += (safe_line(line[at:begin]), colour(safe_line(line[begin:end]), "yellow"))
            at = end
    shown.append(safe_line(line[at:stop]))
    return f"{'…' if start else ''}{''.join(shown)}{'…' if stop < len(line) else ''}"


def _word_start(line: str, start: int, first: int) -> int:
    """Return where the next word begins, if that is near and not after the first match."""
    space = line.find(" ", start - 1, min(first, start + _WORD_CHARS)) if start else -1
    return space + 1 if space >= 0 else start


def _fields(hit: "Hit", place: Sequence[str]) -> dict[str, object]:
    return {**asdict(hit), "id": hit.id, "command": _command(hit.command, place)}
