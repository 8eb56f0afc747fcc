"""List the questions of a session, ask one, or record how one ended."""

import argparse
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named, shown
from daypack.cli.terminal import counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.session import Session
from daypack.turn.items import Missing
from daypack.turn.questions import ENDINGS
from daypack.types.kinds import SEVERITIES
from daypack.types.shapes import Link

_ASKING = ("needed_for", "blocked_actions", "candidate_sources", "requested_from", "severity")
_ENDING = ("answer", "answer_ref", "status")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("action", nargs="?", choices=("list", "add", "resolve"), help="default: list the questions")
    parser.add_argument(
        "value", nargs="?", metavar="TEXT|ID", help="text of the question to add, or id of the question"
    )
    asking = parser.add_argument_group("with add")
    asking.add_argument("--needed-for", metavar="TEXT", help="what the answer is needed for")
    asking.add_argument(
        "--blocked-action",
        dest="blocked_actions",
        metavar="TEXT",
        action="append",
        help="what cannot be done without it; may be repeated",
    )
    asking.add_argument(
        "--candidate-source",
        dest="candidate_sources",
        metavar="REF",
        action="append",
        help="where the answer may be: messages:12, a URI or a path; may be repeated",
    )
    asking.add_argument("--requested-from", metavar="REF", help="who or what was asked, such as user:anna")
    asking.add_argument("--severity", metavar="LEVEL", help=f"one of {', '.join(SEVERITIES)} (default: medium)")
    ending = parser.add_argument_group("with resolve")
    ending.add_argument("--answer", metavar="TEXT", help="the answer, which is stored with the event")
    ending.add_argument("--answer-ref", metavar="REF", help="where the answer is: messages:12, a URI or a path")
    ending.add_argument("--status", metavar="STATUS", help=f"one of {', '.join(ENDINGS)} (default: resolved)")
    parser.add_argument("--all", action="store_true", help="list the questions that have ended too")


def run(args: argparse.Namespace) -> int:
    """List, ask or resolve."""
    _check(args)
    with open_named(args) as session:
        if args.action == "add":
            return _add(session, args)
        if args.action == "resolve":
            session.resolve_question(args.value, **_given(args, _ENDING))
            ended = next(question for question in session.turns.questions.ended() if question.id == args.value)
            ended = shown(session, ended)
            print(json_text(_as_json(ended)) if args.json else f"{safe_line(ended.id)} is {ended.status}")
            return 0
        still_open = session.turns.questions.open()
        questions = shown(session, (*still_open, *(session.turns.questions.ended() if args.all else ())))
    if args.json:
        print(json_text([_as_json(question) for question in questions]))
        return 0
    for question in questions:
        _print(question)
    name = shell_word(args.session)
    if still_open:
        answer = f"answer one with `daypack question {name} resolve ID --answer TEXT`"
        print_note(f"{counted(len(still_open), 'open question')}; {answer}")
    else:
        print_note(f"no open questions; ask one with `daypack question {name} add TEXT`")
    return 0


def _add(session: Session, args: argparse.Namespace) -> int:
    before = session.turns.questions.open()
    missing_id = session.add_question(args.value, **_given(args, _ASKING))
    asked = next(question for question in session.turns.questions.open() if question.id == missing_id)
    if args.json:
        print(json_text(_as_json(shown(session, asked))))
    else:
        again = missing_id in (question.id for question in before)
        done = "already open" if asked in before else "changed" if again else "asked"
        print(f"{done} {missing_id}: {safe_line(shown(session, args.value))}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.action in ("add", "resolve") and args.value is None:
        hint = "question SESSION add TEXT, or question SESSION resolve ID --answer TEXT"
        raise _bad(f"{args.action} needs a value", "arguments", hint)
    if args.action not in ("add", "resolve") and args.value is not None:
        raise _bad("list takes no value", "arguments", "question SESSION list")
    for action, names in (("add", _ASKING), ("resolve", _ENDING)):
        given = [name for name in names if getattr(args, name) is not None]
        if given and args.action != action:
            option = f"--{given[0].removesuffix('s').replace('_', '-')}" if given[0] != "status" else "--status"
            raise _bad(f"{option} needs the action {action}", "arguments", f"question SESSION {action} … {option} …")
    if args.all and args.action in ("add", "resolve"):
        raise _bad("--all needs the action list", "arguments", "question SESSION list --all")


def _given(args: argparse.Namespace, names: tuple[str, ...]) -> Any:  # noqa: ANN401 — the details of a question
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _print(question: Missing) -> None:
    print(
        f"{safe_line(question.id)}  {safe_line(question.severity)}  {question.status}  {safe_line(question.question)}"
    )
    facts = [("needed for", question.needed_for)]
    facts += [("blocks", action) for action in question.blocked_actions]
    facts += [("may be in", _ref(ref)) for ref in question.candidate_sources]
    facts += [("asked", _ref(question.requested) if question.requested else None)]
    end = "answer" if question.status == "resolved" else f"{question.status} in"
    facts += [(end, _ref(ref)) for ref in question.resolution_refs]
    for name, value in facts:
        if value:
            print(f"  {name} {safe_line(value)}")


def _ref(ref: Link) -> str:
    return ref if isinstance(ref, str) else json_text(ref)


def _as_json(question: Missing) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(question)
    data["requested_from"] = data.pop("requested", None)
    data["status"] = question.status
    data["severity"] = question.severity
    return {name: value for name, value in data.items() if value is not None}


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="question", place=place, hint=hint)
