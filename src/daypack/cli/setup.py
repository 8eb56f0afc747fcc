"""Connect the coding agents on this machine: plug-in, project memory, and the sessions that already happened."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, get_args

from daypack.cli.import_progress import print_failures, short_path, take_in, total
from daypack.cli.main import EXIT_FAILED
from daypack.cli.terminal import colour, counted, print_note, safe, safe_line, shell_word
from daypack.config import STORE_VARIABLES, from_file
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.call import HostName
from daypack.hooks.settings import read_settings
from daypack.hooks.setup.agents import TITLES, WITHOUT_PLUGIN, Agent, find_agents
from daypack.hooks.setup.apply import apply_changes
from daypack.hooks.setup.installation import SERVER
from daypack.hooks.setup.past import ProjectCapture
from daypack.hooks.setup.plan import Plan, make_plan
from daypack.hooks.setup.plugin_folder import render_plugin, this_program
from daypack.hooks.setup.record import one_at_a_time, read_record
from daypack.hooks.setup.removal import Removal, plan_removal
from daypack.hooks.setup.silenced import find_silenced
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import NewFiles
from daypack.importers.all_places.scan import PlacesScanner
from daypack.importers.place_settings import user_home
from daypack.importers.places import PLACES

if TYPE_CHECKING:
    from daypack.files.planned import Change

_Planned = TypeVar("_Planned", Plan, Removal)
_NAMES: tuple[HostName, ...] = get_args(HostName)
_DECISIONS_SECONDS = 20.0  # for all projects; the others follow when they have a new session
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_STATES = {"new": "set up", "changed": "brought up to date", "unchanged": "already set up"}
_NEXT: dict[HostName, str] = {
    "claude": "restart it, or type /reload-plugins in a running session",
    "codex": "restart it, open /hooks once and trust the hooks of daypack",
    "copilot": "restart it",
    "qwen": "restart it",
    "gemini": "restart it; in a folder that Gemini CLI does not trust yet, trust it when asked",
    "hermes": "restart it; `hermes plugins list` shows daypack",
    "opencode": "restart it",
}
_COMMANDS = {
    "daypack find WORDS": "everything said or done in any session of any agent",
    "daypack session list": "all sessions, the newest first",
    "daypack memory search WORDS": "the memory of the project in this folder",
    "daypack status": "the newest session: window, cache, memory",
    "daypack setup --remove": "take it back",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--agent", metavar="NAMES", help=f"only these: {', '.join(_NAMES)} (default: all that are found)"
    )
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would change and write nothing")
    parser.add_argument(
        "--remove", action="store_true", help="take back what setup has changed; sessions and memories stay"
    )
    past = parser.add_argument_group("sessions that already happened")
    past.add_argument("--no-import", action="store_true", help="do not import them")
    past.add_argument("--project-only", action="store_true", help="import only those of the project of this folder")
    place = parser.add_argument_group("where daypack keeps its data")
    place.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    place.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")


def run(args: argparse.Namespace) -> int:
    """Set up, or take it back; exit code 1 if an agent could not be set up, or you declined."""
    home = find_home(args.home, args.uid)
    chosen = _chosen(args.agent)
    if args.remove:
        return _remove(args, home, chosen)
    agents = find_agents(os.environ, chosen)
    if not agents:
        print(f"no coding agent found: {', '.join(TITLES.values())} are known")
        print("Install one of them, then run `daypack setup` again. Programs and folders that were looked for:")
        print("  " + ", ".join(f"{PLACES[host].program} ~/{PLACES[host].folder.default}" for host in _NAMES))
        return 0
    for agent in agents:
        print(f"found {agent.title}: {short_path(agent.program or agent.folder)}")
    return _set_up(args, home, agents)


def _chosen(names: str | None) -> list[HostName]:
    chosen = [name.strip() for name in names.split(",")] if names else []
    hosts: list[HostName] = [
        host for host in _NAMES if host in chosen or (host == "claude" and "claude-code" in chosen)
    ]
    if unknown := [name for name in chosen if name not in (*_NAMES, "claude-code")]:
        raise BadInput(
            f"unknown agent {unknown[0]!r}", operation="setup", place="--agent", hint=f"choose {', '.join(_NAMES)}"
        )
    return hosts


def _set_up(args: argparse.Namespace, home: Home, agents: Sequence[Agent]) -> int:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    settings = read_settings(home)
    files = render_plugin(this_program(home, os.environ), settings)

    def plan_now() -> Plan:
        return make_plan(home, agents, files, now, read_record(home))

    plan = plan_now()
    _show_plan(plan)
    past = _find_past(args, home, [agent.agent for agent in plan.agents if agent.state != "failed"])
    if count := past.count_sessions():
        sessions = counted(count, "session")
        print(f"import {sessions} ({past.size / 1e6:,.1f} MB of transcripts) into {_place(home)}")
    if args.dry_run:
        print_note("nothing written: --dry-run")
        return _exit_code(plan)
    if plan.changes and not args.yes and not _confirm("Do this?"):
        print_note("nothing written")
        return EXIT_FAILED
    with one_at_a_time(home):
        plan = _unchanged(plan, plan_now())
        if plan.changes or plan.record != plan.previous:
            apply_changes(home, plan.changes, plan.previous, plan.record)
    _report(plan)
    for setting in find_silenced(home, os.environ):
        print_note(f"⚠ {safe_line(setting.problem)} [{short_path(setting.place)}]\n  → {safe_line(setting.hint)}")
    _mention_store(home)
    if any(agent.agent.host not in WITHOUT_PLUGIN for agent in plan.agents):
        _make_memory(home)
    _import(past)
    if settings.recall_before_edit:
        _find_decisions(home)
    _print_now([agent.agent for agent in plan.agents if agent.is_set_up])
    return _exit_code(plan)


def _place(home: Home) -> str:
    return short_path(home.folder) if home.database is None else safe_line(home.sessions_place)


def _mention_store(home: Home) -> None:
    """Say where sessions are recorded, if in a database, and what agents need that do not inherit the variable."""
    if home.database is None:
        return
    print(f"sessions are recorded in {_place(home)}")
    if os.environ.get(STORE_VARIABLES["url"]) and "store" not in from_file(home.config):
        hint = f"write the address as url into the table [store] of {short_path(home.config)}"
        print_note(
            f"⚠ only {STORE_VARIABLES['url']} names it: agents without that variable record in files\n  → {hint}"
        )


def _print_now(agents: Sequence[Agent]) -> None:
    """Print what holds from now on for these agents, and what to try."""
    without = [agent.title for agent in agents if agent.host in WITHOUT_PLUGIN]
    has_memory = len(without) < len(agents)
    if has_memory:
        but = f", but not in {' and '.join(without)}" if without else ""
        print(f"\nFrom now on every session is recorded, and each project has a memory{but}. Try:")
    elif without:
        print(f"\nFrom now on every session of {' and '.join(without)} is recorded, and its requests are packed. Try:")
    else:
        return
    for command, about in _COMMANDS.items():
        if has_memory or "memory search" not in command:
            print(f"  {command:<30} {about}")


def _find_past(args: argparse.Namespace, home: Home, agents: Sequence[Agent]) -> NewFiles:
    from daypack.memory.project import find_project  # noqa: PLC0415 — not needed to remove a set-up

    hosts = [] if args.no_import else [agent.host for agent in agents]
    past = NewFiles(home, PlacesScanner(hosts, os.environ).scan(), Ledger(home), ProjectCapture(home, hosts))
    if args.project_only:
        past.keep_project(find_project(os.getcwd()))
    return past


def _make_memory(home: Home) -> None:
    """Make or find the memory of the project of this folder; a folder without a repository gets none here."""
    from daypack.memory.project import find_project, project_memory  # noqa: PLC0415

    project = find_project(os.getcwd())
    if os.path.exists(os.path.join(project.top, ".git")) and (memory := project_memory(home, project)):
        print(f"memory of {safe_line(project.name)}: {safe_line(memory)}")


def _import(past: NewFiles) -> None:
    """Take in the sessions that already happened; Ctrl-C stops it, and the next set-up continues."""
    if not past.files:
        return
    taken = total(take_in(past, "daypack setup"))
    print(
        f"imported {counted(taken.sessions, 'session')}: {counted(taken.messages, 'new message')}, "
        f"{counted(taken.entries, 'entry', 'entries')} in memories"
    )
    if taken.without_folder:
        what = counted(taken.without_folder, "session")
        print_note(f"  {what} in no memory, because the folder is gone; `daypack find` finds what was said there")
    print_failures(taken.failures)


def _find_decisions(home: Home) -> None:
    """Find what recorded sessions decided about files, so that the hook of edits knows it in the next session."""
    from daypack.hooks.file_decisions.updating import build_missing_decisions  # noqa: PLC0415 — few switch it on

    if made := build_missing_decisions(home, _DECISIONS_SECONDS):
        print(f"found what was decided about files of {counted(made, 'project')}, for recall_before_edit")


def _remove(args: argparse.Namespace, home: Home, hosts: Sequence[HostName]) -> int:
    removal = plan_removal(read_record(home), hosts)
    if removal.record == removal.previous and not removal.kept:
        print_note("nothing to remove: daypack is not set up" + (f" for {', '.join(hosts)}" if hosts else ""))
        return 0
    _show_changes([change for change in removal.changes if change.after is not None])
    _show_files("delete", [change for change in removal.changes if change.after is None])
    for file in removal.kept:
        print_note(f"{short_path(file.path)}: {safe_line(file.problem)}\n  → {safe_line(file.hint)}")
    if args.dry_run:
        print_note("nothing written: --dry-run")
        return 0
    if removal.changes and not args.yes and not _confirm("Take this back?"):
        print_note("nothing written")
        return EXIT_FAILED
    with one_at_a_time(home):
        removal = _unchanged(removal, plan_removal(read_record(home), hosts))
        apply_changes(home, removal.changes, removal.previous, removal.record)
    print("daypack is no longer connected; a running agent keeps the plug-in until it ends.")
    if os.path.isdir(home.root):
        print(
            f"Sessions and memories stay in {short_path(home.root)}. To delete them too: rm -r {shell_word(home.root)}"
            if home.database is None
            else f"Sessions and memories stay in {_place(home)}."
        )
    return EXIT_FAILED if removal.kept else 0


def _unchanged(shown: _Planned, now: _Planned) -> _Planned:
    """Return the plan that was shown if it still holds, else the plan of this moment, which must have nothing to do."""
    if now.changes == shown.changes and now.previous == shown.previous:
        return shown  # made before the lock: it knows that the home did not exist
    if now.changes:
        problem = "the files have changed since they were shown"
        raise BadInput(problem, operation="setup", hint="run the command again")
    return now


def _show_plan(plan: Plan) -> None:
    _show_files("write", plan.shared)
    for agent in plan.agents:
        _show_files("write", agent.copies)
        _show_changes(agent.changes)
        if agent.state == "failed":
            print_note(f"{agent.agent.title} is left out: {safe_line(agent.problem)}\n  → {safe_line(agent.hint)}")
        elif agent.state == "elsewhere":
            print_note(
                f"{agent.agent.title} has the plug-in from another source, and keeps it: {short_path(agent.problem)}"
            )


def _show_files(verb: str, changes: "Sequence[Change]") -> None:
    """Print what happens to files that are ours as a whole: one line for each folder of the user's home."""
    folders: dict[str, list[str]] = {}
    for change in changes:
        top = os.path.relpath(change.path, user_home(os.environ)).split(os.sep)[0]
        folders.setdefault(top, []).append(change.path)
    for paths in folders.values():
        if len(paths) == 1:
            print(f"{verb} {short_path(paths[0])}")
        else:
            print(f"{verb} {len(paths)} files in {short_path(os.path.commonpath(paths))}")


def _show_changes(changes: "Sequence[Change]") -> None:
    for change in changes:
        for line in change.diff().splitlines():
            print(colour(safe(line), _COLOURS[line[0]]) if line[:1] in _COLOURS else safe(line))


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        hint = "confirm with --yes, or see what would change with --dry-run"
        raise BadInput("cannot ask for confirmation without a terminal", operation="setup", hint=hint)
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _report(plan: Plan) -> None:
    for agent in plan.agents:
        if agent.state in _STATES:
            then = f"; {_NEXT[agent.agent.host]}" if agent.state != "unchanged" else ""
            print(f"{agent.agent.title}: {_STATES[agent.state]}{then}")
        if agent.other_server:
            command = f"{agent.agent.host} mcp remove {SERVER}"
            print_note(f"  {short_path(agent.other_server)} starts the memory tools too; to have them once: {command}")


def _exit_code(plan: Plan) -> int:
    return EXIT_FAILED if any(agent.state == "failed" for agent in plan.agents) else 0
