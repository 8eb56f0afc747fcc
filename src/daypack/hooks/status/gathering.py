"""Gathers the status of a session: from the host, from the files of the session, from the memory of the project."""

import os
from collections.abc import Callable

from daypack.errors import BadConfig, DaypackError
from daypack.history.layout import Home, Layout, safe_name
from daypack.hooks.failures import read_unreported
from daypack.hooks.status.host import Host
from daypack.hooks.status.recorded import find_recorded, newest_of, read_recorded, read_usage
from daypack.hooks.status.status import ProjectMemory, Status
from daypack.memory.project.memory import USER, default_memory, project_memory
from daypack.memory.project.repository import Project, find_project
from daypack.memory.store.entry_count import find_counted
from daypack.plain_files import mentions

Count = Callable[[str], tuple[str, int] | None]  # of the entries of a memory: its id, title or start of an id


def gather(home: Home, folder: str, host: Host | None, *, max_bytes: int, count: Count | None = None) -> Status:
    """Return the status of the host's session, else of the newest session of the folder's project.

    `max_bytes` of the newest events are looked through. `count` finds a memory in the database and counts its entries;
    without it none is asked for. Nothing is written, and what cannot be read is unknown.
    """
    problem, folder = "", host.folder if host and host.folder else folder
    try:
        project = find_project(folder)
    except BadConfig as error:
        project, problem = find_project(folder, with_settings=False), f"{error.problem} [{error.place}]"
    status = Status(project=project.name, key=project.key, folder=project.top, problem=problem)
    if failures := read_unreported(home.folder):
        status = status._replace(failures=failures.number, failures_since=failures.since)
    if host is not None:
        status = status._replace(
            host_session=host.session,
            model=host.model,
            cost_usd=host.cost_usd,
            window=host.window,
            cache=host.cache,
        )
    try:
        if not problem:
            memory = _memory(home, folder, count)
            status = status._replace(memory=memory, memory_off=project.off and memory is None)
        if layout := _find(home, project, host):
            status = _with_session(status, layout, max_bytes)
    except DaypackError as error:  # of a home that cannot be read
        return status._replace(problem=status.problem or f"{error.problem} [{error.place}]")
    return status


def _find(home: Home, project: Project, host: Host | None) -> Layout | None:
    if host is None or not host.session:
        return newest_of(home, project)
    return find_recorded(home, safe_name(host.session))


def _with_session(status: Status, layout: Layout, max_bytes: int) -> Status:
    usage = read_usage(layout, max_bytes)
    window = status.window or usage.window
    if window and usage.window and not window.used:  # right after a compaction a host has not called its model yet
        window = window._replace(used=usage.window.used)
    return status._replace(
        session=read_recorded(layout),
        window=window,
        cache=status.cache or (None if status.host_session else usage.cache),
        compaction=usage.compaction,
    )


def _memory(home: Home, folder: str, count: Count | None) -> ProjectMemory | None:
    """Return the memory that commands in this folder mean if they name none."""
    given = os.environ.get("DAYPACK_MEMORY") or ""
    named, project = default_memory(home, folder, given=given, configured="" if given else _configured(home))
    if not named:
        return None
    place, found = _database(home), None
    if not place:
        found = find_counted(home.store, USER, named)
    elif count is None:
        return ProjectMemory(named, place=place)
    else:
        try:
            found = count(named)
        except DaypackError:
            return ProjectMemory(named, place=place)
    if found:
        return ProjectMemory(*found, place)
    is_expected = project is None or project_memory(home, project, create=False) is not None
    return ProjectMemory(named) if is_expected else None


def _configured(home: Home) -> str:
    """Return the default memory that config.toml names."""
    if not mentions(home.config, b"default"):
        return ""
    from daypack.config import from_file  # noqa: PLC0415 — few have this setting
    from daypack.memory.limits import read_limits  # noqa: PLC0415

    return read_limits(from_file(home.config), home.config).default_memory


def _database(home: Home) -> str:
    """Return the address of the database with the memories, without its password; "" if they are files."""
    if not os.environ.get("DAYPACK_STORE_URL") and not mentions(home.config, b"store"):
        return ""
    from daypack.config import with_database  # noqa: PLC0415 — few have one
    from daypack.postgres.address import shown  # noqa: PLC0415

    config = with_database(os.environ, home.config)
    return shown(config.store_url) if config and config.store_url else ""
