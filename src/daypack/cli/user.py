"""Users of the memories: list them, show one with quotas and use, or set name, email and quotas."""

import argparse

from daypack.cli.options import add_place
from daypack.cli.terminal import json_text, safe_line, say
from daypack.errors import BadInput
from daypack.memory.tools import open_memory
from daypack.types.memory import User

_QUOTAS = ("memories", "entries", "bytes")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser, session=None)
    parser.add_argument("user", nargs="?", help="the user; made if need be (default: list all)")
    parser.add_argument("--name", help="what the user is called")
    parser.add_argument("--email", help="the user's address")
    for what in _QUOTAS:
        text = f"how many {what} may be stored at most; 0 or none: no limit"
        parser.add_argument(f"--{what}", type=_quota, metavar="N", help=text)


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    quotas = {what: given or None for what in _QUOTAS if (given := getattr(args, what)) is not None}
    changes = args.name is not None or args.email is not None or bool(quotas)
    if args.user is None and changes:
        raise BadInput("whose?", operation="user", place="arguments", hint="daypack user NAME --entries 1000")
    with open_memory(home=args.home, uid=args.uid) as memories:
        users = memories.users
        if args.user is None:
            found = users.list()
            print(json_text(found) if args.json else "\n".join(map(_line, found)) or "there are no users")
            return 0
        if args.user not in {one.user_id for one in users.list()}:
            say(f"{safe_line(args.user)} is new")
        user = (
            users.put(args.user, name=args.name, email=args.email, quotas=quotas) if changes else users.get(args.user)
        )
    print(json_text(user) if args.json else _whole(user))
    return 0


def _line(user: User) -> str:
    used = ", ".join(f"{getattr(user.quotas.used, what):,} {what}" for what in _QUOTAS)
    return f"{safe_line(user.user_id)}  {used}  {safe_line(user.name)}  {safe_line(user.email)}".rstrip()


def _whole(user: User) -> str:
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
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number of 0 or more nor none")
