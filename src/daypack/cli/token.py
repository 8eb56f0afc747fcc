"""Create, list and revoke tokens for the users of the HTTP server."""

import argparse
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from daypack.cli.options import add_place, natural
from daypack.cli.terminal import json_text, print_note, safe_line
from daypack.errors import BadInput, DaypackError
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.audit_log.record import Deed, acting
from daypack.memory.tools import Memories, open_memory
from daypack.types.names import complete
from daypack.upkeep.backup.records import Revocation, add_record, moment

_MAX_DAYS = 36_500


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="new|list|revoke")
    summaries = {
        "new": "Create a token for a user and print it once; a new user is created too.",
        "list": "List the tokens of one user or of all users, without their secrets.",
        "revoke": "Revoke a token with immediate effect.",
    }
    new, listing, revoke = (actions.add_parser(name, help=what, description=what) for name, what in summaries.items())
    new.add_argument("user", help="user whose memories it gives access to")
    new.add_argument("--name", default="", help="label of the token")
    new.add_argument("--scope", choices=("read", "write"), default="write", help="permission (default: write)")
    new.add_argument("--days", type=natural, metavar="N", help="days until it expires (default: never)")
    listing.add_argument("user", nargs="?", help="user whose tokens are listed (default: all)")
    revoke.add_argument("token", help="id of the token or the start of it, see `daypack token list`")
    for action in (new, listing, revoke):
        add_place(action, session=None)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    with acting("cli"), open_memory(home=args.home, uid=args.uid) as memories:
        return {"new": _new, "list": _list, "revoke": _revoke}[args.action](args, memories)


def _new(args: argparse.Namespace, memories: Memories) -> int:
    users, expires = memories.users, None
    if args.days is not None:
        if not 1 <= args.days <= _MAX_DAYS:
            problem = f"--days must be between 1 and {_MAX_DAYS:,}, got {args.days:,}"
            raise BadInput(problem, operation="new token", hint="omit --days for a token that does not expire")
        expires = (datetime.now(UTC) + timedelta(days=args.days)).isoformat()
    users.get(args.user)
    with memories.backend.recording(Deed(action="token.new", tool="token", user=args.user)) as recorded:
        created = users.new_token(args.user, args.name, args.scope, expires)
        recorded["target"] = created.token.token_id
    if args.json:
        print(json_text({"secret": created.secret, "token": created.token}))
        return 0
    print(created.secret)
    until = f"until {created.token.expires_at}" if created.token.expires_at else "until it is revoked"
    print_note(f"token for {safe_line(args.user)}, scope {created.token.scope}, valid {until}; it is not shown again")
    print_note(f"  → revoke it with `daypack token revoke {created.token.token_id}`")
    return 0


def _list(args: argparse.Namespace, memories: Memories) -> int:
    users = memories.users
    if args.user is not None:
        users.find(args.user)
    tokens = [memories.backend.shown(token) for token in users.tokens(args.user)]
    if args.json:
        print(json_text(tokens))
        return 0
    if not tokens:
        print_note("no tokens; create one with `daypack token new USER`")
    for token in tokens:
        until = f"until {token.expires_at}" if token.expires_at else "does not expire"
        name = safe_line(token.name)
        line = f"{token.token_id}  {token.scope:<5}  {token.created_at}  {until}  {safe_line(token.user)}  {name}"
        print(line.rstrip())
    return 0


def _revoke(args: argparse.Namespace, memories: Memories) -> int:
    owners = {token.token_id: token.user for token in memories.users.tokens()}
    token_id = complete(args.token, owners, what="tokens") or args.token
    deed = Deed(action="token.revoke", tool="token", user=owners.get(token_id, ""), target=token_id)
    if token_id in owners:
        _note(find_home(args.home, args.uid), token_id)  # before: if this is killed, it was meant
    with memories.backend.recording(deed) if token_id in owners else nullcontext():
        memories.users.revoke(token_id)
    print(json_text({"revoked": token_id}) if args.json else f"revoked {safe_line(token_id)}")
    return 0


def _note(home: Home, token_id: str) -> None:
    """Note in the home that a token is revoked; where that fails, the token is revoked nevertheless."""
    try:
        add_record(home.folder, Revocation(moment(), token_id))
    except DaypackError as error:
        print_note(f"a restore of an older backup would let it work again: {safe_line(str(error))}")
