"""List the child agents of a session, show one, or record its task, result and artifacts."""

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from daypack.cli.input import read_text
from daypack.cli.options import add_place, open_named, shown
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, shell_word
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
    parser.add_argument("name", nargs="?", help="name of the child (default: list all children)")
    parser.add_argument("--handoff", metavar="FILE", help="record the task given to the child; - is standard input")
    parser.add_argument("--result", metavar="FILE", help="record the result of the child; - is standard input")
    parser.add_argument("--status", choices=STATUSES, help="record its status (default: done if there is a result)")
    parser.add_argument(
        "--artifact", metavar="FILE", action="append", help="store a file the child made; may be repeated"
    )
    parser.add_argument(
        "--ref", metavar="PATH", action="append", help="record a file the child refers to; may be repeated"
    )
    parser.add_argument("--child-agent", metavar="AGENT", help="record the agent that ran as the child")
    parser.add_argument("--child-session", metavar="SESSION", help="record the session of the child")


def run(args: argparse.Namespace) -> int:
    """List, show or record."""
    recording = any(getattr(args, name) is not None for name in _RECORDED)
    if recording and args.name is None:
        raise _bad("these options need the name of a child", "arguments", "child SESSION NAME --result FILE")
    if args.handoff == args.result == "-":
        raise _bad(
            "cannot hold both the handoff and the result", "standard input", "pass a file for the handoff or the result"
        )
    with open_named(args) as session:
        if recording:
            return _record(session, args)
        children = [shown(session, child) for child in read_children(session.history)]
        if args.name is not None:
            return _show([child for child in children if child.name == args.name], args)
        if args.json:
            print(json_text([_as_json(child) for child in children]))
        elif not children:
            print_note(f"no children recorded in {safe_line(args.session)}")
        width = max((len(safe_line(child.name)) for child in children), default=0)
        for child in () if args.json else children:
            print(_line(child, width))
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
    (child,) = (shown(session, child) for child in read_children(session.history) if child.name == args.name)
    print(json_text(_as_json(child)) if args.json else f"{safe_line(child.name)} is {child.status}")
    for note in notes:
        print_note(f"  → {note}")
    return 0


def _refs(session: Session, name: str, paths: Sequence[str]) -> tuple[Ref, ...]:
    """Return the refs of the child with new paths appended."""
    if not paths:
        return ()
    known = [ref for child in read_children(session.history) if child.name == name for ref in child.refs]
    taken = {ref.id for ref in known}
    for path in dict.fromkeys(paths):
        if path not in {ref.path for ref in known}:
            number = next(number for number in range(1, len(taken) + 2) if f"r{number}" not in taken)
            known.append(Ref(id=f"r{number}", path=path, kind="file", summary=f"named by child {name}"))
            taken.add(f"r{number}")
    return tuple(known)


def _show(matching: list[Child], args: argparse.Namespace) -> int:
    if not matching:
        raise NotFound(
            f"no child named {args.name!r}",
            place=args.session,
            hint=f"list them with `daypack child {shell_word(args.session)}`",
        )
    (child,) = matching
    if args.json:
        print(json_text(_as_json(child)))
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
    result = "no result" if child.result is None else counted(len(child.result), "character")
    facts = [f"{safe_line(child.name):<{width}}", f"{child.status:<9}", result]
    if child.artifacts:
        facts.append(counted(len(child.artifacts), "artifact"))
    return "  ".join(facts)


def _as_json(child: Child) -> dict[str, Any]:
    return msgspec.to_builtins(child)


def _text(path: str | None) -> str | None:
    return None if path is None else read_text(path, "child")


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="child", place=place, hint=hint)
