"""The plan of a set-up: for each agent the changes of its files, or why there are none; nothing is written here."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from msgspec.structs import replace

from daypack.errors import BadInput, DaypackError
from daypack.files.planned import Change, current
from daypack.history.layout import Home
from daypack.hooks.call import HostName
from daypack.hooks.setup.agents import WITHOUT_PLUGIN, Agent
from daypack.hooks.setup.hermes import list_hermes_parts
from daypack.hooks.setup.installation import (
    LOADED,
    Entry,
    Part,
    Settings,
    Source,
    Whole,
    find_other_server,
    list_parts,
)
from daypack.hooks.setup.record import EntryRecord, FileRecord, Format, SetupRecord
from daypack.hooks.setup.settings_edit import decode, is_set, look_up, put
from daypack.types.digest import digest_bytes

State = Literal["new", "changed", "unchanged", "elsewhere", "failed"]


class AgentPlan(NamedTuple):
    """What happens to one agent: changes of its settings, and copies of files of the plug-in.

    `elsewhere`: it has the plug-in from another source, as the file in `problem` says. `failed`: a file cannot be
    changed.
    """

    agent: Agent
    state: State
    changes: tuple[Change, ...] = ()
    copies: tuple[Change, ...] = ()
    other_server: str = ""  # the file in which the agent has the memory tools already, without the plug-in
    problem: str = ""
    hint: str = ""

    @property
    def is_set_up(self) -> bool:
        """True if the agent has the plug-in after the changes, from here."""
        return self.state in ("new", "changed", "unchanged")


class Plan(NamedTuple):
    """All changes of a set-up: of the shared plug-in folder, then of the agents; and the record after them."""

    shared: tuple[Change, ...]
    agents: tuple[AgentPlan, ...]
    previous: SetupRecord
    record: SetupRecord

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in the order in which they are made."""
        return (*self.shared, *(change for agent in self.agents for change in (*agent.copies, *agent.changes)))


class _Parts(NamedTuple):
    changes: list[Change]
    copies: list[Change]
    records: list[FileRecord]


class _ElsewhereError(Exception):
    """The plug-in is installed from another source."""


def plugin_home(home: Home) -> str:
    """Return the folder of the marketplace in daypack's home."""
    return os.path.join(home.folder, "plugin")


def make_plan(home: Home, agents: Sequence[Agent], files: Mapping[str, bytes], now: str, record: SetupRecord) -> Plan:
    """Plan the installation of these files in daypack's home, and of the plug-in in these agents."""
    source = Source(plugin_home(home), files, now)
    planned: list[AgentPlan] = []
    written: list[FileRecord] = []
    for agent in agents:
        agent_plan, records = _plan_agent(agent, source, record)
        planned.append(agent_plan)
        written += records
    shared: list[Change] = []
    uses_shared = any(agent.is_set_up and agent.agent.host not in WITHOUT_PLUGIN for agent in planned)
    if uses_shared:
        parts = [Whole(os.path.join(source.marketplace, path), data) for path, data in files.items()]
        planned_parts = _plan_parts(None, parts, record)
        shared += planned_parts.copies
        written += planned_parts.records
    renewed: list[HostName | None] = [agent.agent.host for agent in planned if agent.state != "failed"]
    stale, gone = _plan_stale(record, written, [*renewed, None] if uses_shared else renewed)
    kept = [file for file in record.files if file.path not in {*gone, *(file.path for file in written)}]
    files_after = (*kept, *(_with_folders_of(gone, file, record) for file in written))
    agent_plans = tuple(_with_shared(agent, (*shared, *stale), source) for agent in planned)
    return Plan((*shared, *stale), agent_plans, record, SetupRecord(files=files_after))


def _with_shared(agent: AgentPlan, shared: Iterable[Change], source: Source) -> AgentPlan:
    """Return the plan of an agent; one whose own files stay is changed if the folder that it loads is."""
    loaded = LOADED.get(agent.agent.host)
    if agent.state != "unchanged" or not loaded:
        return agent
    folder = os.path.join(source.marketplace, loaded, "")
    return agent._replace(state="changed") if any(change.path.startswith(folder) for change in shared) else agent


def _with_folders_of(gone: Sequence[str], file: FileRecord, record: SetupRecord) -> FileRecord:
    """Return the record of a file with the folders above it that were made for files that go."""
    made = (folder for old in record.files if old.path in gone for folder in old.folders)
    above = [folder for folder in made if os.path.realpath(file.path).startswith(folder + os.sep)]
    return replace(file, folders=tuple(dict.fromkeys((*above, *file.folders))))


def _plan_agent(agent: Agent, source: Source, record: SetupRecord) -> tuple[AgentPlan, list[FileRecord]]:
    try:
        list_them = list_hermes_parts if agent.host == "hermes" else list_parts
        parts = list_them(agent, source, _read_value)
        _check_source(parts, record)
        planned = _plan_parts(agent.host, parts, record)
    except _ElsewhereError as found:
        return AgentPlan(agent, "elsewhere", problem=str(found)), []
    except DaypackError as error:
        return AgentPlan(agent, "failed", problem=f"{error.problem} [{error.place}]", hint=error.hint), []
    known = any(file.host == agent.host for file in record.files)
    state = "unchanged" if not (planned.changes or planned.copies) else "changed" if known else "new"
    other = find_other_server(agent, _read_value)
    return AgentPlan(agent, state, tuple(planned.changes), tuple(planned.copies), other), planned.records


def _read_value(path: str, format: Format, keys: tuple[str, ...]) -> object:  # noqa: A002 — the word of the record
    data = current(path)
    return None if data is None else look_up(format, path, decode(path, data), keys)


def _check_source(parts: Iterable[Part], record: SetupRecord) -> None:
    """Raise if the plug-in is there, but neither from our folder nor by our hand."""
    for part in parts:
        data = current(part.path)
        if data is None or record.find(part.path):
            continue
        if isinstance(part, Whole):
            if part.names_source and data != part.data:
                raise _ElsewhereError(part.path)
            continue
        for entry in (entry for entry in part.entries if entry.names_source):
            existing = look_up(part.format, part.path, decode(part.path, data), entry.keys)
            if existing is not None and not _same_source(part, existing, entry):
                raise _ElsewhereError(part.path)


def _same_source(settings: Settings, existing: object, entry: Entry) -> bool:
    if settings.format == "toml":
        return is_set(settings.format, existing, entry.value)
    return isinstance(existing, dict) and cast("dict[str, Any]", existing).get("source") == entry.value["source"]


def _plan_parts(host: HostName | None, parts: Iterable[Part], record: SetupRecord) -> _Parts:
    planned = _Parts([], [], [])
    for part in parts:
        before, known = current(part.path), record.find(part.path)
        if isinstance(part, Whole):
            change = Change(part.path, before, part.data)
            new = _new_record(host, change, "whole")
        else:
            edited = put(part, None if before is None else decode(part.path, before))
            change = Change(part.path, before, edited.text.encode() if edited.steps else before)
            adopted = () if known else [EntryRecord(entry.keys, item=entry.item) for entry in part.entries]
            entries = _merge(known, edited.entries, adopted)
            new = _new_record(host, change, part.format)
            new = replace(new, steps=edited.steps, entries=entries, trusts=part.trusts)
        planned.records.append(_continue(known, new) if change.needed or known is None else known)
        if change.needed:
            _check_writable(change)
            is_copy = isinstance(part, Whole) and not part.names_source
            (planned.copies if is_copy else planned.changes).append(change)
    return planned


def _new_record(host: HostName | None, change: Change, format: Format) -> FileRecord:  # noqa: A002
    return FileRecord(
        host=host,
        path=change.path,
        format=format,
        before="" if change.before is None else digest_bytes(change.before),
        after=digest_bytes(change.after or b""),
        folders=_missing_folders(change.path),
    )


def _merge(
    known: FileRecord | None, set_now: Sequence[EntryRecord], adopted: Sequence[EntryRecord]
) -> tuple[EntryRecord, ...]:
    """Return one record per entry: the oldest, which has the value from before all set-ups."""
    merged: dict[tuple[str, ...], EntryRecord] = {}
    for entry in (*(known.entries if known else ()), *set_now, *adopted):
        merged.setdefault(entry.keys, entry)
    return tuple(merged.values())


def _continue(known: FileRecord | None, new: FileRecord) -> FileRecord:
    """Return the record of a file that is written again: its steps continue if no other program has changed it."""
    if known is None:
        return new
    folders = tuple(dict.fromkeys((*known.folders, *new.folders)))
    if known.after == new.before or known.format == "whole":
        return replace(new, before=known.before, steps=(*known.steps, *new.steps), folders=folders)
    return replace(new, before=known.before, steps=(), folders=folders)


def _plan_stale(
    record: SetupRecord, written: Sequence[FileRecord], renewed: Sequence[HostName | None]
) -> tuple[list[Change], list[str]]:
    """Plan the deletion of unchanged files of an earlier version, of these hosts, and of the shared folder for None."""
    changes: list[Change] = []
    gone: list[str] = []
    for file in record.files:
        if file.format != "whole" or file.host not in renewed or file.path in {new.path for new in written}:
            continue
        data = current(file.path)
        gone.append(file.path)
        if data is not None and digest_bytes(data) == file.after:
            changes.append(Change(file.path, data, None))
    return changes, gone


def _missing_folders(path: str) -> tuple[str, ...]:
    """Return the folders above a file that do not exist, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def _check_writable(change: Change) -> None:
    """Raise BadInput if a file cannot be replaced, so that the plan says it and not the attempt."""
    folder = os.path.dirname(os.path.realpath(change.path))
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = f"allow yourself to write there: chmod u+wx {folder}"
        raise BadInput("the folder is not writable", operation="setup", place=folder, hint=hint)
