"""Sessions with every kind of file that garbage collection inspects, and functions to set the age of files.

`NOW` is years after the tests run: every file is older than any policy allows unless `set_age` makes it younger.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from turn.scenes import converse, item, stage

from daypack.derived import dedup, swap
from daypack.files import atomic, blobs
from daypack.session import Session
from daypack.types.records import DedupRecord, Ref, SwapRecord
from daypack.upkeep.gc.apply import Applied, apply
from daypack.upkeep.gc.plan import Plan, plan
from daypack.upkeep.gc.policy import Policy

NOW = 2_500_000_000.0
DAY = 86400
HOUR = 3600
LARGE = "A line of output that is long enough to be worth a reference.\n" * 60


def set_age(*paths: Path, seconds: float = 60) -> None:
    """Set the modification time of files and folders to `seconds` before `NOW`."""
    for path in paths:
        os.utime(path, (NOW - seconds, NOW - seconds))


def layout_path(session: Session, name: str, *below: str) -> Path:
    return Path(session.history.layout.derived(name), *below)


def swap_out(session: Session, start: int, stop: int) -> Path:
    """Write the chunk and the index line of a message range, as a compaction does."""
    messages = list(session.messages(start, stop))
    record = swap.swap_range(messages, start, stop, "what was said", 10)
    return store_chunk(session, record, swap.chunk_of(start, stop, swap.digest_messages(messages)))


def swap_out_output(session: Session, seq: int) -> Path:
    """Write the chunk of one tool output."""
    [message] = session.messages(seq, seq)
    record = swap.swap_output(message, message.text, 10)
    return store_chunk(session, record, swap.chunk_of(seq, seq, swap.digest_messages((message,))))


def store_chunk(session: Session, record: SwapRecord, data: bytes) -> Path:
    folder = layout_path(session, "swap", "chunk")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / record.id
    path.write_bytes(data)
    with (folder.parent / "index.jsonl").open("ab") as index:
        index.write(msgspec.json.encode(record) + b"\n")
    return path


def store_blob(session: Session, text: str, refs: Sequence[str] | None = ()) -> Path:
    """Write a blob and an index line that claims these references; None: no index line."""
    data = text.encode()
    folder = layout_path(session, "dedup", "blob")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / blobs.name_of(data)
    path.write_bytes(data)
    if refs is not None:
        record = DedupRecord(path.name, tuple(refs), len(data), 7)
        with (folder.parent / "index.jsonl").open("ab") as index:
            index.write(msgspec.json.encode(record) + b"\n")
    return path


def refer(session: Session, path: str, **fields: str) -> Path:
    """Add a line to refs.jsonl."""
    file = layout_path(session, "refs")
    file.parent.mkdir(exist_ok=True)
    with file.open("ab") as refs:
        refs.write(msgspec.json.encode(Ref("r1", path, "swap", "old talk", **fields)) + b"\n")  # type: ignore[arg-type]
    return file


def write_temporary_file(folder: Path, name: str = "pack.json") -> Path:
    """Write a temporary file as a crashed writer leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{atomic.TEMPORARY}{name}.4711.3"
    path.write_text("half of")
    return path


def full_session(home: str, name: str = "work") -> Session:
    """Return a session with pins, a child, repeated outputs, a turn, and dedup blobs."""
    session = stage(home, name)
    session.pin("system", "You are a pilot.")
    session.set_budget(6000)
    converse(session, 4)
    for number in (1, 2):
        call = {"id": f"call-{number}", "name": "bash", "arguments": '{"command":"make"}'}
        session.append("assistant", "", tool_calls=[call])
        session.append("tool", LARGE, tool_call_id=f"call-{number}")
    session.put_child("rev-1", handoff="Look at the harbour.", result="It is deep. " * 400)
    session.append("user", "What of the glacier?")
    session.prepare(items=[item("tool_result", "Wind: five knots.")])
    dedup.refresh(session.history)
    return session


def make_plan(session: Session, policy: Policy | None = None, *, children: bool = False) -> Plan:
    return plan(session.history, policy or Policy(), NOW, children=children)


def collect(session: Session, policy: Policy | None = None, *, children: bool = False) -> Applied:
    return apply(session.history, make_plan(session, policy, children=children))


def removal_names(planned: Plan) -> set[str]:
    """Return the base names of the planned removals."""
    return {os.path.basename(removal.path) for removal in planned.removals}


def reason_for(planned: Plan, path: Path | str) -> str:
    """Return the reason why a file is removed or retained."""
    name = os.path.basename(path)
    [decision] = [entry for entry in (*planned.removals, *planned.retained) if os.path.basename(entry.path) == name]
    return decision.reason


def tree(session: Session) -> dict[str, bytes]:
    """Return every file of a session by relative path, without offset and search indexes."""
    top = session.path
    files = (path for path in sorted(top.rglob("*")) if path.is_file() and "offsets" not in path.parts)
    return {str(path.relative_to(top)): path.read_bytes() for path in files if "search.sqlite" not in path.name}
