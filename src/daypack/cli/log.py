"""Show the newest messages or events of a session, oldest first."""

import argparse
import time
from collections.abc import Iterable

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, json_text, safe, safe_line, say
from daypack.runtime import Session
from daypack.types.history import Event, File, Image, Message, Other, Part, Text, Thinking

_ROLE_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta"}
_POLL_SECONDS = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("-n", type=int, default=20, metavar="COUNT", help="how many (default: %(default)s, 0 = all)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as others append; end with Ctrl-C")
    parser.add_argument("--events", action="store_true", help="show events instead of messages")


def run(args: argparse.Namespace) -> int:
    """Print, and with --follow go on printing."""
    with open_named(args) as session:
        log = session.history.events if args.events else session.history.messages
        shown = log.reader.count()
        _print(log.tail(args.n) if args.n > 0 else log.records(), args)
        while args.follow:
            time.sleep(_POLL_SECONDS)
            count = log.reader.count()
            _print(log.reader.read(shown, count), args)
            shown = count
        return _tell_damage(session)


def _print(records: Iterable[Message | Event], args: argparse.Namespace) -> None:
    for record in records:
        if args.json:
            print(json_text(record), flush=args.follow)
        else:
            print(_message(record) if isinstance(record, Message) else _event(record), flush=args.follow)


def _tell_damage(session: Session) -> int:
    for damage in session.damage:
        say(colour(f"damaged: {safe_line(str(damage))}", "red"))
    if session.damage:
        say(f"  → the other lines were read; `daypack doctor {session.name}` tells what to do")
    return EXIT_DAMAGE if session.damage else 0


def _message(message: Message) -> str:
    head = f"{safe_line(message.id)}  {_time(message.ts)}  {colour(message.role, _ROLE_COLOURS[message.role])}"
    if message.name:
        head += f" ({safe_line(message.name)})"
    parts = (Text(message.content),) if isinstance(message.content, str) else message.content
    lines = [line for part in parts for line in _part(part).split("\n") if line]
    lines += [f"→ {safe_line(call.name)} {safe_line(call.arguments)}" for call in message.tool_calls]
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
