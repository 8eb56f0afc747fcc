"""Serve the memory tools to an agent over stdio (MCP); `install` adds the server to the agent's configuration."""

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from daypack import postgres
from daypack.cli.log_options import add_log_options
from daypack.cli.options import add_store
from daypack.cli.terminal import colour, print_note, safe, safe_line
from daypack.config import from_file
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home

if TYPE_CHECKING:
    from daypack.files.planned import Change
    from daypack.memory.project.repository import Project
    from daypack.memory.tools import Memories
    from daypack.session import Session

MEMORY_HELP = "memory of calls without a memory_id (default: DAYPACK_MEMORY, or as config.toml says)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(action="serve")
    actions = parser.add_subparsers(dest="action", metavar="serve|install")
    summaries = {
        "serve": "Serve the memory tools over stdio (the default).",
        "install": "Add this server to an agent's configuration.",
    }
    serve, install = (actions.add_parser(name, help=what, description=what) for name, what in summaries.items())
    install.add_argument("client", nargs="?", metavar="claude|codex|gemini", help="the agent to configure")
    for action in (serve, install):
        _add_place(action)
    add_store(serve)  # of an installed server, config.toml has it: the files of agents are no place for passwords
    serve.add_argument(
        "--with-hooks",
        action="store_true",
        help="hooks capture this agent's sessions: do not ask the model to keep the document",
    )
    add_log_options(serve)
    install.add_argument("--user-wide", action="store_true", help="Claude Code: ~/.claude.json instead of ./.mcp.json")
    install.add_argument("--print", action="store_true", help="print the lines to paste, write nothing")
    install.add_argument("--yes", action="store_true", help="write without asking")


def _add_place(parser: argparse.ArgumentParser) -> None:
    place = parser.add_argument_group("what to serve")
    place.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    place.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    place.add_argument("--user", default="local", help="user whose memories are served (default: %(default)s)")
    place.add_argument("--memory", metavar="ID", help=f"{MEMORY_HELP[:-1]}, or that of the project)")
    place.add_argument("--session", metavar="NAME", help="also serve recall and search_history of this session")
    agent = os.environ.get("DAYPACK_AGENT") or "default"
    place.add_argument(
        "--agent", default=agent, help="agent the session belongs to (default: DAYPACK_AGENT or 'default')"
    )


def run(args: argparse.Namespace) -> int:
    """Serve, or install the server."""
    if args.action == "serve":
        _serve(args)
    return _install(args)


def _serve(args: argparse.Namespace) -> NoReturn:
    from daypack.serve.mcp.router import Router  # noqa: PLC0415 — not needed by install
    from daypack.serve.observe.log import log  # noqa: PLC0415
    from daypack.serve.observe.observer import Observer  # noqa: PLC0415
    from daypack.serve.stdio.loop import run as serve  # noqa: PLC0415
    from daypack.serve.toolset import Toolset  # noqa: PLC0415

    def open_memories() -> "Memories":
        from daypack.memory.tools import open_memory  # noqa: PLC0415 — not before the first call

        memories = open_memory(home=args.home, uid=args.uid, user=args.user, memory=default)
        if (server := memories.backend.server) is not None:
            server.database.patience = postgres.SHORT_SECONDS  # an agent repeats a call sooner than it waits for one
        if project is not None:
            from daypack.memory.project.memory import ensure_memory  # noqa: PLC0415

            memories.find_default = partial(ensure_memory, memories, place, project)
        return memories

    place = find_home(args.home, args.uid)
    session = _open_session(args) if args.session else None
    without, configured = _read_settings(place)
    bound = session and _bound_memory(session, args.user)
    given = args.memory or bound or os.environ.get("DAYPACK_MEMORY") or ""
    default, project = _find_default(args, place, given, configured)
    toolset = Toolset(without=without, open_session=(lambda: session) if session else None, default_memory=default)
    log.configure(args.log_level, args.log_format)
    prompts = os.path.join(place.folder, "prompts")
    router = Router(toolset, open_memories, prompts, with_hooks=args.with_hooks)
    serve(router, Observer(slow_ms=args.slow_ms, user=args.user))


def _read_settings(place: Home) -> tuple[tuple[str, ...], str]:
    """Return the tools that the user's settings exclude, and the default memory they name."""
    if not os.path.exists(place.config):
        return (), ""
    from daypack.memory.limits import read_limits  # noqa: PLC0415 — few have settings

    limits = read_limits(from_file(place.config), place.config)
    return () if limits.create_memory else ("create_memory",), limits.default_memory


def _find_default(args: argparse.Namespace, place: Home, given: str, configured: str) -> tuple[str, "Project | None"]:
    """Return the default memory, and the project if it is the project's, which may not exist yet."""
    from daypack.hooks.agent_folder import agent_folder  # noqa: PLC0415 — not needed by install
    from daypack.memory.project.memory import USER, default_memory  # noqa: PLC0415

    folder = agent_folder(os.environ)
    if args.user != USER or folder is None:
        return given or configured, None
    return default_memory(place, folder, given=given, configured=configured)


def _open_session(args: argparse.Namespace) -> "Session":
    from daypack.cli.options import open_named  # noqa: PLC0415 — few servers have a session

    session = open_named(args)
    session.messages()  # a missing session is reported now, not at the first call
    return session


def _bound_memory(session: "Session", user: str) -> str | None:
    """Return the memory a session is bound to, if this server serves it."""
    from daypack.turn.memory_binding import read_binding  # noqa: PLC0415

    binding = read_binding(session.meta)
    return binding.memory_id if binding and binding.url is None and binding.user == user else None


def _install(args: argparse.Namespace) -> int:
    from daypack.serve.install.client_config import CLIENTS, config_path, plan, print_entry, write  # noqa: PLC0415

    if args.client not in CLIENTS:
        problem = "no client named" if args.client is None else f"unknown client {args.client!r}"
        raise BadInput(problem, operation="mcp install", hint=f"choose {', '.join(CLIENTS)}")
    if args.memory:
        from daypack.memory.tools import open_memory  # noqa: PLC0415

        with open_memory(home=args.home, uid=args.uid, user=args.user) as memories:
            args.memory = memories.find_memory(args.memory)  # agents use ids
    command = own_command(args)
    if args.print:
        print(safe(print_entry(args.client, command)), end="")
        return 0
    path = config_path(args.client, folder=os.getcwd(), user_wide=args.user_wide, environ=os.environ)
    change = plan(args.client, path, command)
    if not change.needed:
        print_note(f"already installed: {safe_line(path)}")
        return 0
    _show(change)
    if not args.yes and not _confirm(path):
        print_note("nothing written")
        return 1
    backup = write(change)
    kept = f" (backup: {safe_line(backup)})" if backup else ""
    print_note(f"wrote {safe_line(path)}{kept}; restart the agent to use it")
    return 0


def own_command(args: argparse.Namespace) -> list[str]:
    """Return the command line that starts this server, with absolute paths: the agent may have another PATH."""
    program = os.path.abspath(sys.argv[0])
    own = os.path.basename(program) == "daypack" and os.access(program, os.X_OK)
    command = [program] if own else [sys.executable, "-P", "-m", "daypack"]  # -P: no modules of the project
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


def _confirm(path: str) -> bool:
    if not sys.stdin.isatty():
        hint = "confirm with --yes, or use --print to only print the lines"
        raise BadInput("cannot ask for confirmation without a terminal", operation="mcp install", place=path, hint=hint)
    try:
        return input("Write this change? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
