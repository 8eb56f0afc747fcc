"""Show the newest messages or events of a session, oldest first, or those around one."""

import argparse
import time
from collections.abc import Callable, Iterable
from functools import partial

from daypack.cli.event_words import CountTokens, describe_event
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, natural, open_named, report_damage, shown
from daypack.cli.terminal import colour, json_text, print_note, safe, safe_line, terminal_width
from daypack.errors import BadInput
from daypack.history.session import History
from daypack.text.columns import fit
from daypack.types.history import Event, File, Image, Message, Other, Part, Text, Thinking

_ROLE_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta"}
_POLL_SECONDS = 0.2
_NEWEST, _AROUND = 20, 7  # messages or events
_AROUND_LINES = 6  # of a message beside the one that was asked for
_PIPE_COLUMNS = 160  # of a line about an event, where output is not a terminal


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "-n", type=natural, metavar="COUNT", help="number to show, 0 for all (default: 20, or 7 around)"
    )
    parser.add_argument(
        "--around", metavar="SEQ", help="show those around this number or id (12, msg-12, ev-9); long ones are cut"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new ones until Ctrl-C")
    parser.add_argument(
        "--events", action="store_true", help="show events instead of messages, in words; with --json as stored"
    )


def run(args: argparse.Namespace) -> int:
    """Print records, and with --follow keep printing new ones."""
    at = None if args.around is None else _read_number(args)
    with open_named(args) as session:
        log = session.history.events if args.events else session.history.messages
        show = json_text if args.json else partial(_line, session.history)

        def render(record: Message | Event) -> str:
            return show(shown(session, record))

        done = log.reader.count()
        if not done and not args.json:
            print_note(f"no {'events' if args.events else 'messages'} yet")
        if at is not None:
            count = _AROUND if args.n is None else args.n
            start = max(0, log.reader.position(at) - count // 2) if count else 0
            around = partial(_marked, at=at, render=render) if not args.json else render
            _print(log.reader.read(start, start + count if count else done), around, flush=False)
        else:
            count = _NEWEST if args.n is None else args.n
            _print(log.tail(count) if count else log.records(), render, flush=args.follow)
        report_damage(session, reported := set())
        while args.follow:
            time.sleep(_POLL_SECONDS)
            session.history.refresh()
            count = log.reader.count()
            _print(log.reader.read(done, count), render, flush=True)
            done = count
            report_damage(session, reported)
        return EXIT_DAMAGE if session.damage else 0


def _read_number(args: argparse.Namespace) -> int:
    """Return the number that --around names."""
    digits = str(args.around).removeprefix("ev-" if args.events else "msg-")
    if args.follow or not digits.isascii() or not digits.isdigit():
        problem = "--around and --follow cannot be combined" if args.follow else f"{args.around!r} is no number"
        hint = "give the number or id of a message, or with --events of an event: `daypack log` shows them"
        raise BadInput(problem, operation="log", place="--around", hint=hint)
    return int(digits)


def _print(records: Iterable[Message | Event], render: Callable[[Message | Event], str], *, flush: bool) -> None:
    for record in records:
        print(render(record), flush=flush)


def _marked(record: Message | Event, at: int, render: Callable[[Message | Event], str]) -> str:
    """Return the record that was asked for with a mark, and the first lines of another."""
    head, *lines = render(record).split("\n")
    if record.seq == at:
        return "\n".join([f"{colour('▶', 'yellow')} {head}", *lines])
    left = len(lines) - _AROUND_LINES
    if left > 1:
        lines = [*lines[:_AROUND_LINES], colour(f"    … {left:,} more lines", "dim")]
    return "\n".join([f"  {head}", *lines])


def _line(history: History, record: Message | Event) -> str:
    return _message(record) if isinstance(record, Message) else _event(record, partial(_count_tokens, history))


def _count_tokens(history: History, text: str) -> int:
    from daypack.text.tokens import counter_named  # noqa: PLC0415 — only for pins

    return counter_named(history.tokenizer).count(text)


def _message(message: Message) -> str:
    head = f"{safe_line(message.id)}  {_time(message.ts)}  {colour(message.role, _ROLE_COLOURS[message.role])}"
    if who := ", ".join(filter(None, (message.name, message.tool_call_id))):
        head += f" ({safe_line(who)})"
    if message.incomplete:
        head += f" (incomplete: {safe_line(message.incomplete)})"
    parts = (Text(message.content),) if isinstance(message.content, str) else message.content
    blocks = [_indented(text) for part in parts if (text := _part(part))]
    blocks += [f"    → {safe_line(call.name)} {safe_line(call.arguments)}".rstrip() for call in message.tool_calls]
    return "\n".join([colour(head, "dim") if not blocks else head, *blocks])


def _indented(text: str) -> str:
    return "    " + text.rstrip("\n").replace("\n", "\n    ")


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return safe(part.text)
    if isinstance(part, Thinking):
        return colour(f"(thinking) {safe(part.text)}", "dim")
    if isinstance(part, Image | File):
        return f"[{type(part).__name__.lower()} {safe_line(part.source)}]"
    return f"[{safe_line(str(part.value.get('type', Other.__name__)))}]"


def _event(event: Event, count_tokens: CountTokens) -> str:
    head = f"{safe_line(event.id)}  {_time(event.ts)}  "
    return head + fit(describe_event(event, count_tokens), terminal_width(_PIPE_COLUMNS) - len(head))


def _time(moment: str) -> str:
    return safe_line(moment[:19].replace("T", " ")) or "no time"
