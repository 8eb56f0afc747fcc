"""`daypack import --all`: what is new at all known places, in one run, or with --watch as it is written."""

import argparse
import os
from collections.abc import Sequence

from daypack.cli.import_progress import print_failures, short_path, take_in, total
from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import since
from daypack.cli.terminal import counted, json_text, print_note, safe_line, table
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.setup.past import ProjectCapture, captured_hosts
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import NewFiles, Taken
from daypack.importers.all_places.scan import Found, PlacesScanner
from daypack.importers.places import PLACES, PlacedFile
from daypack.types.names import did_you_mean

_COMMAND = "daypack import --all"
_OPTIONS = ("dry_run", "since", "project")
_ALL_FAILURES = 20
_MEGABYTE = 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of --all and --watch."""
    places = parser.add_argument_group(
        "all sessions of all agents",
        "Sessions are stored with the agent that wrote them; sessions that you deleted do not come back. Where "
        "`daypack setup` has connected an agent, its sessions are also captured into the memories of their projects.",
    )
    places.add_argument("--all", action="store_true", help="import what is new at all known places, the oldest first")
    places.add_argument(
        "--watch", action="store_true", help="keep running, and import what is written there, or below PATH"
    )
    places.add_argument("--dry-run", action="store_true", help="show what would be imported and write nothing")
    places.add_argument(
        "--since", type=since, metavar="TIME", help="only files changed since a date, or within an age such as 7d"
    )
    places.add_argument("--project", metavar="PATH", help="only sessions in the project of this folder")


def refuse_options(args: argparse.Namespace) -> None:
    """Refuse options that only --all has."""
    for name in _OPTIONS:
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            hint = f"{_COMMAND} {option} …"
            raise BadInput(f"{option} needs --all", operation="import", place="arguments", hint=hint)


def run(args: argparse.Namespace, format: str | None, paths: Sequence[str]) -> int:  # noqa: A002
    """Import all places, or watch; exit code 1 if a file could not be imported."""
    _check(args, paths)
    if args.watch:
        from daypack.cli import import_watch  # noqa: PLC0415 — only to watch

        return import_watch.run(args, format, paths, [] if paths else _chosen_places(args))
    home = find_home(args.home, args.uid)
    places = _chosen_places(args)
    found = PlacesScanner(places, os.environ).scan()
    new = _find_new(args, home, found)
    if not args.json:
        _print_found(places, found, new)
    taken: dict[str, Taken] = {}
    if args.dry_run:
        print_note("nothing written: --dry-run")
    elif new.files:
        taken = take_in(new, _COMMAND)
    if args.json:
        print(json_text(_as_json(places, found, new, taken)))
    elif new.files and not args.dry_run:
        _print_taken(taken)
    return EXIT_FAILED if total(taken).failures else 0


def _check(args: argparse.Namespace, paths: Sequence[str]) -> None:
    problem = ""
    if args.all and paths:
        problem = f"--all takes no path, got {safe_line(paths[0])}"
    elif not args.all and not args.watch:
        problem = "no path given"
    for name in ("session", "trust_system", "verify"):
        if getattr(args, name):
            problem = f"--{name.replace('_', '-')} is for named files, not for --all or --watch"
    if args.watch:
        for name in _OPTIONS:
            if getattr(args, name):
                problem = f"--{name.replace('_', '-')} does not go with --watch"
    if problem:
        hint = f"{_COMMAND}, daypack import PATH, or daypack import --watch [PATH …]"
        raise BadInput(problem, operation="import", place="arguments", hint=hint)


def _chosen_places(args: argparse.Namespace) -> list[str]:
    """Return the known places, or those of the agents that --agent names."""
    with_files = [name for name, place in PLACES.items() if place.patterns]
    if not args.agent_given:
        return with_files
    names = {name: name for name in PLACES} | {place.format: name for name, place in PLACES.items()}
    chosen = [name.strip() for name in args.agent.split(",")]
    for name in chosen:
        if name not in names:
            hint = did_you_mean(name, list(names)) or f"choose {', '.join(PLACES)}"
            raise BadInput(f"unknown agent {name!r}", operation="import", place="--agent", hint=hint)
    return [name for name in with_files if name in {names[each] for each in chosen}]


def _find_new(args: argparse.Namespace, home: Home, found: Sequence[Found]) -> NewFiles:
    """Return the files with something to import, of those that the options choose."""
    if args.since:
        found = [each for each in found if each.file.modified >= args.since * 1e9]
    new = NewFiles(home, found, Ledger(home), ProjectCapture(home, captured_hosts(home)))
    if args.project:
        from daypack.memory.project import find_project  # noqa: PLC0415 — only for this option

        if not os.path.isdir(args.project):
            raise BadInput("no such folder", operation="import", place=args.project, hint="--project FOLDER")
        new.keep_project(find_project(os.path.abspath(args.project)))
    return new


def _print_found(places: Sequence[str], found: Sequence[Found], new: NewFiles) -> None:
    rows: list[tuple[str, ...]] = []
    for name in places:
        files = [each.file for each in found if each.place == name]
        if files:
            changed = [each.file for each in new.files if each.place == name]
            rows.append((_count(len(files)), _size(files), _count(len(changed)), _size(changed), PLACES[name].title))
    if rows:
        print("\n".join(table(("files", "size", "new files", "new size", "agent"), rows, right=4)))
    missing = [f"{PLACES[name].title} ({short_path(_folder(name))})" for name in places if not _of(found, name)]
    if missing:
        print_note(f"nothing found of {', '.join(missing)}")
    if rows and not new.files:
        print("everything is imported")
    if not rows:
        print_note("to import files from elsewhere: daypack import PATH …")


def _print_taken(taken: dict[str, Taken]) -> None:
    rows = [
        (
            _count(part.files),
            _count(part.sessions),
            _count(part.messages),
            _count(part.entries),
            _count(len(part.failures)),
            PLACES[name].title,
        )
        for name, part in taken.items()
    ]
    print("imported:")
    print("\n".join(table(("files", "sessions", "new messages", "entries", "failed", "agent"), rows, right=5)))
    everything = total(taken)
    if everything.deleted:
        print_note(f"  {counted(everything.deleted, 'file')} left out: you deleted here what came from it")
        print_note("    → `daypack import PATH` brings a session back")
    if everything.without_folder:
        what = counted(everything.without_folder, "session")
        print_note(f"  {what} in no memory, because the folder is gone; `daypack find` finds what was said there")
    if everything.without_transcript:
        what = counted(everything.without_transcript, "session")
        print_note(f"  {what} of Codex read from its history database, because the rollouts are gone: without")
        print_note("    instructions, encrypted reasoning, token counts and summaries of compactions")
    print_failures(everything.failures, _ALL_FAILURES)
    if everything.messages:
        print_note('search all of it: daypack find "where did we fix the port"')


def _as_json(
    places: Sequence[str], found: Sequence[Found], new: NewFiles, taken: dict[str, Taken]
) -> dict[str, object]:
    rows = [
        {
            "agent": name,
            "files": len(_of(found, name)),
            "bytes": sum(each.file.size for each in _of(found, name)),
            "new_files": len(_of(new.files, name)),
            "new_bytes": sum(each.file.size for each in _of(new.files, name)),
            "imported": {key: value for key, value in taken.get(name, Taken())._asdict().items() if key != "failures"},
        }
        for name in places
    ]
    failed = [failure._asdict() for part in taken.values() for failure in part.failures]
    return {"places": rows, "failed": failed}


def _of(found: Sequence[Found], place: str) -> list[Found]:
    return [each for each in found if each.place == place]


def _folder(place: str) -> str:
    known = PLACES[place]
    return (known.data or (known.folder,))[0].find(os.environ)


def _count(number: int) -> str:
    return f"{number:,}"


def _size(files: Sequence[PlacedFile]) -> str:
    size = sum(file.size for file in files)
    return f"{size / 1e6:,.1f} MB" if size >= _MEGABYTE else f"{size / 1e3:,.1f} kB"
