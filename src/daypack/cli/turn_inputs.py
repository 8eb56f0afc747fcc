"""Reading what a command passes to a turn: tools, items and ids, each from a file or from standard input."""

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import msgspec

from daypack.cli.input import read_bytes
from daypack.errors import BadInput

if TYPE_CHECKING:
    from daypack.turn.caller.documents import GivenItem
    from daypack.turn.caller.ids import TurnIds
    from daypack.turn.evidence.export import Given

_STANDARD_INPUT = "-"


def add_items(parser: argparse.ArgumentParser) -> None:
    """Add --items and --ids."""
    parser.add_argument(
        "--items",
        metavar="FILE",
        help="items of the caller: a JSON array, one item per line, or an envelope document; - is standard input",
    )
    parser.add_argument(
        "--ids",
        metavar="FILE|JSON",
        help="ids of the caller's thread, task, run …: a JSON object, or a file with one; - is standard input",
    )


def check_standard_input(args: argparse.Namespace, *names: str) -> None:
    """Refuse that two options read standard input."""
    reading = [f"--{name}" for name in names if getattr(args, name) == _STANDARD_INPUT]
    if len(reading) > 1:
        problem = f"{' and '.join(reading)} both read standard input"
        raise BadInput(problem, operation="read options", place="arguments", hint="write one of them to a file")


def read_tools(name: str) -> list[Any]:
    """Read the definitions in a file: a list, or the body of a request that has one."""
    try:
        value = msgspec.json.decode(read_bytes(name, "read tools"))
    except msgspec.DecodeError as error:
        hint = "write a JSON list of definitions"
        raise BadInput(f"not JSON: {error}", operation="read tools", place=name, hint=hint) from error
    return cast(dict[str, Any], value).get("tools", value) if isinstance(value, dict) else value


def read_items(name: str) -> "list[GivenItem]":
    """Read the items in a file."""
    from daypack.turn.caller.documents import read_item_document  # noqa: PLC0415 — few calls pass items

    return read_item_document(read_bytes(name, "read items"), _place(name))


def read_ids(text: str) -> "TurnIds":
    """Read ids: a JSON object, or the name of a file with one; `prepare` checks them."""
    written = text.lstrip().startswith("{")
    place = "--ids" if written else _place(text)
    data = text.encode("utf-8", "surrogateescape") if written else read_bytes(text, "read ids")
    hint = 'write a JSON object such as {"task_id": "t-1"}'
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", operation="read ids", place=place, hint=hint) from error
    if not isinstance(value, dict):
        problem = f"must be an object, not {type(value).__name__}"
        raise BadInput(problem, operation="read ids", place=place, hint=hint)
    return cast("TurnIds", value)


def read_given(args: argparse.Namespace) -> "Given":
    """Return the options of `prepare` that --items and --ids ask for."""
    given: Given = {}
    if args.items is not None:
        given["items"] = read_items(args.items)
    if args.ids is not None:
        given["ids"] = read_ids(args.ids)
    return given


@contextmanager
def naming_items(name: str | None) -> Generator[None]:
    """Name the file and the number of an item in errors about it."""
    try:
        yield
    except BadInput as error:
        at = (error.place or "").removeprefix("items[").removesuffix("]")
        if name is None or not at.isdecimal():
            raise
        place = f"{_place(name)}, item {int(at) + 1}"
        raise BadInput(error.problem, operation=error.operation, place=place, hint=error.hint) from error


def _place(name: str) -> str:
    return "standard input" if name == _STANDARD_INPUT else name
