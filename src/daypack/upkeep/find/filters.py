"""Which messages are searched: of which agents, projects and roles, and of what time.

Times are UTC unless they have a zone: 2026-11-01, 2026-11-01T08:30+01:00, 2026-11, today, yesterday, 7d, 3 weeks ago,
last month, monday.
"""

import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from msgspec import Struct

from daypack.errors import BadInput
from daypack.memory.project.repository import Project, find_project
from daypack.types.kinds import ROLES
from daypack.types.names import did_you_mean, one_line
from daypack.upkeep.find.candidates import FOREVER, Scope
from daypack.upkeep.find.index import Indexed, role_number

_HINT = "write 2026-11-01, 2026-11, today, yesterday, 12h, 7d, 3w, 2mo, 'last month' or monday"
_AMOUNT = re.compile(r"(\d{1,4})\s*(min|minutes?|h|hours?|d|days?|w|weeks?|mo|months?|y|years?)(?:\s+ago)?")
_SECONDS = {"min": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400, "mo": 30 * 86_400, "y": 365 * 86_400}
_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_SHORT_NAME = 2  # characters; so short a name of a folder says nothing
_WORKTREES = ("worktree", "worktrees", "trees")  # folders whose own name says nothing
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Filters(Struct, frozen=True, kw_only=True):
    """What is searched; everything by default. `project` is a folder or a name; `since` and `until` are times."""

    agents: tuple[str, ...] = ()
    project: str = ""
    roles: tuple[str, ...] = ()
    since: str = ""
    until: str = ""


def scope_of(filters: Filters, sessions: Sequence[Indexed], now: float) -> Scope:
    """Return what the filters mean among the indexed sessions."""
    everything = {session.number: session for session in sessions}
    since = parse_moment(filters.since, now, place="since") if filters.since else 0
    until = parse_moment(filters.until, now, is_end=True, place="until") if filters.until else FOREVER
    if filters.since and filters.until and since > until:
        problem = f"since ({filters.since}) is after until ({filters.until})"
        raise BadInput(problem, operation="find", place="since", hint="exchange them")
    _check(filters.agents, {session.agent for session in sessions}, "agent")
    _check(filters.roles, ROLES, "role")
    chosen = [
        session
        for session in sessions
        if (not filters.agents or session.agent in filters.agents)
        and (not session.oldest or session.oldest <= until)
        and (not session.newest or session.newest >= since)
    ]
    if filters.project:
        chosen = list(_of_project(filters.project, chosen))
    roles = tuple(role_number(role) for role in filters.roles) if filters.roles else None
    return Scope({session.number: session for session in chosen}, everything, roles, since, until)


@lru_cache(1 << 12)
def project_of(cwd: str) -> Project | None:
    """Return the project of a session's folder; None if the folder is unknown."""
    return find_project(cwd, with_settings=False) if cwd and os.path.isabs(cwd) and "\0" not in cwd else None


def name_of(cwd: str) -> str:
    """Return the name of a session's project; "" if unknown. A folder named 2 is shown with the one above it."""
    project = project_of(cwd)
    if project is None:
        return ""
    if len(project.name) > _SHORT_NAME and not project.name.isdigit():
        return project.name
    above = [part for part in os.path.dirname(project.top).split(os.sep) if part.lower().strip(".") not in _WORKTREES]
    return one_line("/".join(filter(None, (above[-1] if above else "", project.name))))


def _of_project(wanted: str, sessions: Iterable[Indexed]) -> Iterable[Indexed]:
    """Return the sessions of a repository, given by a folder in it or by its name; all its worktrees are one."""
    projects = [(session, project_of(session.cwd)) for session in sessions]
    is_folder = os.sep in wanted or wanted in (".", "..") or wanted.startswith("~")
    key = find_project(os.path.expanduser(wanted), with_settings=False).key if is_folder else ""
    name = wanted.casefold()
    chosen = [
        session
        for session, project in projects
        if project and (project.key == key if is_folder else name in _names_of(project, session))
    ]
    if not chosen:
        known = sorted({name_of(session.cwd) for session, project in projects if project})
        near = did_you_mean(wanted, known)
        hint = near or (f"known projects: {', '.join(known[:8])}" if known else "no session has a folder")
        raise BadInput(f"no session belongs to the project {wanted!r}", operation="find", place="project", hint=hint)
    return chosen


def _names_of(project: Project, session: Indexed) -> tuple[str, ...]:
    """Return the names of a session's project: of cli/2 also cli and 2."""
    shown = name_of(session.cwd)
    names = project.name, os.path.basename(session.cwd), shown, shown.partition("/")[0]
    return tuple(name.casefold() for name in names)


def _check(given: Iterable[str], known: Iterable[str], what: str) -> None:
    names = sorted(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"known: {', '.join(names[:8]) or 'none'}"
            raise BadInput(f"no session has the {what} {name!r}", operation="find", place=what, hint=hint)


def parse_moment(text: str, now: float, *, is_end: bool = False, place: str = "time") -> int:
    """Return a time in seconds since 1970: of a day, month or year its beginning, or its last second."""
    first, last = _parse(" ".join(text.lower().split()), text.strip(), datetime.fromtimestamp(now, UTC)) or (None, None)
    if first is None or last is None:
        raise BadInput(f"{text!r} is no time", operation="find", place=place, hint=_HINT)
    return int((last if is_end else first).timestamp())


def _parse(text: str, given: str, now: datetime) -> tuple[datetime, datetime] | None:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if text == "now":
            return now, now
        if text in ("today", "yesterday"):
            return _day(today - timedelta(days=text == "yesterday"))
        if text in _WEEKDAYS:
            return _day(today - timedelta(days=(today.weekday() - _WEEKDAYS.index(text)) % 7))
        if text.startswith("last ") and text[5:] in ("week", "month", "year"):
            moment = now - timedelta(seconds=_SECONDS[_unit(text[5:])])
            return moment, moment
        if amount := _AMOUNT.fullmatch(text):
            moment = now - timedelta(seconds=int(amount[1]) * _SECONDS[_unit(amount[2])])
            return moment, moment
        if month := _MONTH.fullmatch(text):
            return _month(int(month[1]), int(month[2]) if month[2] else 0)
        moment = datetime.fromisoformat(given)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _day(moment) if len(given) <= len("2026-11-01") else (moment, moment)


def _unit(word: str) -> str:
    return next(unit for unit in ("min", "mo", "h", "d", "w", "y") if word.startswith(unit))


def _day(start: datetime) -> tuple[datetime, datetime]:
    return start, start + timedelta(days=1, seconds=-1)


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    start = datetime(year, month or 1, 1, tzinfo=UTC)
    following = datetime(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1, tzinfo=UTC)
    return start, following - timedelta(seconds=1)
