"""List the users of the memories, show one with quotas and usage, or set name, email and quotas."""

import argparse

from daypack.cli.options import add_place
from daypack.cli.terminal import json_text, print_note, safe_line
from daypack.errors import BadInput
from daypack.memory.tools import open_memory
from daypack.types.memory import User

_QUOTAS = ("memories", "entries", "bytes")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser, session=None)
    parser.add_argument("user", nargs="?", help="id of the user; created if new (default: list all)")
    parser.add_argument("--name", help="name of the user")
    parser.add_argument("--email", help="email address of the user")
    for quota in _QUOTAS:
        parser.add_argument(f"--{quota}", type=_quota, metavar="N", help=f"quota of {quota}; 0 or none for no limit")


def run(args: argparse.Namespace) -> int:
    """List, show or change users."""
    quotas = {what: given or None for what in _QUOTAS if (given := getattr(args, what)) is not None}
    changes = args.name is not None or args.email is not None or bool(quotas)
    if args.user is None and changes:
        raise BadInput(
            "user name required", operation="user", place="arguments", hint="daypack user NAME --entries 1000"
        )
    with open_memory(home=args.home, uid=args.uid) as memories:
        users = memories.users
        if args.user is None:
            known = users.list()
            print(json_text(known) if args.json else "\n".join(map(_line, known)) or "no users yet")
            return 0
        if args.user not in {user.user_id for user in users.list()}:
            print_note(f"created user {safe_line(args.user)}")
        user = (
            users.put(args.user, name=args.name, email=args.email, quotas=quotas) if changes else users.get(args.user)
        )
    print(json_text(user) if args.json else _describe(user))
    return 0


def _line(user: User) -> str:
    used = ", ".join(f"{getattr(user.quotas.used, what):,} {what}" for what in _QUOTAS)
    return f"{safe_line(user.user_id)}  {used}  {safe_line(user.name)}  {safe_line(user.email)}".rstrip()


def _describe(user: User) -> str:
    lines = [f"{safe_line(user.user_id)}", f"  name      {safe_line(user.name)}"]
    if user.email:
        lines.append(f"  email     {safe_line(user.email)}")
    for what in _QUOTAS:
        used, most = getattr(user.quotas.used, what), getattr(user.quotas, what)
        lines.append(f"  {what:<9} {used:,}" + ("" if most is None else f" of {most:,}"))
    return "\n".join(lines)


def _quota(text: str) -> int:
    if text.lower() == "none":
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number of 0 or more, or none, got {text!r}")
