"""Serve memories to an agent over standard input and output (MCP); `install` enters that into its configuration."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from daypack.cli.terminal import colour, safe, safe_line, say
from daypack.config import from_file
from daypack.errors import BadInput
from daypack.history.layout import Home, find_home

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.serve.install.client_config import Change
    from daypack.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", nargs="?", metavar="install", help="enter this server into an agent's configuration")
    parser.add_argument("client", nargs="?", metavar="claude|codex|gemini", help="whose configuration")
    place = parser.add_argument_group("what is served")
    place.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    place.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    place.add_argument("--user", default="local", help="whose memories (default: %(default)s)")
    place.add_argument("--memory", metavar="ID", help="the memory the agent is told to use")
    place.add_argument("--session", metavar="NAME", help="also offer recall and search_history of this session")
    agent = os.environ.get("DAYPACK_AGENT") or "default"
    place.add_argument("--agent", default=agent, help="whose session it is (default: DAYPACK_AGENT or 'default')")
    writing = parser.add_argument_group("with install")
    writing.add_argument("--user-wide", action="store_true", help="Claude Code: ~/.claude.json instead of ./.mcp.json")
    writing.add_argument("--print", action="store_true", help="only print the lines to paste")
    writing.add_argument("--yes", action="store_true", help="write without asking")


def run(args: argparse.Namespace) -> int:
    """Serve, or install."""
    if args.action is None:
        _serve(args)
    if args.action != "install":
        raise BadInput(f"{args.action!r} is no action", operation="mcp", hint="there is install")
    return _install(args)


def _serve(args: argparse.Namespace) -> NoReturn:
    from daypack.serve.mcp.router import Router  # noqa: PLC0415 — install needs none of it
    from daypack.serve.stdio.loop import run as serve  # noqa: PLC0415
    from daypack.serve.toolset import Toolset  # noqa: PLC0415

    def open_memories() -> "Memories":
        from daypack.memory.tools import open_memory  # noqa: PLC0415 — not before the first call

        return open_memory(home=args.home, uid=args.uid, user=args.user)

    place = find_home(args.home, args.uid)
    session = _open_session(args) if args.session else None
    memory_id = args.memory or (session and _bound_memory(session, args.user))
    toolset = Toolset(without=_left_out(place), open_session=(lambda: session) if session else None)
    serve(Router(toolset, open_memories, os.path.join(place.folder, "prompts"), memory_id))


def _left_out(place: Home) -> tuple[str, ...]:
    """Return the tools the user's settings leave out."""
    if not os.path.exists(place.config):
        return ()
    from daypack.memory.limits import read_limits  # noqa: PLC0415 — few have settings

    limits = read_limits(from_file(place.config), place.config)
    return () if limits.create_memory else ("create_memory",)


def _open_session(args: argparse.Namespace) -> "Session":
    from daypack.session import open_session  # noqa: PLC0415 — few servers have a session

    session = open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, create=False)
    session.messages()  # one that is not there is told of now, not at the first call
    return session


def _bound_memory(session: "Session", user: str) -> str | None:
    """Return the memory a session is bound to, if it is among those that are served."""
    from daypack.turn.memory_binding import read_binding  # noqa: PLC0415

    binding = read_binding(session.meta)
    return binding.memory_id if binding and binding.url is None and binding.user == user else None


def _install(args: argparse.Namespace) -> int:
    from daypack.serve.install.client_config import CLIENTS, config_path, plan, print_entry, write  # noqa: PLC0415

    if args.client not in CLIENTS:
        what = "no client was named" if args.client is None else f"{args.client!r} is no client"
        raise BadInput(what, operation="mcp install", hint=f"there are {', '.join(CLIENTS)}")
    if args.memory:
        from daypack.cli.memory import find_memory  # noqa: PLC0415
        from daypack.memory.tools import open_memory  # noqa: PLC0415

        with open_memory(home=args.home, uid=args.uid, user=args.user) as memories:
            args.memory = find_memory(memories, args.memory)  # an agent knows ids only
    command = own_command(args)
    if args.print:
        print(safe(print_entry(args.client, command)), end="")
        return 0
    path = config_path(args.client, folder=os.getcwd(), user_wide=args.user_wide, environ=os.environ)
    change = plan(args.client, path, command)
    if not change.needed:
        say(f"already there: {safe_line(path)}")
        return 0
    _show(change)
    if not args.yes and not _agreed(path):
        say("nothing was written")
        return 1
    backup = write(change)
    kept = f" (what was there before: {safe_line(backup)})" if backup else ""
    say(f"written: {safe_line(path)}{kept}")
    return 0


def own_command(args: argparse.Namespace) -> list[str]:
    """Return the command line that starts this server: by full paths, for an agent has its own idea of a PATH."""
    program = os.path.abspath(sys.argv[0])
    own = os.path.basename(program) == "daypack" and os.access(program, os.X_OK)
    command = [program] if own else [sys.executable, "-m", "daypack"]
    home = args.home or os.environ.get("DAYPACK_HOME")
    chosen = {
        "--home": os.path.abspath(home) if home else None,
        "--uid": args.uid or os.environ.get("DAYPACK_UID"),
        "--user": None if args.user == "local" else args.user,
        "--memory": args.memory,
        "--session": args.session,
        "--agent": args.agent if args.session and args.agent != "default" else None,
    }
    options = [f"{name}={value}" for name, value in chosen.items() if value]
    return [*command, "mcp", *options]


def _show(change: "Change") -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in change.diff().splitlines():
        print(colour(safe(line), colours[line[0]]) if line[:1] in colours else safe(line))


def _agreed(path: str) -> bool:
    if not sys.stdin.isatty():
        hint = "--yes writes it; --print only prints the lines"
        raise BadInput("there is no terminal to ask on", operation="mcp install", place=path, hint=hint)
    try:
        return input("write this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
