"""Append messages to a session: a text, standard input, or a JSONL stream with one message per line."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import msgspec

from daypack.cli.input import read_text, unreadable
from daypack.cli.options import add_place, natural, shown
from daypack.cli.terminal import Progress, counted, json_text, print_note, safe_line
from daypack.config import Settings
from daypack.errors import BadInput, BadMessage, DaypackError
from daypack.history.draft import draft_from, draft_message
from daypack.history.home import find_home
from daypack.plain_files import open_named
from daypack.session import Session, open_session
from daypack.types.history import Message
from daypack.types.kinds import ROLES
from daypack.types.names import did_you_mean

_BATCH_LINES = 1000
_MISTYPED = 0.75  # ratio of difflib: most new names are meant, so that less similar ones are not mentioned
_BATCH_BYTES = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser, session="name of the session; created if it does not exist")
    parser.add_argument("text", nargs="?", help="text to append; - is standard input (default: -)")
    parser.add_argument("--role", choices=ROLES, help="role of the message (default: user)")
    parser.add_argument("--jsonl", metavar="FILE", help="append each line of FILE as a message; - is standard input")
    parser.add_argument("--skip", type=natural, default=0, metavar="N", help="skip the first N lines of --jsonl")
    parser.add_argument("--name", help="name of the speaker or tool")
    parser.add_argument("--tool-call-id", metavar="ID", help="tool call that this is the result of (role tool)")
    parser.add_argument(
        "--client-key", metavar="KEY", help="idempotency key: appending the same key and text again changes nothing"
    )
    parser.add_argument("--meta", metavar="JSON", help="JSON object stored with the message")
    parser.add_argument(
        "--durability", choices=("sync", "os"), help="sync waits for the disk, os does not (default: sync)"
    )


def run(args: argparse.Namespace) -> int:
    """Append and print the id of the message."""
    _check_arguments(args)
    meta = _json(args.meta, "--meta") if args.meta is not None else None
    lines = _open_lines(args.jsonl) if args.jsonl else None
    content = _read_input() if args.text in (None, "-") and not lines else args.text
    names = {"name": args.name, "tool_call_id": args.tool_call_id, "client_key": args.client_key, "meta": meta}
    if not lines:
        draft_message(args.role or "user", content, names)  # before a refused message would leave an empty session
    settings: Settings = {"durability": args.durability} if args.durability else {}
    place = {"agent": args.agent, "home": args.home, "uid": args.uid, "create": args.role != "tool"}
    home = find_home(args.home, args.uid)
    is_new = not home.has(args.agent, args.session)
    with open_session(args.session, **place, **settings) as session:
        if lines:
            appended = _append_lines(session, lines, args)
        else:
            message = session.append(args.role or "user", content, **names)
            appended = json_text(shown(session, message)) if args.json else message.id
    print(appended)
    if is_new and not args.json:
        _print_new(args.session, home.list(args.agent))
    return 0


def _print_new(name: str, names: Iterable[str]) -> None:
    """Say that a session was created: it may be a mistyped name. Names that differ only in digits are a series."""

    def letters(text: str) -> str:
        return "".join(character for character in text if not character.isdigit())

    similar = did_you_mean(name, [other for other in names if letters(other) != letters(name)], similar=_MISTYPED)
    print_note(f"new session {safe_line(name)}" + (f": {safe_line(similar)}" if similar else ""))


def _check_arguments(args: argparse.Namespace) -> None:
    mixed = ("text", "--role", "--name", "--tool-call-id", "--client-key", "--meta")
    given = [name for name in mixed if getattr(args, name.strip("-").replace("-", "_")) is not None]
    problem, hint = "", "put these values into the lines of the stream, or omit --jsonl"
    if args.jsonl and given:
        problem = f"--jsonl cannot be combined with {', '.join(given)}"
    elif args.skip and not args.jsonl:
        problem, hint = "--skip requires --jsonl", "omit --skip"
    elif args.text == "":
        problem, hint = "nothing to append: the text is empty", "pass some text"
    if problem:
        raise BadInput(problem, operation="append", place="arguments", hint=hint)


def _append_lines(session: Session, lines: BinaryIO, args: argparse.Namespace) -> str:
    """Append the lines and return what is printed about them."""
    progress = Progress("messages appended")
    count, done, first, last = 0, args.skip, "", ""
    with lines:
        try:
            for number, batch in _batches(lines, args.skip):
                stored = session.history.append(batch)  # a transcript, whatever its lines are
                count, done = count + len(stored), number
                first, last = first or stored[0].id, stored[-1].id
                progress.show(count)
        except (DaypackError, OSError) as error:
            progress.clear()
            if count:
                print_note(
                    f"daypack: {counted(count, 'message')} appended before the error; continue with --skip {done}"
                )
            if isinstance(error, OSError):
                raise unreadable(args.jsonl, error, "append") from error
            raise
    progress.clear()
    if args.json:
        return json_text({"appended": count, "first": first or None, "last": last or None})
    ids = f" ({first} to {last})" if count > 1 else f" ({first})" if count else ""
    return f"{counted(count, 'message')} appended{ids}"


def _batches(lines: Iterable[bytes], skip: int) -> Iterator[tuple[int, list[Message]]]:
    """Yield messages in batches that share one sync, each with the number of its last line."""
    batch: list[Message] = []
    size = number = 0
    for number, line in enumerate(lines, 1):
        if number <= skip or not line.strip():
            continue
        try:
            batch.append(draft_from(_json(line, "JSON")))
        except BadMessage as error:
            if batch:
                yield number - 1, batch
            place = f"line {number}, {error.place}"
            raise BadMessage(error.problem, operation="append", place=place, hint=error.hint) from error
        size += len(line)
        if len(batch) == _BATCH_LINES or size >= _BATCH_BYTES:
            yield number, batch
            batch, size = [], 0
    if batch:
        yield number, batch


def _open_lines(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return open_named(name)
    except OSError as error:
        raise unreadable(name, error, "append") from error


def _read_input() -> str:
    text = read_text("-", "append")
    if not text.strip():
        hint = "pass the text as an argument, or pipe it: daypack append SESSION - < FILE"
        raise BadMessage("nothing to append: it is empty", operation="append", place="standard input", hint=hint)
    return text


def _json(text: bytes | str, place: str) -> Any:  # noqa: ANN401 — whatever the JSON says; parsed by the draft
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadMessage(str(error), operation="append", place=place, hint="write one JSON object") from error
