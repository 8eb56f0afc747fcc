"""Tokens by which a server knows its users: make one, list them, revoke one."""

import argparse
from datetime import UTC, datetime, timedelta

from daypack.cli.options import add_place, natural
from daypack.cli.terminal import json_text, safe_line, say
from daypack.errors import BadInput
from daypack.memory.tools import open_memory
from daypack.memory.users import Users

_MOST_DAYS = 36_500


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(actions=True)
    actions = parser.add_subparsers(dest="action", required=True, metavar="new|list|revoke")
    about = {
        "new": "Make a token for a user, who is made too if need be, and print it: it is not shown again.",
        "list": "List tokens without their secrets, of one user or of all.",
        "revoke": "Make a token invalid at once.",
    }
    new, listing, revoke = (actions.add_parser(name, help=what, description=what) for name, what in about.items())
    new.add_argument("user", help="whose memories it opens")
    new.add_argument("--name", default="", help="what it is for, to tell tokens apart")
    new.add_argument("--scope", choices=("read", "write"), default="write", help="what it allows (default: write)")
    new.add_argument("--days", type=natural, metavar="N", help="how long it is valid (default: until it is revoked)")
    listing.add_argument("user", nargs="?", help="whose tokens (default: all)")
    revoke.add_argument("token", help="its id, as `daypack token list` shows it")
    for one in (new, listing, revoke):
        add_place(one, session=None)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    with open_memory(home=args.home, uid=args.uid) as memories:
        return {"new": _new, "list": _list, "revoke": _revoke}[args.action](args, memories.users)


def _new(args: argparse.Namespace, users: Users) -> int:
    expires = None
    if args.days is not None:
        if not 1 <= args.days <= _MOST_DAYS:
            raise BadInput(f"{args.days} days", operation="new token", hint=f"--days takes 1 to {_MOST_DAYS}")
        expires = (datetime.now(UTC) + timedelta(days=args.days)).isoformat()
    users.get(args.user)
    made = users.new_token(args.user, args.name, args.scope, expires)
    if args.json:
        print(json_text({"secret": made.secret, "token": made.token}))
        return 0
    print(made.secret)
    until = f"until {made.token.expires_at}" if made.token.expires_at else "until it is revoked"
    say(f"for {safe_line(args.user)}, to {made.token.scope}, {until}; it is not shown again")
    say(f"  → take it back with `daypack token revoke {made.token.token_id}`")
    return 0


def _list(args: argparse.Namespace, users: Users) -> int:
    if args.user is not None:
        users.find(args.user)
    tokens = users.tokens(args.user)
    if args.json:
        print(json_text(tokens))
        return 0
    if not tokens:
        say("there are no tokens")
    for token in tokens:
        until = f"until {token.expires_at}" if token.expires_at else "no end"
        name = safe_line(token.name)
        line = f"{token.token_id}  {token.scope:<5}  {token.created_at}  {until}  {safe_line(token.user)}  {name}"
        print(line.rstrip())
    return 0


def _revoke(args: argparse.Namespace, users: Users) -> int:
    users.revoke(args.token)
    print(json_text({"revoked": args.token}) if args.json else f"revoked {safe_line(args.token)}")
    return 0
