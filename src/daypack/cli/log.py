"""Show the newest messages or events of a session, oldest first."""

import argparse
import time
from collections.abc import Iterable

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, natural, open_named, report_damage
from daypack.cli.terminal import colour, json_text, print_note, safe, safe_line
from daypack.history.reader import Reader
from daypack.types.history import Event, File, Image, Message, Other, Part, Text, Thinking

_ROLE_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta"}
_POLL_SECONDS = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "-n", type=natural, default=20, metavar="COUNT", help="number to show, 0 for all (default: %(default)s)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new ones until Ctrl-C")
    parser.add_argument("--events", action="store_true", help="show events instead of messages")


def run(args: argparse.Namespace) -> int:
    """Print records, and with --follow keep printing new ones."""
    with open_named(args) as session:
        log = session.history.events if args.events else session.history.messages
        shown = log.reader.count()
        if not shown and not args.json:
            print_note(f"no {'events' if args.events else 'messages'} yet")
        _print(log.tail(args.n) if args.n else log.records(), args)
        report_damage(session, reported := set())
        while args.follow:
            time.sleep(_POLL_SECONDS)
            shown = _print_new(log.reader, shown, args)
            report_damage(session, reported)
        return EXIT_DAMAGE if session.damage else 0


def _print_new(reader: Reader[Message] | Reader[Event], shown: int, args: argparse.Namespace) -> int:
    count = reader.count()
    _print(reader.read(shown, count), args)
    return count


def _print(records: Iterable[Message | Event], args: argparse.Namespace) -> None:
    for record in records:
        if args.json:
            print(json_text(record), flush=args.follow)
        else:
            print(_message(record) if isinstance(record, Message) else _event(record), flush=args.follow)


def _message(message: Message) -> str:
    head = f"{safe_line(message.id)}  {_time(message.ts)}  {colour(message.role, _ROLE_COLOURS[message.role])}"
    if message.name:
        head += f" ({safe_line(message.name)})"
    parts = (Text(message.content),) if isinstance(message.content, str) else message.content
    lines = [line for part in parts if (text := _part(part)) for line in text.rstrip("\n").split("\n")]
    lines += [f"→ {safe_line(call.name)} {safe_line(call.arguments)}".rstrip() for call in message.tool_calls]
    return "\n".join([colour(head, "dim") if not lines else head, *(f"    {line}" for line in lines)])


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return safe(part.text)
    if isinstance(part, Thinking):
        return colour(f"(thinking) {safe(part.text)}", "dim")
    if isinstance(part, Image | File):
        return f"[{type(part).__name__.lower()} {safe_line(part.source)}]"
    return f"[{safe_line(str(part.value.get('type', Other.__name__)))}]"


def _event(event: Event) -> str:
    return f"{safe_line(event.id)}  {_time(event.ts)}  {colour(safe_line(event.type), 'blue')}  {json_text(event.data)}"


def _time(moment: str) -> str:
    return safe_line(moment[:19].replace("T", " ")) or "no time"
