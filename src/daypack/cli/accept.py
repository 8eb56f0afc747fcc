"""Take in a model's reply: append it, record what it cost and the snapshot it carries, print the words for the user.

The reply is a text, or the JSON a provider's API returned (--response).
"""

import argparse
from typing import Any

import msgspec

from daypack.cli.check_reply import read_reply_file, violation_lines
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe, say
from daypack.derived.tiers import SNAPSHOT, Accepted, read_accepted
from daypack.errors import BadInput
from daypack.history.draft import RESERVED
from daypack.protocol import Violation
from daypack.session import Session
from daypack.turn.snapshots import SECTION
from daypack.types.history import Message


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("file", nargs="?", default="-", help="a file with the reply (default: standard input)")
    parser.add_argument("--response", action="store_true", help="the file holds the JSON of a provider's response")


def run(args: argparse.Namespace) -> int:
    """Append, and print the text of the message; what was wrong with a snapshot is told on standard error."""
    given = read_reply_file(args.file)
    reply: object = given
    if args.response:
        try:
            reply = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeError) as error:
            hint = "give the body of the response as it came"
            raise BadInput(str(error), operation="accept", place=args.file, hint=hint) from error
    elif _is_response(given):
        say("it looks like a provider's response: --response reads one")
    with open_named(args) as session:
        message = session.accept(reply)
        accepted = _accepted(session, message)
    if args.json:
        print(json_text({"message": message, "protocol": accepted}))
        return 0
    if message.text:
        print(safe(message.text.rstrip("\n")))
    say(_told(message, accepted))
    return 0


def _is_response(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return False
    return bool({"choices", "output", "stop_reason"} & found.keys())


def _accepted(session: Session, message: Message) -> Accepted | None:
    """Return what was recorded of the snapshot of a message."""
    newest = session.history.events.tail(16)
    found = (event for event in newest if event.type == SNAPSHOT and event.data.get("message") == message.id)
    return next(map(read_accepted, (event.data for event in found)), None)


def _told(message: Message, accepted: Accepted | None) -> str:
    if accepted is None:
        own: Any = (message.meta or {}).get(RESERVED, {})
        uncalled = SECTION in own and "turn" not in own[SECTION]
        return f"{message.id}: a section was cut from it; no turn asked for one" if uncalled else message.id
    snapshot = accepted.snapshot
    blocks = (
        sum(map(len, (snapshot.memory.core, snapshot.memory.working, snapshot.memory.ephemeral))) if snapshot else 0
    )
    state = f"a snapshot with {counted(blocks, 'block')}" if snapshot else "no usable snapshot"
    lines = [f"{message.id}: {state}"]
    violations = [msgspec.convert(one, Violation) for one in accepted.violations]
    lines += [f"  {line}" for line in violation_lines(violations)]
    if (more := sum(accepted.violation_counts.values()) - len(violations)) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)
