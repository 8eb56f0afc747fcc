"""The request of another program on the terminal: rebuilt and verified, as a summary, as JSON or as it was sent."""

import argparse
from typing import Any

from daypack.cli.observed_turns import call_json, headline, next_commands, unknown_note, usage
from daypack.cli.options import shown
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line
from daypack.cli.turn_summary import print_document
from daypack.errors import BadInput, SourceMissing
from daypack.session import Session
from daypack.session.chosen import open_call
from daypack.turn.dialects import encode
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.request import BETAS, ObservedTurn
from daypack.turn.evidence.words import program_name


def print_replay(session: Session, call: Call, args: argparse.Namespace) -> int:
    """Rebuild a request, verify it and print it in the format that the options ask for."""
    turn = open_call(session, call)
    if turn is None:
        raise SourceMissing(
            f"{call.event} cannot be rebuilt: {unknown_note(call)}",
            operation="replay",
            place=session.history.layout.folder,
            hint=next_commands(args.session, "`daypack explain {}` shows what is known"),
        )
    if args.dialect and args.dialect != turn.record.dialect:
        hint = f"--dialect {turn.record.dialect}"
        problem = f"{call.event} was sent as {turn.record.dialect}, not as {args.dialect}"
        raise BadInput(problem, operation="replay", place="--dialect", hint=hint)
    turn.verify()
    if args.dialect:
        print_document(encode(shown(session, turn.request or {})) + b"\n")
    elif args.json:
        print(json_text(shown(session, _as_json(call, turn))))
    else:
        print("\n".join(_summary(call, turn)))
        hint = f"`daypack replay {{}} {call.event} --dialect {turn.record.dialect}` prints the request"
        print_note(next_commands(args.session, hint))
    return 0


def _as_json(call: Call, turn: ObservedTurn) -> dict[str, Any]:
    record = turn.record
    return {
        "event_id": turn.event_id,
        "call": call_json(call),
        "program": record.program,
        "version": record.version,
        "request_id": record.request,
        "dialect": record.dialect,
        "verified": {"request": record.digest, "messages": len(turn.messages)},
        "betas": record.params.get(BETAS, []),
        "request": turn.request,
    }


def _summary(call: Call, turn: ObservedTurn) -> list[str]:
    record = turn.record
    tools = turn.shape.tools if turn.shape else ()
    system = turn.shape.system if turn.shape else ()
    kept = sum(bool(sent.messages) for sent in turn.sent)
    program = safe_line(f"{program_name(record.program)} {record.version}")
    lines = [
        f"{colour('verified', 'green')}  {safe_line(turn.event_id)}: request {record.digest[7:19]}… of {program}",
        headline(call),
        usage(call),
        f"{counted(len(tools), 'tool')}, {counted(len(system), 'block')} of system prompt",
        f"{counted(len(turn.sent), 'message')}, {kept:,} of them as history has them",
    ]
    if record.cut:
        lines.append("the program left texts out of its record of this request")
    return lines
