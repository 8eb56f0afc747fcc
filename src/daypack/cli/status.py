"""Show how full the window of this project's newest session is, its cache, memory and last compaction."""

import argparse
import os
import sys
from contextlib import suppress
from functools import partial
from typing import get_args

from daypack.cli.options import add_store, natural, shown_of
from daypack.cli.terminal import counted, is_utf8, json_text, print_note, safe_line, shell_word, terminal_width
from daypack.errors import BadInput, DaypackError, MemoryMissing
from daypack.history.home import find_home, refresh_folders
from daypack.history.layout import Home
from daypack.hooks.call import HostName
from daypack.hooks.setup.agents import TITLES
from daypack.hooks.setup.record import read_record
from daypack.hooks.setup.silenced import find_silenced
from daypack.hooks.status import line
from daypack.hooks.status.drawing import draw_page, look_at
from daypack.hooks.status.gathering import gather
from daypack.hooks.status.host import read_host
from daypack.hooks.status.recorded import PAGE_BYTES
from daypack.hooks.status.standard_input import read_waiting
from daypack.memory.project.memory import USER
from daypack.upkeep.database import describe, find_database

_WIDEST = 120
_PATIENCE_SECONDS = 2.0  # with a database that does not answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--line", action="store_true", help="one line, for the status line of an agent or a shell")
    parser.add_argument("--width", metavar="N", type=natural, help="columns of the line (default: COLUMNS)")
    parser.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Print the status."""
    if args.line and args.json:
        raise BadInput("--line and --json exclude each other", operation="status", hint="leave one of them out")
    if args.line:
        values = {"--home": args.home, "--uid": args.uid, "--width": str(args.width) if args.width else None}
        return line.run(["--line", *(f"{name}={value}" for name, value in values.items() if value)]) or 0
    home, host = find_home(args.home, args.uid), read_host(read_waiting(0))
    problem = _refresh(home)
    if problem:
        status = gather(home.here, os.getcwd(), host, max_bytes=PAGE_BYTES)
        status = status._replace(problem=status.problem or problem)
    else:
        status = gather(home, os.getcwd(), host, max_bytes=PAGE_BYTES, count=partial(_count, home))
    if args.json:
        print(json_text(shown_of(home, status.as_json())))
        return 0
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = args.width or min(_WIDEST, terminal_width(100))
    look = look_at(width, colour=coloured, blocks=is_utf8(sys.stdout))
    print("\n".join(shown_of(home, draw_page(status, look))))
    _print_store(home)
    for setting in find_silenced(home, os.environ):
        print_note(f"⚠ {safe_line(setting.problem)} [{safe_line(setting.place)}]")
    if status.session and status.compaction:
        session = status.session
        command = f"daypack search {shell_word(session.name)} WORDS --agent {shell_word(session.agent)}"
        print_note(f"  → `{command}` finds what was said before the compaction")
    if status.session is None and not status.host_session:
        print_note(f"  → {_first_step(home)}")
    return 0


def _refresh(home: Home) -> str:
    """Bring the folders of sessions in a database up to date; return why not, and they are as they were before."""
    if home.database is not None:
        home.database.wait_at_most(_PATIENCE_SECONDS)
    try:
        refresh_folders(home)
    except DaypackError as error:
        return f"{error.problem} [{error.place}]"
    return ""


def _count(home: Home, name: str) -> tuple[str, int] | None:
    """Return the id and the number of entries of a memory in the database; None if there is no such memory."""
    from daypack.memory.tools import open_memory  # noqa: PLC0415 — few have a database

    with open_memory(home=home.root, uid=home.uid, user=USER) as memories:
        if memories.backend.server is not None:
            memories.backend.server.database.patience = _PATIENCE_SECONDS
        try:
            found = memories.find_memory(name)
        except MemoryMissing:
            return None
        return next(((found, each.stats.entries) for each in memories.memories() if each.memory_id == found), None)


def _print_store(home: Home) -> None:
    """Print the address of the database with sessions and memories, and the index jobs that were given up."""
    database = find_database(home)
    if database is None:
        return
    database.patience = _PATIENCE_SECONDS
    try:
        state = describe(database)
    except DaypackError as error:
        print_note(f"⚠ {safe_line(error.place)}: {safe_line(error.problem)}")
        return
    finally:
        database.close()
    print(f"store       {safe_line(state.place)}, PostgreSQL {safe_line(state.server)}")
    if state.dead_jobs:
        print_note(f"⚠ {counted(state.dead_jobs, 'index job')} given up; `daypack doctor` lists them")


def _first_step(home: Home) -> str:
    """Return how a project gets its first session."""
    hosts: list[HostName] = []
    with suppress(DaypackError):  # the record cannot be read: `doctor` reports it
        hosts = [host for host in get_args(HostName) if any(file.host == host for file in read_record(home).files)]
    if not hosts:
        return "`daypack setup` records the sessions of your coding agents, `daypack import` one transcript"
    return f"daypack is set up for {', '.join(TITLES[host] for host in hosts)}: start a session in this folder"
