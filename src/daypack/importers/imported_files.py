"""Files beside a transcript that have not changed since they were imported: outputs of tools, sub-agents' transcripts.

    <session>/context/offsets/imported.json
    {"boot":"…","source":"claude-code:…","seq":412,"crc":3735928559,"names":{"toolu_1.txt":["sha256:…"]},
     "files":{"/…/tool-results/toolu_1.txt":[mtime,ctime,size,inode]},
     "sub_agents":{"/…/subagents/agent-a1.jsonl":[[mtime,ctime,size,inode],"<child session>",8839]}}

The file is a cache, so that an import reads only what is new. The outputs count while the event log has the event `seq`
with the same checksum of all bytes up to it; a transcript of a sub-agent counts while the event log of its session is
not shorter than it was. Both count only until the next reboot. A missing or damaged file costs time, nothing else.
"""

import os
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Struct, field

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.session import History
from daypack.system import boot_id

FILE = "import.file"
_NAME = "imported.json"
Status = tuple[int, int, int, int]  # time of modification, time of change, size, inode


class _SubAgent(Struct, array_like=True):
    status: Status
    session: str
    events: int  # bytes


class _Content(Struct):
    boot: str = ""
    source: str = ""
    seq: int = 0
    crc: int = 0
    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    files: dict[str, Status] = field(default_factory=dict[str, Status])
    sub_agents: dict[str, _SubAgent] = field(default_factory=dict[str, _SubAgent])


_decoder = msgspec.json.Decoder(_Content)


class ImportedFiles:
    """What is known of the files beside a transcript; changed only by the process that imports into the session."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._path = os.path.join(history.layout.offsets, _NAME)
        self._content = _Content()
        with suppress(DaypackError, msgspec.DecodeError, UnicodeError):
            content = _decoder.decode(atomic.read(self._path) or b"{}")
            if content.boot == boot_id().hex():
                self._content = content

    # Outputs of tools

    def changed(self, paths: Iterable[str]) -> dict[str, Status]:
        """Return the files that are not known as they are now, with their statuses."""
        found = {path: status_of(path) for path in paths}
        return {path: status for path, status in found.items() if status and self._content.files.get(path) != status}

    def stored(self, source: str) -> set[tuple[str, str]] | None:
        """Return the names and digests of all outputs that events of a source store; None if that is not known."""
        seq, reader = self._content.seq, self._history.events.reader
        if not seq or self._content.source != source or self._crc(seq) != self._content.crc:
            return None
        found = {(name, digest) for name, digests in self._content.names.items() for digest in digests}
        for event in self._history.events.records(seq + 1, reader.newest().seq):
            if event.type == FILE and event.data.get("source") == source:
                found.add((str(event.data.get("file")), str(event.data.get("digest"))))
        return found

    def keep(self, source: str, stored: set[tuple[str, str]], files: dict[str, Status]) -> None:
        """Note which outputs the events up to now store, and from which files."""
        content = self._content
        known = content.files if content.source == source else {}
        content.source, content.files = source, known | files
        content.seq = self._history.events.reader.newest().seq
        content.crc = self._crc(content.seq)
        content.names = {}
        for name, digest in sorted(stored):
            content.names.setdefault(name, []).append(digest)
        self._save()

    def _crc(self, seq: int) -> int:
        reader = self._history.events.reader
        at = reader.position(seq)
        slots = reader.slots(at, at + 1)
        return slots[0].crc if slots and slots[0].seq == seq else -1

    # Sub-agents

    def has_sub_agent(self, path: str) -> bool:
        """Return True if the transcript of a sub-agent is as it was when all of it was imported."""
        known = self._content.sub_agents.get(path)
        if known is None or known.status != status_of(path):
            return False
        events = status_of(self._beside(known.session))
        return events is not None and events[2] >= known.events

    def keep_sub_agent(self, path: str, status: Status, session: str) -> None:
        """Note that all of a sub-agent's transcript, as it was with this status, is in a session."""
        if events := status_of(self._beside(session)):
            self._content.sub_agents[path] = _SubAgent(status, session, events[2])
            self._save()

    def _beside(self, session: str) -> str:
        layout = self._history.layout
        return os.path.join(os.path.dirname(layout.folder), session, os.path.basename(layout.events))

    def _save(self) -> None:
        self._content.boot = boot_id().hex()
        with suppress(DaypackError):
            atomic.make_folders(self._history.layout.offsets, durable=False)
            atomic.replace(self._path, msgspec.json.encode(self._content), durable=False)


def status_of(path: str) -> Status | None:
    """Return the status of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
