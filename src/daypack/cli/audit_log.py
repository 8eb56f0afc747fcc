"""Show who read, wrote, erased or exported which memories; verify the audit log, or cut its older part.

Servers record every call; erasures, exports, imports, tokens and users are recorded for commands and Python too.
"""

import argparse
import os
from collections import deque

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_store, natural
from daypack.cli.terminal import counted, json_text, print_note, safe_line, table
from daypack.errors import BadInput, MemoryMissing
from daypack.history.home import find_home
from daypack.memory.audit_log.cut import apply_cut, plan_cut
from daypack.memory.audit_log.port import Cut, Log
from daypack.memory.audit_log.reading import Selection, owned_by, select
from daypack.memory.audit_log.record import ACTIONS, Record, acting
from daypack.memory.backend import open_backend

_NEWEST = 50
_HEAD = ("time", "action", "user", "what", "result", "tool", "through")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = ("list", "verify", "cut")
    about = "list the lines (default), verify them, or cut off older lines"
    parser.add_argument("command", nargs="?", choices=actions, default="list", metavar="list|verify|cut", help=about)
    listing = parser.add_argument_group("options of list")
    listing.add_argument("--user", default="", help="only what this user did or tried: the caller")
    owner = "only lines about this user's memories, by any caller"
    listing.add_argument("--owner", metavar="USER", default="", help=owner)
    memory = "only lines about this memory: its id or the start of it"
    listing.add_argument("--memory", metavar="ID", default="", help=memory)
    listing.add_argument("--action", choices=ACTIONS, default="", metavar="NAME", help=f"only {', '.join(ACTIONS)}")
    listing.add_argument("--since", metavar="TIME", default="", help="only lines at or after this ISO 8601 time")
    listing.add_argument("--until", metavar="TIME", default="", help="only lines at or before this ISO 8601 time")
    listing.add_argument("--request", metavar="ID", default="", help="only lines of this request; --json shows the ids")
    newest = f"the newest N lines (default: {_NEWEST}, with --json all)"
    listing.add_argument("-n", type=natural, metavar="N", help=newest)
    cutting = parser.add_argument_group("options of cut")
    cutting.add_argument("--before", metavar="TIME", help="cut off the lines before this ISO 8601 time")
    cutting.add_argument("--to", metavar="FILE", help="new file that gets the lines that are cut off")
    cutting.add_argument("--apply", action="store_true", help="cut (default: only show the plan)")
    place = parser.add_argument_group("place")
    place.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    place.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    add_store(parser)
    place.add_argument("--json", action="store_true", help="print JSON for programs: one line per record")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    backend = open_backend(find_home(args.home, args.uid))
    assert backend.audit is not None  # of a home
    try:
        return {"list": _list, "verify": _verify, "cut": _cut}[args.command](args, backend.audit)
    finally:
        backend.close()


def _list(args: argparse.Namespace, log: Log) -> int:
    wanted = Selection(
        user=args.user,
        owned=_owned(args, log) if args.owner else None,
        memory=args.memory,
        action=args.action,
        since=args.since,
        until=args.until,
        request=args.request,
    )
    found = select(log.lines(), wanted)
    if args.memory and next(select(log.lines(), Selection(memory=args.memory)), None) is None:
        hint = "--memory takes the id of a memory or the start of it, see `daypack memory list`"
        raise MemoryMissing("no line is about such a memory", operation="audit-log", place=args.memory[:64], hint=hint)
    if args.json:
        for record in found if args.n is None else deque(found, maxlen=args.n):
            print(json_text(record))
        return 0
    newest = deque(found, maxlen=_NEWEST + 1 if args.n is None else args.n)
    more = args.n is None and len(newest) > _NEWEST
    rows = list(newest)[more:]
    if not rows:
        print_note("no such lines in the audit log")
        return 0
    print("\n".join(table(_HEAD, map(_row, rows))))
    if more:
        print_note(f"  → the newest {_NEWEST} lines; -n shows more, --json all")
    return 0


def _owned(args: argparse.Namespace, log: Log) -> frozenset[str]:
    """Return the memories of an owner: those in the store, and those that the log knows."""
    from daypack.memory.tools import open_memory  # noqa: PLC0415 — only for --owner

    with open_memory(home=args.home, uid=args.uid, user=args.owner) as memories:
        kept = (*memories.memories(), *memories.memories(deleted=True))
    return owned_by(log.lines(), args.owner) | {memory.memory_id for memory in kept}


def _row(record: Record) -> tuple[str, ...]:
    ids = record.memory[:8] or (record.memories[0][:8] if len(record.memories) == 1 else "")
    if not ids:
        ids = counted(len(record.memories), "memory", "memories") if record.memories else record.target
    if record.seqs is not None:
        ids = f"lines {record.seqs[0]:,} to {record.seqs[1]:,}"
    elif record.count is not None:
        number = counted(record.count, "part" if record.action == "restore" else "line")
        if record.action in ("read", "write"):
            number = f"after {record.count:,} more like it,"
        ids = f"{number} {ids}" if ids else number.rstrip(",")
    if record.entries:
        ids += f" {counted(len(record.entries), 'entry', 'entries')}"
    if record.version is not None:
        ids += f" version {record.version}"
    who = f"token {record.token[:8]}" if record.token else "" if record.uid is None else f"uid {record.uid}"
    return record.time, record.action, record.user, ids.strip(), record.result, record.tool, f"{record.door} {who}"


def _verify(args: argparse.Namespace, log: Log) -> int:
    wrong, lines = log.verify(), sum(1 for _ in log.lines())
    if args.json:
        print(json_text({"path": log.place, "lines": lines, "wrong": [finding._asdict() for finding in wrong]}))
    elif wrong:
        for finding in wrong:
            place = f"line {finding.line:,}" if finding.line else "end"
            print(f"{place}, byte {finding.offset:,}: {safe_line(finding.problem)}")
        print_note(f"{counted(len(wrong), 'problem')} in {safe_line(log.place)}; all other lines can be read")
    elif not log.exists():
        print_note(f"there is no audit log yet in {safe_line(log.place)}")
    else:
        verb = "is as it was" if lines == 1 else "are as they were"
        print_note(f"{counted(lines, 'line')} {verb} written")
    return EXIT_DAMAGE if wrong else 0


def _cut(args: argparse.Namespace, log: Log) -> int:
    if not args.before or (args.apply and not args.to):
        problem = "no --before" if not args.before else "no --to"
        hint = "daypack audit-log cut --before TIME --to FILE --apply"
        raise BadInput(problem, operation="audit-log cut", place="arguments", hint=hint)
    if not args.apply:
        return _print_cut(args, plan_cut(log, args.before))
    with acting("cli"):
        return _print_cut(args, apply_cut(log, args.before, os.path.abspath(args.to)))


def _print_cut(args: argparse.Namespace, cut: Cut) -> int:
    if args.json:
        print(json_text({**cut._asdict(), "applied": args.apply}))
        return 0
    if not cut.lines:
        print_note("no line is older")
        return 0
    what = f"{counted(cut.lines, 'line')} ({cut.bytes:,} bytes), numbers {cut.first:,} to {cut.last:,}"
    if args.apply:
        print_note(f"{what} moved to {safe_line(args.to)}; {counted(cut.kept, 'line')} kept, the cut is recorded")
    else:
        print_note(f"{what} would be cut off, {counted(cut.kept, 'line')} kept")
        print_note(f"  → apply with {'' if args.to else '--to FILE '}--apply")
    return 0
