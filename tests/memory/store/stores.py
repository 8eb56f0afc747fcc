"""Helpers for the tests of stores: users, texts, and a memory with entries."""

from collections.abc import Sequence
from typing import Any

from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, Store, split_damaged
from daypack.types.memory import About, DamagedRecord, Entry, Usage

ME, OTHER = "me", "other"
TEXTS = (
    "plain",
    "two\nlines\r\nand a tab\t",
    "a NUL \0 in the middle",
    "naïve café — “quotes” … 日本語 🧳",
    "e\u0301 is not \u00e9",
    "\ufeffa mark at the beginning",
    "\u2028 \u2029 \x85 \x1f \x7f \ufffe \U0010ffff",
    " ",
    "'; DROP TABLE entries; --",
    "x" * 9000,
)


def new_entry(raw: str, summary: str | None = None, **fields: Any) -> NewEntry:
    names = {name: fields.pop(name) for name in About.__struct_fields__ if name in fields}
    return NewEntry(raw=raw, summary=raw[:512] if summary is None else summary, about=About(**names), **fields)


def make(store: Store, user: str = ME, title: str = "Launch") -> str:
    return store.load(user, NewMemory(title=title), (NewDocument("first"),), ()).memory_id


def fill(store: Store, memory: str, *raws: str) -> list[str]:
    return [kept.entry_id for kept in store.add(ME, memory, [new_entry(raw) for raw in raws])]


def seqs(entries: Sequence[Entry | DamagedRecord]) -> list[int]:
    return [entry.seq for entry in entries]


def everything(store: Store, memory: str, user: str = ME) -> list[Entry]:
    entries, damaged = split_damaged(store.after(user, memory, 0, 1_000_000))
    assert damaged == []
    return entries


def usage(store: Store, user: str = ME) -> Usage:
    found = store.accounts.find(user)
    assert found is not None
    return found.quotas.used
