"""Erase a secret, a message or a memory entry from every file of sessions and memories.

Without --apply only the plan is shown: what would change, which replays would no longer verify, what is not reached.
"""

import argparse
from collections.abc import Callable, Sequence

from daypack.cli.input import read_text
from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, find_name, shown_of
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.memory.audit_log.record import acting
from daypack.memory.store.port import Rewritten
from daypack.upkeep.erase.apply import Applied, apply, ranges
from daypack.upkeep.erase.plan import Plan, Request, plan
from daypack.upkeep.erase.scope import Elsewhere
from daypack.upkeep.erase.session_rewrite import SessionPlan

_MOST_PATHS = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "session", nargs="?", help="name of the session; its child sessions and its memory are included"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--literal", metavar="TEXT", help="erase this text wherever it occurs; - reads it from stdin")
    what.add_argument("--literal-file", metavar="FILE", help="erase the text in this file, so that no shell records it")
    what.add_argument("--ask", action="store_true", help="ask for the text without showing it")
    what.add_argument(
        "--message", metavar="SEQ", help="erase the content of this message (12 or msg-12) and its copies"
    )
    what.add_argument("--entry", metavar="ID", help="erase the text of this entry of a memory and its copies there")
    parser.add_argument("--all", action="store_true", help="all sessions, live and archived, and all memories")
    parser.add_argument("--memory", metavar="MEMORY", help="also this memory, by id or title")
    parser.add_argument("--apply", action="store_true", help="erase (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    parser.add_argument("--force", action="store_true", help="erase a literal of fewer than 6 characters")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Show the plan or apply it; exit code 1 if nothing was found or something remains."""
    if args.plan and not args.apply:
        hint = "erase … --apply --plan ID"
        raise BadInput("--plan requires --apply", operation="erase", place="arguments", hint=hint)
    if args.session:
        args.session = find_name(args, args.session)
    request = Request(
        literal=_read_literal(args),
        message=args.message,
        entry=args.entry,
        agent=args.agent,
        session=args.session,
        everywhere=args.all,
        memory=args.memory,
        force=args.force,
    )
    home = find_home(args.home, args.uid)
    if args.apply:
        with acting("cli"):
            return _print_applied(shown_of(home, apply(home, request, args.plan)), args)
    return _print_planned(shown_of(home, plan(home, request)), args)


def _read_literal(args: argparse.Namespace) -> str | None:
    if args.ask:
        import getpass  # noqa: PLC0415 — only here

        try:
            return getpass.getpass("text to erase: ")
        except EOFError:
            raise BadInput("no text was given", operation="erase", place="--ask", hint="type it, then Enter") from None
    if args.literal_file is not None:
        return _without_newline(read_text(args.literal_file, "erase"))
    return _without_newline(read_text("-", "erase")) if args.literal == "-" else args.literal


def _without_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _print_planned(planned: Plan, args: argparse.Namespace) -> int:
    if args.json:
        print(json_text({"plan": planned, "applied": None}))
        return EXIT_FAILED if planned.is_empty else 0
    for session in planned.sessions:
        _print_session(session, lambda _: "would no longer verify")
    _print_memories(planned.memories)
    _print_elsewhere(planned.elsewhere, "not reached")
    _mention_all(planned.elsewhere, args)
    if planned.is_empty:
        print("nothing found; nothing to erase")
        if any(found.is_certain for found in planned.elsewhere):
            print_note("only backups hold it: --apply records that it is erased, so that no restore brings it back")
        return EXIT_FAILED
    print(f"plan {planned.id}: {_total(planned.sessions, planned.memories)}")
    scope = "--all" if args.all else shell_word(args.session) if args.session else ""
    print_note(f"erase with `daypack erase {scope} … --apply --plan {planned.id}`; it cannot be undone")
    return 0


def _print_applied(applied: Applied, args: argparse.Namespace) -> int:
    empty = not applied.sessions and not applied.memories
    if args.json:
        print(json_text({"plan": applied.plan, "applied": applied}))
        return EXIT_FAILED if empty or applied.remaining else 0
    for done in applied.sessions:
        _print_session(done.plan, lambda turns: "no longer verifies" if turns == 1 else "no longer verify")
        if done.changed:
            print_note(
                f"{safe_line(done.plan.session)} has changed since the plan was made: what is there now was erased"
            )
    _print_memories(applied.memories)
    unknown = [
        found for found in applied.plan.elsewhere if found.is_remote or (found.is_backup and not found.is_certain)
    ]
    _print_elsewhere(unknown, "not reached")
    _print_elsewhere(applied.remaining, "still there")
    if empty:
        print("nothing found; nothing was erased")
        if applied.marker:
            print_note("only backups hold it: a restore of them will refuse it; delete them when you can")
        return EXIT_FAILED
    events = ", ".join(f"{safe_line(done.plan.session)} {done.event}" for done in applied.sessions)
    recorded = f"; recorded as {events}" if events else ""
    total = _total([done.plan for done in applied.sessions], applied.memories)
    print(f"{colour('erased', 'green')} {total}, replaced by {applied.marker}{recorded}")
    if applied.remaining:
        _mention_all(applied.remaining, args)
        print_note("some files still hold it: see above; erase changes no backup and no other copy")
        return EXIT_FAILED
    return 0


def _print_session(found: SessionPlan, verdict: Callable[[int], str]) -> None:
    print(f"{safe_line(found.agent)}/{safe_line(found.session)}: {counted(found.matches, 'match', 'matches')}")
    marked = _numbers(found.marked) if found.marked else ""
    rows = [
        ("messages", f"{counted(len(found.messages), 'line')}: {ranges(found.messages)}" if found.messages else ""),
        ("events", f"{counted(len(found.events), 'line')}: {_numbers(found.events)}" if found.events else ""),
        ("marked", f"{counted(len(found.marked), 'event')} without the text: {marked}" if marked else ""),
        ("blobs", str(found.blobs or "")),
        ("files", _paths(found.files)),
        ("derived", f"{_paths(found.derived)} (all of context/ is made again)" if found.derived else ""),
        ("replays", f"{_numbers(found.turns)} {verdict(len(found.turns))}" if found.turns else ""),
    ]
    for name, text in rows:
        if text:
            print(f"  {name:<9} {text}")


def _print_memories(memories: Sequence[Rewritten]) -> None:
    for memory in memories:
        parts = [counted(memory.entries, "entry", "entries"), counted(memory.documents, "document version")]
        fields = [counted(memory.fields, "other field")] if memory.fields else []
        print(f"memory {safe_line(memory.title)} ({memory.memory_id}): {', '.join([*parts, *fields])}")


def _print_elsewhere(found: Sequence[Elsewhere], label: str) -> None:
    for file in found[:_MOST_PATHS]:
        print(f"{colour(label, 'yellow')}  {safe_line(file.path)}: {safe_line(file.reason)}")
    if len(found) > _MOST_PATHS:
        print(f"… and {len(found) - _MOST_PATHS:,} more; --json lists all")


def _mention_all(found: Sequence[Elsewhere], args: argparse.Namespace) -> None:
    if not (args.all or args.message or args.entry) and any(not (file.is_remote or file.is_backup) for file in found):
        print_note("`daypack erase --all …` covers all sessions and all memories of your home")


def _total(sessions: Sequence[SessionPlan], memories: Sequence[Rewritten]) -> str:
    matches = sum(found.matches for found in sessions)
    parts = [f"{counted(matches, 'match', 'matches')} in {counted(len(sessions), 'session')}"] if sessions else []
    entries = sum(memory.entries + memory.documents for memory in memories)
    parts += [f"{counted(entries, 'text')} in {counted(len(memories), 'memory', 'memories')}"] if memories else []
    return " and ".join(parts)


def _numbers(events: Sequence[str]) -> str:
    """Return the ids of events in short: ev-1 to ev-3, ev-7."""
    spans = ranges(int(event.removeprefix("ev-")) for event in events).split(",")
    return ", ".join(f"ev-{span.replace('-', ' to ev-')}" for span in spans)


def _paths(paths: Sequence[str]) -> str:
    shown = ", ".join(map(safe_line, paths[:4]))
    return f"{shown} and {len(paths) - 4:,} more" if len(paths) > 4 else shown
