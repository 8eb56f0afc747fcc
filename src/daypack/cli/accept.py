"""Append a model's reply, record its token usage and its snapshot, and print the text for the user.

The reply is plain text, or with --response the JSON that a provider's API returned.
"""

import argparse
from typing import Any

import msgspec

from daypack.cli.check_reply import rule_lines, violation_lines
from daypack.cli.input import read_text
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe, shell_word
from daypack.derived.tiers import SNAPSHOT, Accepted, read_accepted
from daypack.errors import BadInput
from daypack.history.draft import RESERVED
from daypack.protocol import Violation
from daypack.session import Session
from daypack.turn.replies.snapshots import SECTION
from daypack.types.history import Message


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("file", nargs="?", default="-", help="file with the reply (default: standard input)")
    parser.add_argument("--response", action="store_true", help="the file holds the JSON response of a provider")


def run(args: argparse.Namespace) -> int:
    """Append the reply and print its text; problems of its snapshot go to standard error."""
    hint = f"the reply is read from a file, or from standard input: echo … | daypack accept {shell_word(args.session)}"
    text = read_text(args.file, "accept", hint=hint)
    reply: object = text
    if args.response:
        try:
            reply = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            hint = "pass the unchanged body of the response"
            raise BadInput(str(error), operation="accept", place=args.file, hint=hint) from error
    elif _is_response(text):
        print_note("this looks like a provider's response; use --response to read it as one")
    with open_named(args) as session:
        message = session.accept(reply)
        accepted = _accepted(session, message)
    if args.json:
        print(json_text({"message": message, "protocol": accepted}))
        return 0
    if message.text:
        print(safe(message.text.rstrip("\n")))
    print_note(_describe(message, accepted))
    return 0


def _is_response(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return False
    return bool({"choices", "output", "stop_reason"} & fields.keys())


def _accepted(session: Session, message: Message) -> Accepted | None:
    """Return the recorded snapshot of a message."""
    newest = session.history.events.tail(16)
    events = (event for event in newest if event.type == SNAPSHOT and event.data.get("message") == message.id)
    return next(map(read_accepted, (event.data for event in events)), None)


def _describe(message: Message, accepted: Accepted | None) -> str:
    if accepted is None:
        own: Any = (message.meta or {}).get(RESERVED, {})
        uncalled = SECTION in own and "turn" not in own[SECTION]
        return f"{message.id}: removed a snapshot section that no turn asked for" if uncalled else message.id
    snapshot = accepted.snapshot
    blocks = (
        sum(map(len, (snapshot.memory.core, snapshot.memory.working, snapshot.memory.ephemeral))) if snapshot else 0
    )
    state = f"a snapshot with {counted(blocks, 'block')}" if snapshot else "no usable snapshot"
    lines = [f"{message.id}: {state}"]
    violations = [msgspec.convert(violation, Violation) for violation in accepted.violations]
    lines += [f"  {line}" for line in violation_lines(violations)]
    if (more := sum(accepted.violation_counts.values()) - len(violations)) > 0:
        lines.append(f"  and {more:,} more")
    lines += (f"  {line}" for line in rule_lines(violation.rule for violation in violations)[1:])
    return "\n".join(lines)
