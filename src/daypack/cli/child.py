"""List the children of a session, show one, or record what one was asked, answered and left behind."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe, safe_line, say
from daypack.derived.children import (
    STATUSES,
    Child,
    ChildUpdate,
    load_artifacts,
    notes_of,
    put_child,
    read_children,
)
from daypack.errors import BadInput, NotFound
from daypack.session import Session
from daypack.types.records import Ref

_RECORDED = ("handoff", "result", "status", "artifact", "ref", "child_agent", "child_session")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("name", nargs="?", help="the child's name (default: list the children)")
    parser.add_argument("--handoff", metavar="FILE", help="record what it was asked; - is standard input")
    parser.add_argument("--result", metavar="FILE", help="record what it answered; - is standard input")
    parser.add_argument("--status", choices=STATUSES, help="record how it stands (default: done with a result)")
    parser.add_argument("--artifact", metavar="FILE", action="append", help="keep a file it made; may be repeated")
    parser.add_argument("--ref", metavar="PATH", action="append", help="name a file it refers to; may be repeated")
    parser.add_argument("--child-agent", metavar="AGENT", help="record which agent it is")
    parser.add_argument("--child-session", metavar="SESSION", help="record the session it works in")


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    recording = any(getattr(args, name) is not None for name in _RECORDED)
    if recording and args.name is None:
        raise _bad("these arguments need a child", "arguments", "child SESSION NAME --result FILE")
    if args.handoff == args.result == "-":
        raise _bad("handoff and result cannot both come from there", "standard input", "name a file for one of them")
    with open_named(args) as session:
        if recording:
            return _record(session, args)
        children = read_children(session.history)
        if args.name is not None:
            return _show([one for one in children if one.name == args.name], args)
        if args.json:
            print(json_text([_described(one) for one in children]))
        elif not children:
            say("there are no children")
        for one in () if args.json else children:
            print(_line(one, max(len(safe_line(child.name)) for child in children)))
    return 0


def _record(session: Session, args: argparse.Namespace) -> int:
    update = ChildUpdate(
        handoff=_text(args.handoff),
        result=_text(args.result),
        status=args.status,
        artifacts=load_artifacts(args.artifact or ()),
        refs=_refs(session, args.name, args.ref or ()),
        agent=args.child_agent,
        session=args.child_session,
    )
    notes = notes_of(put_child(session.history, args.name, update))
    (child,) = (one for one in read_children(session.history) if one.name == args.name)
    print(json_text(_described(child)) if args.json else f"{safe_line(child.name)} is {child.status}")
    for note in notes:
        say(f"  → {note}")
    return 0


def _refs(session: Session, name: str, paths: Sequence[str]) -> tuple[Ref, ...]:
    """Return the child's refs with more paths behind them; one that it has already is not named twice."""
    if not paths:
        return ()
    known = [ref for one in read_children(session.history) if one.name == name for ref in one.refs]
    taken = {ref.id for ref in known}
    for path in dict.fromkeys(paths):
        if path not in {ref.path for ref in known}:
            number = next(number for number in range(1, len(taken) + 2) if f"r{number}" not in taken)
            known.append(Ref(id=f"r{number}", path=path, kind="file", summary=f"named by child {name}"))
            taken.add(f"r{number}")
    return tuple(known)


def _show(found: list[Child], args: argparse.Namespace) -> int:
    if not found:
        raise NotFound(
            f"there is no child {args.name!r}", place=args.session, hint=f"see `daypack child {args.session}`"
        )
    (child,) = found
    if args.json:
        print(json_text(_described(child)))
        return 0
    facts = [("name", child.name), ("status", child.status), ("agent", child.agent), ("session", child.session)]
    facts += [("ref", f"{ref.id}  {ref.path}  {ref.summary}") for ref in child.refs]
    facts += [("artifact", path) for path in child.artifacts]
    for label, value in facts:
        print(f"{label:<8}  {safe_line(value or '–')}")
    for label, text in (("handoff", child.handoff), ("result", child.result)):
        if text is not None:
            print(f"\n{label}\n{safe(text.rstrip())}")
    return 0


def _line(child: Child, width: int) -> str:
    answer = "no result" if child.result is None else counted(len(child.result), "character")
    facts = [f"{safe_line(child.name):<{width}}", f"{child.status:<9}", answer]
    if child.artifacts:
        facts.append(counted(len(child.artifacts), "artifact"))
    return "  ".join(facts)


def _described(child: Child) -> dict[str, Any]:
    return msgspec.to_builtins(child)


def _text(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode()
        with open(path, "rb") as file:
            return file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or "is not UTF-8"
        raise _bad(problem, "standard input" if path == "-" else path, "name a readable UTF-8 file") from error


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="child", place=place, hint=hint)
