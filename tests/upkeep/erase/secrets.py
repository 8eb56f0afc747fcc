"""A session that holds a secret in every kind of file, and a search for its bytes below a home."""

import json
import os
import unicodedata
from pathlib import Path

import daypack
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.session import Session

SECRET = 'pfirsich-"Größe"/\\4711'
OTHER = "The harbour opens at seven and the ferry leaves at nine."


def spelled(secret: str = SECRET) -> list[bytes]:
    """Return spellings of a secret, computed without the code under test."""
    texts = {secret, unicodedata.normalize("NFD", secret)}
    spellings: set[str] = set(texts)
    for text in texts:
        for ascii_only in (True, False):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
            spellings |= {once, twice, json.dumps(twice)[1:-1]}
    return sorted(spelling.encode() for spelling in spellings)


def holding(root: str | Path, secret: str = SECRET) -> list[str]:
    """Return the files below a folder whose bytes contain the secret in any spelling."""
    spellings = spelled(secret)
    found: list[str] = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if any(spelling in data for spelling in spellings):
                found.append(os.path.relpath(path, root))
    return sorted(found)


def place(home: str) -> Home:
    return find_home(home)


def leaky(home: str, name: str = "work", secret: str = SECRET) -> Session:
    """Return a session with a secret in messages, calls, results, pins, children, turns, a compaction and a memory."""
    session = daypack.open_session(name, home=home, durability="os", workspace="")
    session.append("user", "Which ferry do we take to the harbour?")
    session.append("assistant", OTHER)
    session.append("user", "Note the harbour master's rule.")
    session.prepare(budget=8000)  # before the secret: verifies for ever
    session.accept("Noted.")
    session.append("user", f"The password of the port is {secret}. Decision: we use port 8080 for the tide gauge.")
    arguments = json.dumps({"path": "gauge.ini", "content": f"password = {secret}\n"})
    session.append("assistant", "", tool_calls=[{"id": "call-1", "name": "write_file", "arguments": arguments}])
    session.append("tool", f"wrote gauge.ini with {secret}\n" + "a line of the log\n" * 300, tool_call_id="call-1")
    session.pin("rule.md", f"Never print {secret}.")
    session.pin("long.md", f"The word is {unicodedata.normalize('NFD', secret)}. " + "Tides turn. " * 500)
    session.put_child("rev-1", handoff=f"Check {secret}.", result=f"{secret} is weak.")
    session.append_event("mine", {"nested": {f"key {secret}": [secret]}})
    session.prepare(
        budget=8000, items=[{"content": f"from outside: {secret} " + "wind " * 900, "context_kind": "manual_note"}]
    )
    session.accept(f"I stored {secret}.")
    session.append("user", "Thank you. What is left to do?")
    session.prepare(budget=8000)
    session.accept("TODO: check the tide gauge on Monday.")
    return session


def more_than_fits(session: Session) -> None:
    """Fill the window, so that messages are compacted and searched."""
    for number in range(12):
        session.append("user", f"Step {number}: read chart {number} of the bay and compare it with the last one.")
        session.append("assistant", f"Chart {number} shows a depth of {number} metres. " + "It is fine. " * 120)
    session.compact(keep_tokens=600)
    session.append("user", "What was the password of the port?")
    session.prepare(budget=4000)
    session.accept("I can look it up.")
