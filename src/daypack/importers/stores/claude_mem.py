"""claude-mem: `~/.claude-mem/claude-mem.db`, with observations, summaries of sessions and the user's prompts.

observations       project, type, title, subtitle, narrative, facts (a JSON list), concepts (a JSON list), created_at
session_summaries  project, request, investigated, learned, completed, next_steps, notes, created_at
user_prompts       content_session_id, prompt_text, created_at
sdk_sessions       content_session_id, memory_session_id, project
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from daypack.importers.stores.records import Orphan, Owner, Records, StoredMemory, Unreadable, checked, list_of, text_of
from daypack.importers.stores.store_files import Tables, is_sqlite, open_tables

NAME, TITLE = "claude-mem", "claude-mem"
_FILE = "claude-mem.db"
_SESSION = ("content_session_id", "memory_session_id", "project")
_TEXTS = ("text", "type", "title", "subtitle", "narrative", "facts", "concepts")
_OBSERVATION = ("id", "memory_session_id", "project", *_TEXTS, "created_at")
_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_SUMMARY = ("id", "memory_session_id", "project", *_PARTS, "created_at")
_PROMPT = ("id", "session_db_id", "content_session_id", "prompt_text", "created_at")


def detect(path: str) -> bool:
    """Return True if a file, or the file in a folder, has observations of sessions."""
    path = _file(path)
    if not is_sqlite(path):
        return False
    with open_tables(path) as tables:
        return "sdk_sessions" in tables.names and {"project", "type"} <= tables.columns("observations")


def read(path: str) -> Records:
    """Yield observations, summaries and prompts, then those whose session is missing."""
    path = _file(path)
    with open_tables(path) as tables:
        sessions = [row for row in tables.rows("sdk_sessions", _SESSION) if not isinstance(row, Unreadable)]
        known = {text_of(row.get("memory_session_id")) for row in sessions}
        projects = {text_of(row.get("content_session_id")): text_of(row.get("project")) for row in sessions}
        for found in (*_observations(tables, path), *_summaries(tables, path)):
            yield found
            if isinstance(found, StoredMemory) and found.owner.run not in known:
                yield Orphan(id=found.id, problem=f"its session {found.owner.run[:40]!r} is missing", place=found.place)
        yield from _prompts(tables, path, projects)


def _observations(tables: Tables, path: str) -> Iterator[StoredMemory | Unreadable]:
    for row in tables.rows("observations", _OBSERVATION):
        if isinstance(row, Unreadable):
            yield row
            continue
        title, subtitle = text_of(row.get("title")).strip(), text_of(row.get("subtitle")).strip()
        facts = [f"- {fact}" for item in _list(row.get("facts")) if (fact := text_of(item).strip())]
        narrative = text_of(row.get("narrative")).strip() or text_of(row.get("text")).strip()
        yield checked(
            StoredMemory(
                id=f"observation-{row.get('id')}",
                text="\n".join(filter(None, (title, subtitle, narrative, *facts))),
                kind="observation",
                owner=Owner(project=text_of(row.get("project")), run=text_of(row.get("memory_session_id"))),
                created_at=text_of(row.get("created_at")),
                place=f"{path}: observations",
                tags=tuple(filter(None, (text_of(row.get("type")), *map(text_of, _list(row.get("concepts")))))),
            )
        )


def _summaries(tables: Tables, path: str) -> Iterator[StoredMemory | Unreadable]:
    for row in tables.rows("session_summaries", _SUMMARY):
        if isinstance(row, Unreadable):
            yield row
            continue
        parts = [(part.replace("_", " ").capitalize(), text_of(row.get(part)).strip()) for part in _PARTS]
        yield checked(
            StoredMemory(
                id=f"summary-{row.get('id')}",
                text="\n".join(f"{part}: {text}" for part, text in parts if text),
                kind="summary",
                owner=Owner(project=text_of(row.get("project")), run=text_of(row.get("memory_session_id"))),
                created_at=text_of(row.get("created_at")),
                place=f"{path}: session_summaries",
            )
        )


def _prompts(tables: Tables, path: str, projects: dict[str, str]) -> Records:
    for row in tables.rows("user_prompts", _PROMPT):
        if isinstance(row, Unreadable):
            yield row
            continue
        session = text_of(row.get("content_session_id"))
        place = f"{path}: user_prompts"
        memory = StoredMemory(
            id=f"prompt-{row.get('id')}",
            text=text_of(row.get("prompt_text")),
            kind="prompt",
            owner=Owner(project=projects.get(session, ""), run=session),
            created_at=text_of(row.get("created_at")),
            place=place,
        )
        yield checked(memory)
        if session not in projects:
            yield Orphan(id=memory.id, problem=f"its session {session[:40]!r} is missing", place=place)


def _list(value: object) -> list[Any]:
    try:
        return list_of(msgspec.json.decode(text_of(value)))
    except (msgspec.DecodeError, RecursionError):
        return []


def _file(path: str) -> str:
    return os.path.join(path, _FILE) if os.path.isdir(path) else path
