"""A session in which large contents occur again, and ways to look at what dedup makes of it."""

import json
import os
from typing import Any

from daypack.derived.children import put_child
from daypack.files import blobs
from daypack.session import Session
from daypack.types.records import DedupRecord

LOG = "a line of a long log\n" * 200
FILE = "".join(f"value_{number} = {number}\n" for number in range(200))
NUMBERED = "\n".join(f"{number:6}→{line}" for number, line in enumerate(FILE.split("\n"), 1))
SUMMARY = "word " * 600


def run(session: Session, call: str, text: str, **arguments: Any) -> int:
    """Append a call and its result; return the number of the result."""
    calls = [{"id": call, "name": "tool", "arguments": json.dumps(arguments)}]
    session.append("assistant", "", tool_calls=calls)
    return session.append("tool", text, tool_call_id=call).seq


def hash_of(text: str) -> str:
    return blobs.name_of(text.rstrip("\n").encode())


def by_hash(records: tuple[DedupRecord, ...]) -> dict[str, tuple[str, ...]]:
    return {one.hash: one.refs for one in records}


def files(session: Session) -> dict[str, bytes]:
    """Every byte that dedup keeps."""
    places = [session.path / "context" / "dedup", session.path / "context" / "offsets" / "dedup.idx"]
    found = [path for place in places for path in (place, *place.rglob("*")) if path.is_file()]
    return {os.fspath(path.relative_to(session.path)): path.read_bytes() for path in found}


def furnish(session: Session) -> None:
    """A session in which everything occurs that dedup knows."""
    run(session, "t1", LOG)
    run(session, "t2", "ok", file_path="a.py", content=FILE)
    run(session, "t3", NUMBERED)
    run(session, "t4", "x" * 3000)
    run(session, "t5", LOG)
    session.pin("style", SUMMARY)
    put_child(session.history, "rev", handoff="ask", result=SUMMARY)
