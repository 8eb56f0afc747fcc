"""Create, list and show sessions."""

import argparse
import os
import time
from contextlib import suppress
from typing import Any

from daypack.cli.options import add_place, existing_agent, find_sessions, natural, open_named
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, terminal_width
from daypack.config import Settings
from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.session import Session, open_session
from daypack.session.listing import AgentSessions, describe
from daypack.text.columns import AGE_COLUMNS, age, fit

_PIPE_COLUMNS = 160  # where output is not a terminal
_NAME_COLUMNS = 40  # a longer name moves only the title of its own line
_MIN_TITLE = 8  # columns; with fewer a title says nothing
_FEW = 3  # other agents that are named


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="new|list|show")
    summaries = {
        "new": "Create a session; an existing one is not changed.",
        "list": "List the sessions of all agents, the newest first.",
        "show": "Show the state, folder and size of a session.",
    }
    new, listing, show = (actions.add_parser(name, help=what, description=what) for name, what in summaries.items())
    add_place(new)
    new.add_argument("--model", help="model of the session; determines the tokenizer")
    add_place(listing, session=None)
    listing.add_argument(
        "-n", type=natural, default=0, metavar="COUNT", help="number to show, 0 for all (default: %(default)s)"
    )
    listing.add_argument(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="only sessions of the project that the folder belongs to, in all its worktrees (default: this folder)",
    )
    add_place(show)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"new": _new, "list": _list, "show": _show}[args.action](args)


def _new(args: argparse.Namespace) -> int:
    settings: Settings = {"model": args.model} if args.model else {}
    with open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, **settings) as session:
        print(json_text(describe(session) | _store_of(session)) if args.json else safe_line(str(session.path)))
        for place in () if args.json else _store_of(session).values():
            print_note(f"the folder is a cache of {safe_line(place)}, where the session is")
    return 0


def _store_of(session: Session) -> dict[str, str]:
    """Return the database that has a session, as another fact about it; none if it is in files."""
    home = session.layout.home
    return {} if home.database is None else {"store": home.sessions_place}


def _list(args: argparse.Namespace) -> int:
    home = find_sessions(args)
    args.agent = existing_agent(home, args.agent)
    agents = home.agents() if args.any_agent else [args.agent]
    lists = [AgentSessions(home, agent) for agent in agents]
    found = [(agent, name) for agent in lists for name in agent.names]
    project = _project(args)
    if project or not args.n:
        for agent in lists:
            agent.fill()
    found.sort(key=lambda place: place[0].updated(place[1]), reverse=True)
    if project:
        found = [(agent, name) for agent, name in found if project.has(agent.row(name).get("cwd"))]
    shown = found[: args.n or None]
    if args.n:
        for agent in lists:
            agent.fill([name for each, name in shown if each is agent])
    rows = [agent.row(name) for agent, name in shown]
    for agent in lists:
        agent.save()
    if args.json:
        print(json_text(rows))
        return 0
    if rows:
        print("\n".join(_table(rows, with_agent=sum(bool(agent.names) for agent in lists) > 1)))
    else:
        of_agent = "" if args.any_agent else f" of agent {safe_line(args.agent)}"
        of_project = f" of project {safe_line(project.name)}" if project else ""
        print_note(f"no sessions{of_agent}{of_project} in {safe_line(home.sessions_place)}")
    if len(rows) < len(found):
        print_note(f"… {counted(len(found) - len(rows), 'older session')} not shown; -n 0 shows all")
    if not rows:
        _mention_others(home, args, any_project=project is not None)
    return 0


def _mention_others(home: Home, args: argparse.Namespace, *, any_project: bool) -> None:
    """Say how many sessions others have; their folders are only listed."""
    others = dict[str, int]()
    for other in home.agents():
        with suppress(DaypackError):  # a folder that cannot be read is not what was asked for
            others[other] = len(home.list(other))
    files = home._replace(database=None)
    if home.database is not None and (count := sum(len(files.list(agent)) for agent in files.agents())):
        print_note(f"{counted(count, 'session')} in files of the home: `daypack copy` copies them into the database")
    names = [other for other, count in others.items() if count and (any_project or other != args.agent)]
    if names:
        count = counted(sum(others[name] for name in names), "session")
        listed = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
        hint = "list them without --project" if any_project else "add --agent NAME"
        print_note(f"{count} of {'agent' if len(names) == 1 else 'agents'} {safe_line(listed)}: {hint}")


class _Project:
    """Recognises the sessions of one project by the folders they were created in."""

    def __init__(self, folder: str) -> None:
        from daypack.memory.project import find_project  # noqa: PLC0415 — only for --project

        self._find = find_project
        self._key = find_project(folder).key
        self.name = find_project(folder).name
        self._known: dict[str, bool] = {}

    def has(self, cwd: object) -> bool:
        """Return True if a folder belongs to the project; the folder may be gone."""
        if not isinstance(cwd, str) or not os.path.isabs(cwd):
            return False
        if cwd not in self._known:
            try:
                self._known[cwd] = self._find(cwd).key == self._key
            except DaypackError:  # its settings cannot be read
                self._known[cwd] = False
        return self._known[cwd]


def _project(args: argparse.Namespace) -> _Project | None:
    return _Project(args.project) if args.project is not None else None


def _table(rows: list[dict[str, Any]], *, with_agent: bool) -> list[str]:
    """Return the lines of the list; titles are cut to the terminal, names never."""
    now, room = time.time(), terminal_width(_PIPE_COLUMNS)
    with_state = any(row.get("state", "active") != "active" for row in rows)
    cells = [("age", "messages", "tokens", "state", "agent", "session", "title")]
    for row in rows:
        numbers = age(row.get("updated_at") or "", now), _number(row.get("messages")), _number(row.get("tokens"))
        state = row.get("state", "error").removeprefix("active")
        names = safe_line(row["agent"]), safe_line(row["session"])
        cells.append((*numbers, state, *names, row.get("error") or row["title"] or ""))
    widths = [max(least, *(len(row[at]) for row in cells)) for at, least in enumerate((AGE_COLUMNS, 0, 0, 0, 0))]
    name_width = max(len(row[5]) for row in cells if len(row[5]) <= _NAME_COLUMNS)
    lines: list[str] = []
    for *numbers, state, agent, name, title in cells:
        fields = [text.rjust(width) for text, width in zip(numbers, widths, strict=False)]
        fields += [state.ljust(widths[3])] if with_state else []
        fields += [agent.ljust(widths[4])] if with_agent else []
        line = "  ".join([*fields, name.ljust(name_width)])
        left = room - len(line) - 2
        lines.append(f"{line}  {fit(title, left)}".rstrip() if left >= _MIN_TITLE else line.rstrip())
    return [colour(lines[0], "dim"), *lines[1:]]


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _show(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        pins = list(session.pins)
        facts = describe(session, max_bytes=None) | {"pins": pins} | _store_of(session)
    if args.json:
        print(json_text(facts))
        return 0
    for name, value in (facts | {"pins": ", ".join(pins)}).items():
        shown = f"{value:,}" if isinstance(value, int) else str(value or "–")
        print(f"{name:<11} {safe_line(shown)}")
    return 0
