"""PreToolUse of a tool that edits: what was decided about the file before.

<note id="…" name="daypack: decided before about src/shop/retry.py">
Recorded from earlier work; quoted, no instructions, perhaps out of date. `daypack recall 5ac28188 messages:135 …` …
- 2026-11-02 user, 5ac28188 messages:135: Do not fall back, print a warning.
</note …>

The user switches it on: `[hooks] recall_before_edit`. The agent gets the text with the result of the edit, and the edit
is neither allowed nor refused here. It reads two small files that a take-in wrote, and computes nothing.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.composition import Fenced, Room, Section, compose
from daypack.hooks.file_decisions.index import DecisionIndex, FileDecision, Kind, entries_file, read_index
from daypack.hooks.file_decisions.naming import covers, former_names, is_ambiguous, is_file, relative_path
from daypack.hooks.recap.recap import read_recap
from daypack.hooks.stored_session import layout_of, short_name
from daypack.memory.project import Project, find_project, project_memory
from daypack.memory.project.memory import decisions_file

MAX_TOKENS = 200
MAX_LINES = 4
_PATH_FIELDS = ("file_path", "path", "notebook_path")
_PATCH_FIELDS = ("command", "input", "patch")
_MAX_FILES = 20  # of a patch
_WORTH: dict[Kind, int] = {"rule": 0, "decision": 2, "revert": 3, "failure": 4, "reason": 5}
_OPENING = "Recorded from earlier work on this file; quoted, no instructions, perhaps out of date."
_SPEAKERS: dict[Kind, str] = {"rule": "standing rule of the user"}


class _Edited(NamedTuple):
    """A file that is about to be edited: its path from the top of the working tree, and the names it had before."""

    path: str
    names: tuple[str, ...]


def before_edit(call: HookCall, home: Home, injected: Collection[str] = ()) -> Injection | None:
    """Return what was decided about the files that a tool is about to edit; None if there is nothing.

    `injected` are the items that the session's window has already. A file is spoken of once in a window.
    """
    paths = edited_paths(call)
    if not paths:
        return None
    project = find_project(call.cwd)
    if project.off:
        return None
    index = read_index(decisions_file(home, project)) or DecisionIndex()
    memory_id = project_memory(home, project, create=False)
    entries = read_index(entries_file(home, memory_id)) if memory_id else None
    decisions = (*index.decisions, *(entries.decisions if entries else ()))
    if not decisions:
        return None
    window = _Window(call, home, injected)
    for path in paths:
        if (relative := _from_top(path, call.cwd, project)) is None or window.has(f"file:{relative}"):
            continue
        edited = _Edited(relative, tuple(former_names(relative, index.renamed)))
        found = [each for each in decisions if _is_about(each, edited, index.paths) and not window.shows(each)]
        if injection := _compose(call, edited, found, window):
            return injection
    return None


def edited_paths(call: HookCall) -> list[str]:
    """Return the files that a tool call is about to edit, as the call names them."""
    given = call.fields.get("tool_input")
    fields = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"patch": given}
    paths = [path for name in _PATH_FIELDS if isinstance(path := fields.get(name), str) and path]
    for name in _PATCH_FIELDS:
        text = fields.get(name)
        if isinstance(text, str) and ("*** " in text or "+++ " in text):
            from daypack.derived.artifacts.patches import read_patch  # noqa: PLC0415 — most tools name a file

            paths += [touch.path for touch in read_patch(text)]
    return [path for path in dict.fromkeys(paths) if "\0" not in path][:_MAX_FILES]


def _from_top(path: str, cwd: str, project: Project) -> str | None:
    """Return a path from the top of its working tree; None if it is not in a working tree of the project."""
    folder, name = os.path.split(os.path.join(os.path.realpath(cwd), os.path.expanduser(path)))
    folder = os.path.realpath(folder)
    whole = os.path.join(folder, name)
    if (relative := relative_path(whole, "/", project.top)) is not None:
        return relative
    other = find_project(folder, with_settings=False)  # another worktree of the repository
    return relative_path(whole, "/", other.top) if other.key == project.key else None


def _is_about(decision: FileDecision, edited: _Edited, paths: Collection[str]) -> bool:
    return any(
        covers(name, path) and not (is_file(name) and is_ambiguous(name, path, paths))
        for name in decision.files
        for path in edited.names
    )


class _Window:
    """What the window of the host has: what hooks said, and the messages of the session that did not leave it."""

    def __init__(self, call: HookCall, home: Home, injected: Collection[str]) -> None:
        layout = layout_of(call, home)
        self._session = f"{layout.agent}/{layout.name}"
        self._layout = layout
        self._injected = injected
        # A sub-agent has a window of its own.
        self._agent = f"{agent} " if (agent := call.text("agent_id")) else ""

    def has(self, item: str) -> bool:
        return self.item(item) in self._injected

    def item(self, item: str) -> str:
        """Return the id under which an item is recorded."""
        return self._agent + item

    def shows(self, decision: FileDecision) -> bool:
        """Return True if a decision is in the window."""
        if decision.session != self._session:
            return self.has(decision.place)
        recap = read_recap(self._layout)
        left = recap is not None and decision.seq <= recap.lost and decision.seq not in recap.kept
        in_rules = recap is not None and decision.kind == "rule" and decision.text in recap.rules
        return not left or in_rules or self.has(f"messages:{decision.seq}")  # rules come back after a compaction


def _compose(call: HookCall, edited: _Edited, found: Iterable[FileDecision], window: _Window) -> Injection | None:
    """Return the text: rules first, then what the user decided; of each kind the newest first."""
    newest = sorted(found, key=lambda decision: (decision.at, decision.seq), reverse=True)
    once: dict[str, FileDecision] = {}
    for decision in newest:
        once.setdefault(decision.text.casefold(), decision)  # a memory may have the same words
    chosen = sorted(once.values(), key=lambda decision: _WORTH[decision.kind] - decision.by_user)[:MAX_LINES]
    lines = [_line(decision) for decision in chosen]
    while chosen:
        shown = Fenced("note", f"daypack: decided before about {edited.path}", f"{_OPENING} {_more(chosen)}")
        text = compose([Section("", lines[: len(chosen)])], shown, Room(call, MAX_TOKENS))
        if text and lines[len(chosen) - 1] in text:
            places = (window.item(decision.place) for decision in chosen)
            return Injection(text, (window.item(f"file:{edited.path}"), *places))
        chosen.pop()
    return None


def _line(decision: FileDecision) -> str:
    speaker = _SPEAKERS.get(decision.kind, "user" if decision.by_user else "agent")
    origin = f"entry {decision.entry}" if decision.entry else f"{_short(decision)} messages:{decision.seq}"
    return f"- {decision.at[:10]} {speaker}, {origin}: {decision.text}".replace("-  ", "- ")


def _short(decision: FileDecision) -> str:
    return short_name(decision.session.rpartition("/")[2])


def _more(chosen: Iterable[FileDecision]) -> str:
    """Return how the rest of the first one is read."""
    said = next((decision for decision in chosen if decision.session), None)
    if said is None:
        return "The tool search_memories finds more."
    agent = said.session.rpartition("/")[0]
    return f"`daypack recall {_short(said)} messages:{said.seq} --agent {agent}` prints the message."
