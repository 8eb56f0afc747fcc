"""The new files of one session from which something is erased, and what differs from the old ones."""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from daypack.derived.records import COMPACTED
from daypack.derived.swap import chunk_of, digest_messages, range_of
from daypack.errors import DaypackError
from daypack.files import atomic, blobs
from daypack.files.rewrite import STAGING, Rewrite
from daypack.forks import cached_property
from daypack.history.facets import moment
from daypack.history.layout import Layout
from daypack.history.logs.lines import UNREADABLE
from daypack.history.logs.reader import decoder_of
from daypack.history.message_events import message_of
from daypack.turn.ledger import BUDGET, ERASED, EXPORTED, OBSERVED, TURN
from daypack.types.digest import digest_text
from daypack.types.history import Event, Message
from daypack.types.records import SwapRecord
from daypack.upkeep.erase.log_lines import Line, read_lines, sealed_like, with_body
from daypack.upkeep.erase.marker import Key
from daypack.upkeep.erase.target import Target, without_content
from daypack.upkeep.erase.texts import Texts
from daypack.upkeep.erase.turns import ObservedParts, ShownParts

# Of context/, what people write; everything else is made again from the logs.
_WRITTEN = ("pinned", "child", "budget", "gc.policy")
_STRUCTURE = ("seq", "id", "ts", "role", "type", "crc")
# Files and events with a time, a word of the format or a number that must be read again.
_SETTINGS = ("created_at", "updated_at", "state", os.path.join("context", "budget"), BUDGET)
# Events of daypack begin with these words. Numbers in them count something; in those of others they may be a secret.
_OWN = re.compile(r"(?:context|tool|provider|pin|session|log|rules?|child|history|gc|import|memory|fact)\.")


class SessionPlan(Struct, frozen=True):
    """What an erasure changes in one session; paths are relative to its folder."""

    agent: str
    session: str
    path: str
    matches: int
    messages: tuple[int, ...]
    events: tuple[str, ...]  # that hold it
    marked: tuple[str, ...]  # that only have digests of it, or are marked as turns that showed it
    blobs: int
    files: tuple[str, ...]  # others that are rewritten or removed
    derived: tuple[str, ...]  # under context/, with what is erased in them: all of context/ is made again
    turns: tuple[str, ...]  # whose replay no longer verifies


class Contents(NamedTuple):
    """A session without what is erased; `blobs` are new, those in `removed` are not there any more."""

    messages: bytes
    events: bytes
    blobs: dict[str, bytes]
    removed: tuple[str, ...]


class SessionRewrite:
    """Computes the new files of a session; the caller holds its lock, or only wants to know what would change."""

    def __init__(self, layout: Layout, target: Target, key: Key) -> None:
        self._layout = layout
        self._target = target
        self._key = key
        self._texts = Texts(target.spellings, target.marker, target.sources)
        self._calls: list[str] = []  # of an erased message: the new arguments
        self._messages = tuple(read_lines(atomic.read(layout.messages) or b""))
        self._events = tuple(read_lines(atomic.read(layout.events) or b""))
        self._new_messages = [self._new_message(line) for line in self._messages]
        self.changed_seqs = tuple(
            line.seq for line, new in zip(self._messages, self._new_messages, strict=True) if line.data != new
        )
        self._blobs = self._rewrite_blobs()
        self._turns = self._affected_turns()
        self._holding: set[int] = set()  # events that hold what is erased
        self._new_events = [self._new_event(line) for line in self._events]
        self.files = dict(self._other_files())  # None: the file is removed

    @property
    def tombstone(self) -> str:
        """The id of the event that records the erasure."""
        return f"ev-{(self._events[-1].seq if self._events else 0) + 1}"

    def plan(self, agent: str) -> SessionPlan:
        """Return what changes."""
        events = zip(self._events, self._new_events, strict=True)
        changed = [line.seq for line, new in events if line.data != new]
        return SessionPlan(
            agent=agent,
            session=self._layout.name,
            path=self._layout.folder,
            matches=self._texts.matches,
            messages=self.changed_seqs,
            events=tuple(f"ev-{seq}" for seq in changed if seq in self._holding),
            marked=tuple(f"ev-{seq}" for seq in changed if seq not in self._holding),
            blobs=len(self._blobs),
            files=tuple(sorted(self.files)),
            derived=tuple(sorted(self._derived_holding())),
            turns=tuple(self._turns),
        )

    def contents(self, data: dict[str, Any], seconds: float) -> Contents:
        """Return the new logs and blobs, for a session whose files are not replaced here."""
        new = {blobs.name_of(blob): blob for blob in self._blobs.values()}
        events = b"".join((*self._new_events, self._tombstone_line(data, seconds)))
        removed = tuple(name for name in self._blobs if name not in new)
        return Contents(b"".join(self._new_messages), events, new, removed)

    def old_logs(self) -> tuple[bytes, bytes]:
        """Return the logs as they were read."""
        messages, events = (b"".join(line.data for line in lines) for lines in (self._messages, self._events))
        return messages, events

    def new_settings(self, meta: bytes, cwd: bytes) -> tuple[bytes, bytes]:
        """Return a meta.json and a cwd without what is erased."""
        return self._new_meta(meta), self._texts.replace_bytes(cwd)

    def commit(self, data: dict[str, Any], seconds: float) -> None:
        """Replace the files; the last line of events.jsonl is then the event that records the erasure."""
        layout = self._layout
        rewrite = Rewrite(layout.folder)
        for new in self._blobs.values():
            rewrite.replace(os.path.join("blob", blobs.name_of(new)), new)
        self._stage_log(rewrite, layout.events, [*self._new_events, self._tombstone_line(data, seconds)])
        for path, new in self.files.items():
            if new is None:
                rewrite.remove(path)
            else:
                rewrite.replace(path, new)
        kept = {blobs.name_of(new) for new in self._blobs.values()}
        for name in self._blobs:
            if name not in kept:
                rewrite.remove(os.path.join("blob", name))
        for name in _names_in(layout.context):
            if name not in _WRITTEN:
                rewrite.remove(os.path.join("context", name))
        self._stage_log(rewrite, layout.messages, self._new_messages)
        rewrite.commit()

    def _stage_log(self, rewrite: Rewrite, path: str, lines: list[bytes]) -> None:
        status = os.stat(path)
        rewrite.replace(os.path.basename(path), b"".join(lines), inode=status.st_ino, size=status.st_size)

    def _tombstone_line(self, data: dict[str, Any], seconds: float) -> bytes:
        from daypack.files.jsonl import seal  # noqa: PLC0415 — a plan needs none

        number = int(self.tombstone.removeprefix("ev-"))
        time = f"{moment(seconds)[:-1]}.{int(seconds * 1000) % 1000:03d}Z"
        event = Event(seq=number, id=self.tombstone, ts=time, type=ERASED, data=data)
        return seal(msgspec.json.encode(event))[0]

    # Messages

    def _new_message(self, line: Line) -> bytes:
        fields = line.fields
        if self._target.kind == "message":
            if fields is None or line.seq != self._target.seq:
                return line.data
            new = without_content(fields, self._target.marker)
            said = {key: value for key, value in fields.items() if key not in _STRUCTURE}
            self._calls = [call["arguments"] for call in new.get("tool_calls", ())]
            self._texts.replace_value(said)
            return sealed_like(line, new)
        matches = self._texts.matches
        replaced = self._replaced(line, fields, structured=False)
        if _is_message(line) and not _is_message(Line(replaced, line.seq, replaced)):  # a number of the format
            self._texts.matches = matches
            replaced = self._replaced(line, fields, structured=True)
        # A reply has the digest of a section that was cut from it.
        return replaced if replaced == line.data else self._with_digests(line, replaced)

    def _replaced(self, line: Line, fields: dict[str, Any] | None, *, structured: bool) -> bytes:
        """Return a line with the marker in its texts."""
        if not self._target.spellings.found_in(line.data):
            return line.data
        if fields is None:
            return with_body(line, self._texts.replace_bytes)
        new = {
            key: value if key in _STRUCTURE else self._texts.replace_value(value, structured=structured)
            for key, value in fields.items()
        }
        return sealed_like(line, new) if new != fields else line.data

    # Captured texts

    def _rewrite_blobs(self) -> dict[str, bytes]:
        """Return the new bytes of the blobs that change, by their former name; their digests change with them."""
        old: dict[str, bytes] = {}
        for name in _names_in(self._layout.blob):
            data = atomic.read(os.path.join(self._layout.blob, name))
            if data is not None and not name.startswith(atomic.TEMPORARY):
                old[name] = data
        new = {name: self._texts.replace_bytes(data) for name, data in old.items()}
        if self.changed_seqs:
            self._note_swapped(old)
        while True:  # a blob may name others
            for name, data in old.items():
                self._texts.note(data, new[name])
            following = {name: self._texts.replace_digests(data) for name, data in new.items()}
            if following == new:
                return {name: data for name, data in new.items() if data != old[name]}
            new = following

    def _note_swapped(self, stored: dict[str, bytes]) -> None:
        """Note the new ids of ranges and outputs that left the window: they are digests of the messages."""
        old, new = _messages_of([line.data for line in self._messages]), _messages_of(self._new_messages)
        changed = frozenset(self.changed_seqs)
        for record in self._swap_records(stored):
            extent = range_of(record)
            within = range(extent.start, extent.stop + 1)
            if not any(seq in within for seq in changed):
                continue
            chunks = [
                chunk_of(extent.start, extent.stop, digest_messages([found[seq] for seq in within if seq in found]))
                for found in (old, new)
            ]
            if blobs.name_of(chunks[0]) == record.id:
                self._texts.note(*chunks)

    def _swap_records(self, stored: dict[str, bytes]) -> Iterator[SwapRecord]:
        for line in self._events:
            if COMPACTED.encode() not in line.data:
                continue
            data: dict[str, Any] = (line.fields or {}).get("data") or {}
            try:
                if bulk := data.get("bulk"):
                    data = msgspec.json.decode(bulk["text"] if "text" in bulk else stored[bulk["blob"]])
                yield from msgspec.convert(data.get("swapped") or [], list[SwapRecord])
            except (*UNREADABLE, msgspec.ValidationError, KeyError, TypeError, AttributeError):
                continue  # of another program

    # Events

    def _affected_turns(self) -> dict[str, bool]:
        """Return the turns that no longer verify, and whether their prefix changed; and hide their digests.

        The digest of a whole request could confirm a guess of the secret, because everything else in it is known.
        """
        matches = self._texts.matches
        for line in self._events:  # the digests of texts in events
            if self._target.spellings.found_in(line.data) and (fields := line.fields):
                self._texts.replace_value(fields.get("data"), structured=True)
        self._texts.matches = matches  # they are counted when the lines are rewritten
        shown = ShownParts(frozenset(self.changed_seqs), self._texts.digests)
        affected: dict[str, bool] = {}
        for line in self._events:
            if not any(kind.encode() in line.data for kind in (TURN, OBSERVED)) or (event := _event_of(line)) is None:
                continue
            try:
                if event.type == TURN and shown.is_affected(event):
                    affected[event.id] = shown.has_prefix(event)
                elif event.type == OBSERVED and self._observed.is_affected(event):
                    affected[event.id] = False
            except (KeyError, TypeError, AttributeError, IndexError, msgspec.ValidationError):
                continue  # of another program
        return affected

    @cached_property
    def _observed(self) -> ObservedParts:
        return ObservedParts(frozenset(self.changed_seqs), self._texts.digests)

    def _new_event(self, line: Line) -> bytes:
        fields = line.fields
        kind = str((fields or {}).get("type"))
        if kind in _SETTINGS:
            return line.data
        new = self._replaced(line, fields, structured=_OWN.match(kind) is not None)
        if new != line.data:
            self._holding.add(line.seq)
        name = f"ev-{line.seq}"
        if fields is None:
            return self._with_digests(line, new)
        data = Line(new, line.seq, new).fields or fields
        try:
            if name in self._turns and kind == OBSERVED:
                hidden = self._observed.hide(data["data"], self._hide)
                new = sealed_like(line, {**data, "data": {**hidden, "erased": self.tombstone}})
            elif name in self._turns:
                new = sealed_like(line, self._as_erased(data, prefix=self._turns[name]))
            elif kind == EXPORTED and (self._turns or self.changed_seqs):
                new = sealed_like(line, self._as_hidden(data))
            elif self._calls and (event := _event_of(line)) and message_of(event) == self._target.seq:
                new = sealed_like(line, {**data, "data": self._with_calls(data["data"])})
        except (KeyError, TypeError, AttributeError):
            pass  # of another program, which only shares the type
        return self._with_digests(line, new)

    def _with_calls(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the event of the erased calls with the digests of their new arguments: short ones can be guessed."""
        calls = [
            {**call, "arguments": digest_text(arguments)}
            for call, arguments in zip(data["calls"], self._calls, strict=False)
        ]
        return {**data, "calls": calls}

    def _as_hidden(self, fields: dict[str, Any]) -> dict[str, Any]:
        data: dict[str, Any] = fields.get("data") or {}
        digest = data.get("digest")
        return {**fields, "data": {**data, "digest": self._hide(digest)}} if isinstance(digest, str) else fields

    def _as_erased(self, fields: dict[str, Any], *, prefix: bool) -> dict[str, Any]:
        data: dict[str, Any] = {**fields["data"], "erased": self.tombstone}
        data["sha256"] = {name: self._hide(digest) for name, digest in data.get("sha256", {}).items()}
        if prefix:
            data["stable"] = {**data["stable"], "prefix_sha256": self._hide(data["stable"]["prefix_sha256"])}
        opening: dict[str, Any] = data.get("opening") or {}
        if skipped := cast("dict[str, str]", opening.get("skipped")):  # items that did not fit: no file has their texts
            hidden = {name: self._hide(digest) for name, digest in skipped.items()}
            data["opening"] = {**opening, "skipped": hidden}
        if data.get("added"):
            data["added"] = [
                {**addition, "past": self._hide(addition["past"])} if addition.get("past") else addition
                for addition in cast("list[dict[str, Any]]", data["added"])
            ]
        if str(data.get("context_id", "")).startswith("ctx-"):
            digits = data["context_id"][4:]
            self._texts.digests[digits] = self._key.hide(digits.encode(), len(digits))
        return {**fields, "data": data}

    def _hide(self, digest: str) -> str:
        label, colon, digits = digest.rpartition(":")
        return f"{label}{colon}{self._key.hide(digits.encode(), len(digits))}"

    def _with_digests(self, line: Line, new: bytes) -> bytes:
        return with_body(Line(new, line.seq, new), self._texts.replace_digests) if new else new

    # Other files

    def _other_files(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the other files that hold what is erased, with their new bytes; None: the file is removed."""
        layout = self._layout
        own = {layout.messages, layout.events}
        for path in _files_in(layout.folder):
            name = os.path.relpath(path, layout.folder)
            first = name.split(os.sep)[0]
            if path in own or first in ("blob", STAGING) or name in _SETTINGS or self._is_derived(name):
                continue
            try:
                data = atomic.read(path) or b""
            except DaypackError:
                continue  # no plain file: `doctor` reports it
            if os.path.basename(path).startswith(atomic.TEMPORARY):
                if self._target.spellings.found_in(data):
                    yield name, None
            elif (new := self._new_meta(data) if path == layout.meta else self._texts.replace_bytes(data)) != data:
                yield name, new
        for name in _names_in(layout.blob):
            path = os.path.join(layout.blob, name)
            if name.startswith(atomic.TEMPORARY) and self._target.spellings.found_in(atomic.read(path) or b""):
                yield os.path.join("blob", name), None

    def _new_meta(self, data: bytes) -> bytes:
        """Return the new meta.json; numbers in it are settings."""
        try:
            meta = msgspec.json.decode(data) if self._target.spellings.found_in(data) else None
        except UNREADABLE:
            return self._texts.replace_bytes(data)
        new = self._texts.replace_value(meta, structured=True)
        return data if new == meta else msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n"

    def _derived_holding(self) -> Iterator[str]:
        for path in _files_in(self._layout.context):
            name = os.path.relpath(path, self._layout.folder)
            if self._is_derived(name) and self._target.spellings.found_in(atomic.read(path) or b""):
                yield name

    def _is_derived(self, name: str) -> bool:
        parts = name.split(os.sep)
        return parts[0] == "context" and len(parts) > 1 and parts[1] not in _WRITTEN


def _messages_of(lines: list[bytes]) -> dict[int, Message]:
    found: dict[int, Message] = {}
    decoder = decoder_of(Message)
    for line in read_lines(b"".join(lines)):
        try:
            if line.record:
                found[line.seq] = decoder.decode(line.record)
        except UNREADABLE:
            continue
    return found


def _is_message(line: Line) -> bool:
    try:
        decoder_of(Message).decode(line.record)
    except UNREADABLE:
        return False
    return True


def _event_of(line: Line) -> Event | None:
    try:
        event = decoder_of(Event).decode(line.record) if line.record else None
    except UNREADABLE:
        return None
    return msgspec.structs.replace(event, id=f"ev-{line.seq}") if event else None


def _names_in(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []


def _files_in(folder: str) -> Iterator[str]:
    for above, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(above, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path
