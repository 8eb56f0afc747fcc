"""List and show the users of the memories, or set name, email and quotas of one."""

import argparse

from daypack.cli.options import add_place
from daypack.cli.terminal import json_text, print_note, safe_line
from daypack.history.layout import check_name
from daypack.memory.audit_log.record import Deed, acting
from daypack.memory.tools import Memories, open_memory
from daypack.memory.users import Users
from daypack.types.memory import User

_QUOTAS = ("memories", "entries", "bytes")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(action="list")
    actions = parser.add_subparsers(dest="action", metavar="list|show|set")
    summaries = {
        "list": "List the users with what they have stored (the default).",
        "show": "Show a user with quotas and usage.",
        "set": "Set name, email and quotas of a user; a new user is created.",
    }
    listing, show, change = (actions.add_parser(name, help=what, description=what) for name, what in summaries.items())
    show.add_argument("user", help="id of the user")
    change.add_argument("user", help="id of the user; created if new")
    for action in (listing, show, change):
        add_place(action, session=None)
    change.add_argument("--name", help="name of the user")
    change.add_argument("--email", help="email address of the user")
    for quota in _QUOTAS:
        change.add_argument(f"--{quota}", type=_quota, metavar="N", help=f"quota of {quota}; 0 or none for no limit")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    with acting("cli"), open_memory(home=args.home, uid=args.uid) as memories:
        if args.action == "set":
            return _set(args, memories)
        return {"list": _list, "show": _show}[args.action](args, memories.users)


def _list(args: argparse.Namespace, users: Users) -> int:
    known = users.list()
    if args.json:
        print(json_text(known))
    elif known:
        print("\n".join(map(_line, known)))
    else:
        print_note("no users yet; create one with `daypack user set NAME`")
    return 0


def _show(args: argparse.Namespace, users: Users) -> int:
    return _print(users.find(args.user), args)


def _set(args: argparse.Namespace, memories: Memories) -> int:
    users = memories.users
    quotas = {what: given or None for what in _QUOTAS if (given := getattr(args, what)) is not None}
    is_new = args.user not in {user.user_id for user in users.list()}
    with memories.backend.recording(Deed(action="user.set", tool="user", user=check_name(args.user, "user"))):
        user = users.put(args.user, name=args.name, email=args.email, quotas=quotas)
    if is_new:
        print_note(f"created user {safe_line(args.user)}")
    return _print(user, args)


def _print(user: User, args: argparse.Namespace) -> int:
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
