"""Recorded requests of Claude Code: a session driven once with the bodies that went over the wire, and the comparison.

`claude-code-<version>.json.gz` has the lines of a transcript and the request bodies that a scripted endpoint
received meanwhile: two turns with tools (one of two parallel calls, with an image), a resumed turn with a new tool, a
manual compaction, a turn after it, and one with another model; with CLAUDE.md and hooks that add context.
"""

import gzip
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.turn.evidence.observed.digests import message_bytes, with_blocks
from daypack.turn.evidence.observed.request import ObservedTurn, open_observed
from daypack.turn.ledger import OBSERVED
from daypack.types.digest import digest_bytes

_FOLDER = Path(__file__).parent
_UNRECORDED = ("metadata", "stream")  # fields that the rows do not have
_BILLING = "x-anthropic-billing-header:"  # the system block that they do not have
ROW_TYPES = ("api-request-shape", "api-request-blob", "api-request")
SUMMARISING = 6  # the position of the request that asked for the summary, which no row records


class Recording(NamedTuple):
    """A transcript and the bodies of its requests, in order."""

    session: str
    lines: list[bytes]
    wire: list[dict[str, Any]]

    @property
    def text(self) -> bytes:
        return b"\n".join((*self.lines, b""))


def load_recording(version: str = "2.1.325") -> Recording:
    with gzip.open(_FOLDER / f"claude-code-{version}.json.gz") as file:
        value = json.load(file)
    return Recording(value["session"], [line.encode() for line in value["transcript"]], value["wire"])


def import_recording(
    home: str, session: str = "notes", *, leave_out: Sequence[str] = (), replace: tuple[str, str] = ("", "")
) -> str:
    """Import the recorded transcript, without rows of some types, and return the name of its session.

    Where a text is replaced, the hashes of rows are computed again, but for those of requests.
    """
    recording = load_recording()
    lines = [line for line in recording.lines if json.loads(line).get("type") not in leave_out]
    if replace[0]:
        lines = _replaced(lines, *replace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{recording.session}.jsonl"
        path.write_bytes(b"\n".join((*lines, b"")))
        return import_file("claude-code", str(path), Destination(home, agent="default", session=session))[0].session


def _replaced(lines: Sequence[bytes], old: str, new: str) -> list[bytes]:
    text = b"\n".join(lines).replace(old.encode(), new.encode())
    rows = [json.loads(line) for line in text.split(b"\n")]
    hashes = {row["hash"]: message_bytes(row["message"]) for row in rows if row.get("type") == ROW_TYPES[1]}
    for before, data in hashes.items():
        text = text.replace(before.encode(), digest_bytes(data)[7:].encode())
    return text.split(b"\n")


def comparable(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body of the wire as the rows describe it: contents as blocks, without what no row has."""
    kept = {name: value for name, value in body.items() if name not in _UNRECORDED}
    system = [block for block in body.get("system", ()) if not block["text"].startswith(_BILLING)]
    return {**kept, "system": system, "messages": [with_blocks(message) for message in body["messages"]]}


def observed_turns(session: Session) -> list[ObservedTurn]:
    """Return the observed turns of a session, oldest first."""
    return [open_observed(session.history, event.id) for event in session.events() if event.type == OBSERVED]


def assert_rebuilt(session: Session, wire: Sequence[Mapping[str, Any]]) -> int:
    """Rebuild every recorded request of a session, check that it was on the wire, and return their number.

    Everything is compared, marks for the cache too: only what no row has (`metadata`, `stream`, the billing block, the
    betas, which are a header) is left out.
    """
    bodies = [comparable(body) for body in wire]
    turns = observed_turns(session)
    for turn in turns:
        turn.verify()
        assert turn.request in bodies, f"{turn.event_id} was never sent"
    return len(turns)
