"""The history of one session: its two logs, captured texts and pins."""

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from daypack.config import Config
from daypack.errors import BadConfig, BadInput, BadMessage, DamageWarning, DaypackError, Overtaken, StorageFailed
from daypack.files import atomic
from daypack.files.atomic import is_missing
from daypack.files.blobs import BlobFolder
from daypack.files.commit import Answer, Handle
from daypack.files.lock import Lock
from daypack.forks import cached_property, forks
from daypack.history.creation import absent, default_tokenizer, require_stored
from daypack.history.draft import draft_event
from daypack.history.facets import Facets
from daypack.history.layout import Layout, refuse_lookalike
from daypack.history.logs.keys import ClientKeys
from daypack.history.logs.lines import BROKEN, CALLS, KEYED, ROLE_SHIFT
from daypack.history.logs.log import Log
from daypack.history.message_events import OF_MESSAGE, TYPES, Describe, MessageEvents, message_of
from daypack.text.injected import RECALLED
from daypack.types.digest import digest_bytes
from daypack.types.history import Event, Message
from daypack.types.kinds import ROLES, SESSION_STATES, SessionState

if TYPE_CHECKING:
    from daypack.history.postgres.cache import Cache
    from daypack.history.postgres.store import Opened

INLINE_BYTES = 4096  # longer text from outside is stored in blob/ instead of its event
LARGE_BYTES = 2048  # a smaller content costs about as much as a reference to it
OWN_EVENTS = ("context.", "import.")  # they record what was shown, made or imported: no new content
_PATIENCE_SECONDS = 30.0  # for a session to which other workers append all the time
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.002, 0.1
_MOST_DELETIONS = 10  # of a cache, while something is written to it
_LATEST_AMONG = 50  # messages searched for the newest assistant text
_ROLE_FLAGS = {role: (number + 1) << ROLE_SHIFT for number, role in enumerate(ROLES)}


class History:
    """Append and read. Everything else in daypack is derived from this."""

    def __init__(
        self,
        layout: Layout,
        config: Config,
        clock: Callable[[], float] = time.time,
        describe: Describe | None = None,
        opened: "Opened | None" = None,
    ) -> None:
        """`opened`: the session as it was found in the database of its home; looked up there if it is not given."""
        if layout.home.database is not None:
            opened = opened or require_stored(layout)
        elif not atomic.exists(layout.messages):
            raise absent(layout, "open session")
        layout.guard()
        self.layout = layout
        self.config = config
        self.facets = Facets(layout, redacting=config.redaction == "on")
        self.lock = Lock(layout.messages, flock=config.locking == "flock")
        self._cache = self._open_cache(opened) if opened else None
        self.is_cache = self._cache is not None  # of a session in a database
        self.blobs = BlobFolder(layout.blob, self._cache)
        self.clock = clock
        self._durable = config.durability == "sync"
        sidecar = layout.index("messages"), self.tokenizer
        self.messages = Log(Message, layout.messages, self.lock, sidecar, self._weigh)
        self.events = Log(Event, layout.events, self.lock, (layout.index("events"), "none"), _event_weight)
        self._message_events = MessageEvents(self.messages, self.events, describe)
        self._repairs = self.messages.writer.repairs = self.events.writer.repairs
        self._keys = ClientKeys(layout.index("keys"), self.messages.reader)
        # Called after an append with a large content, with the messages that were appended.
        self.on_large: Callable[[Sequence[Message]], None] | None = None
        self.dated_by_messages = False  # updated_at is the time of the newest message: of an import, that is long ago
        forks.watch(self)
        if self._cache is not None:
            self._cache.attach(self.messages, self.events, self.captured)

    def _open_cache(self, opened: "Opened") -> "Cache":
        from daypack.history.postgres.cache import Cache  # noqa: PLC0415

        cache = Cache(self.layout, opened, self.lock, self.facets)
        self.facets.change_meta = cache.change_meta
        return cache

    def refresh(self) -> None:
        """Fetch what other workers have appended to a session in a database; reading alone reads the folder."""
        if self._cache is not None:
            self._cache.refresh()

    def locked(self, work: Callable[[], Answer]) -> Answer:
        """Call `work` under the lock, for what is read and then appended.

        In a database no worker waits for the lock of another: if one was faster, nothing is stored, and `work` is
        called again with what it has appended. So `work` undoes what it has done when an append fails. It is called
        again as well if files that it writes are deleted meanwhile, unless it has stored something.
        """
        if self._cache is None or self.lock.held:
            with self.lock:
                return work()
        until, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        deletions = 0
        while True:
            appended = -1
            try:
                with self.lock:
                    appended = self._cache.appended
                    return work()
            except StorageFailed as error:
                deletions += is_missing(error)
                unstored = is_missing(error) and appended == self._cache.appended and deletions <= _MOST_DELETIONS
                if not (unstored or isinstance(error, Overtaken)) or time.monotonic() > until:
                    raise
            time.sleep(pause * random.random())  # noqa: S311 — so that two workers do not meet again
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            self._cache.refresh()

    def forget(self) -> None:
        """In a forked child: drop the open files of the parent, and what another thread was changing."""
        if self._cache is not None:
            self._cache.forget()
        self.messages.forget()
        self.events.forget()
        self._message_events.forget()
        self._keys.close()

    @cached_property
    def tokenizer(self) -> str:
        """The token counter, fixed when the session is created, because its sidecar stores the counts."""
        name = self.facets.meta().get("tokenizer") or default_tokenizer(self.config.model)
        if not isinstance(name, str):
            hint = "remove the key, or restore the file"
            raise BadConfig(f"tokenizer is {name!r}", operation="open session", place=self.layout.meta, hint=hint)
        return name

    @cached_property
    def count_tokens(self) -> Callable[[Message], int]:
        """Counts a message's tokens; its code is loaded by writers only."""
        from daypack.text.tokens import count_message, counter_named  # noqa: PLC0415

        return partial(count_message, counter_named(self.tokenizer))

    def append(self, drafts: Sequence[Message]) -> tuple[Message, ...]:
        """Append messages, all or none, and return them as stored; for a known client key, the stored message."""
        if not drafts:
            return ()
        if any(draft.role == "tool" and draft.text.startswith(RECALLED) for draft in drafts):
            from daypack.history.recalled import note_recalled  # noqa: PLC0415 — few messages are recalled

            note_recalled(self.layout, drafts)
        now, answers = self.clock(), drafts
        # Almost every call appends one message without a key: check for that first.
        if (len(drafts) == 1 and drafts[0].client_key is None) or not any(draft.client_key for draft in drafts):
            self.messages.append(drafts, now, durable=self._durable)
        else:
            # Synced even if nothing is new: the first answer may have been lost before its line was on disk.
            answers = self.messages.write(partial(self._write_keyed, drafts, now), durable=self._durable)
        if self._message_events.due(answers):
            self._complete_events(answers, now)
        if int(now) != self.facets.second or self._repairs:
            self._after_append(now)
        for message in reversed(answers):
            if message.role == "assistant" and message.text:
                self.facets.note_latest(message.text)
                break
        if self.on_large and any(map(_may_be_large, answers)):
            self.on_large(answers)
        return tuple(answers)

    def is_stored(self, draft: Message) -> bool:
        """Return True if a message with the same client key is stored; raise KeyConflict if its payload differs."""
        self.refresh()
        with self.lock:
            return self._keys.find(draft) is not None

    def append_event(self, draft: Event) -> Event:
        """Append one event and return it as stored."""
        now = self.clock()
        if not self._message_events.checked and self._message_events.due(()):
            self._complete_events((), now)
        self.events.append((draft,), now, durable=self._durable)
        self._after_append(None if (is_own := draft.type.startswith(OWN_EVENTS)) else now)
        if self.on_large and not is_own and _holds_capture(draft.data):
            self.on_large(())
        return draft

    def _complete_events(self, appended: Sequence[Message], now: float) -> None:
        with suppress(DaypackError):  # the messages are stored; the next append tries again
            self.locked(partial(self._message_events.complete, appended, now))

    def capture(self, data: bytes) -> dict[str, Any]:
        """Store text from outside, independent of its file; the returned reference belongs in an event."""
        digest = digest_bytes(data)
        if len(data) <= INLINE_BYTES:
            return {"digest": digest, "text": data.decode()}
        return {"digest": digest, "blob": self.blobs.put(data), "bytes": len(data)}

    def captured(self, reference: Mapping[str, Any]) -> bytes:
        """Return the bytes that `capture` stored."""
        return reference["text"].encode() if "text" in reference else self.blobs.get(reference["blob"])

    def pin(self, name: str, text: str) -> Event:
        """Pin a text: every pack contains it until it is unpinned."""
        path = self.layout.pin(name)
        try:
            data = text.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise BadMessage(
                "not text that UTF-8 can encode", operation="pin", place=name, hint="give a str"
            ) from error
        if not text.strip():
            hint = f"to remove a pin: session.unpin({name!r}), on the command line --remove"
            raise BadMessage("the text is empty", operation="pin", place=name, hint=hint)
        return self.locked(partial(self._pin, path, data))

    def _pin(self, path: str, data: bytes) -> Event:
        if not os.path.isdir(self.layout.pinned):
            self._restore_pins()  # creating the folder must not hide the other pins
        atomic.make_folders(self.layout.pinned)
        refuse_lookalike(self.layout.pinned, os.path.basename(path), "pin")
        former = atomic.read(path)
        atomic.replace(path, data)
        try:
            kept = self.capture(data)
            return self.append_event(draft_event("pin.set", {"name": os.path.basename(path), **kept}))
        except DaypackError:
            # Without its event a pin would not survive a rebuild, so undo it.
            if former is None:
                atomic.discard(path)
            else:
                atomic.replace(path, former)
            raise

    def unpin(self, name: str) -> Event | None:
        """Unpin a text; return None if it is not pinned."""
        self.refresh()  # an unknown pin appends nothing, so an old folder would not be noticed
        return self.locked(partial(self._unpin, name))

    def _unpin(self, name: str) -> Event | None:
        pins = self.pins()
        file = name if name in pins else os.path.basename(self.layout.pin(name))
        if file not in pins:
            return None
        event = self.append_event(draft_event("pin.removed", {"name": file}))
        with self._despite_deletion():
            atomic.remove(os.path.join(self.layout.pinned, file))
        return event

    def pins(self) -> dict[str, str]:
        """Return the pinned texts by file name, sorted; a deleted folder is restored from the events."""
        if not os.path.isdir(self.layout.pinned):
            return self._restore_pins()
        with os.scandir(self.layout.pinned) as found:
            files = [item for item in found if item.is_file(follow_symlinks=False) and not item.name.startswith(".")]
        if not files:
            return {}
        files.sort(key=lambda file: file.name)
        return {file.name: (atomic.read(file.path) or b"").decode("utf-8", "replace") for file in files}

    def set_state(self, state: SessionState) -> Event:
        """Change the state and record the change."""
        if state not in SESSION_STATES:
            hint = f"use one of {', '.join(SESSION_STATES)}"
            raise BadInput(f"{state!r} is not a state", operation="set state", place=self.layout.folder, hint=hint)
        return self.locked(partial(self._set_state, state))

    def _set_state(self, state: SessionState) -> Event:
        event = self.append_event(draft_event("session.state", {"from": self.facets.state(), "to": state}))
        with self._despite_deletion():
            self.facets.write_state(state)
        return event

    @contextmanager
    def _despite_deletion(self) -> Generator[None]:
        """Change a file after its event was stored: in a cache that was deleted, it is made from the events again."""
        try:
            yield
        except StorageFailed as error:
            if self._cache is None or not is_missing(error):
                raise

    def newest_within(self, tokens: int) -> int:
        """Return how many of the newest messages fit into `tokens`."""
        return self.messages.reader.newest_within(tokens, self.count_tokens)

    def close(self) -> None:
        """Update the small files and the sidecars and close everything.

        It does not wait for other processes: a session closed by the garbage collector may belong to a thread that
        holds the same lock through another session object.
        """
        with self.lock.exclude_threads():
            # A cache that was deleted is not fetched again to be closed.
            with suppress(DaypackError):
                if self.is_cache and not os.path.lexists(self.layout.messages):
                    self.messages.writer.dirty = self.events.writer.dirty = self.facets.stale = False
                if self.facets.stale:
                    self._flush_latest()
                if self.messages.writer.dirty or self.events.writer.dirty:
                    if self.dated_by_messages:
                        self._date_by_messages()
                    with self.lock.without_waiting():
                        self._write_counters()
            for part in (self._keys, self.messages, self.events, self.lock):
                part.close()

    def _date_by_messages(self) -> None:
        for message in self.messages.tail(1):
            with suppress(ValueError):  # a hand-written line without a time
                self.facets.touch(datetime.fromisoformat(message.ts).timestamp())

    def _flush_latest(self) -> None:
        # Another process may have appended since: use the newest text of the log.
        messages = self.messages.tail(_LATEST_AMONG)
        newest = [message.text for message in messages if message.role == "assistant" and message.text]
        self.facets.flush(newest[-1:])

    def _write_counters(self) -> None:
        counters = {"messages": self.messages.reader.count(), "events": self.events.reader.count()}
        self.facets.write_meta({"counters": counters})
        self._keys.sync()

    def _write_keyed(self, drafts: Sequence[Message], now: float, handle: Handle) -> list[Message]:
        writer = self.messages.writer
        answers, new = self._replay(drafts)
        if self._durable:
            for message in answers:
                if message.seq:  # stored before: is it on disk?
                    at = self.messages.reader.position(message.seq)
                    writer.write_again(handle, self.messages.reader.slots(at, at + 1))
        if new:
            writer.write(handle, new, now)
        self._keys.add(new, writer.lines, writer.crc)
        return answers

    def _replay(self, drafts: Sequence[Message]) -> tuple[list[Message], list[Message]]:
        """Return the answer to each draft, and the drafts that are new."""
        answers: list[Message] = []
        new: dict[str, Message] = {}
        fresh: list[Message] = []
        for draft in drafts:
            stored = self._known(draft, new) if draft.client_key else None
            answers.append(stored or draft)
            if stored is None:
                fresh.append(draft)
                if draft.client_key:
                    new[draft.client_key] = draft
        return answers, fresh

    def _known(self, draft: Message, new: Mapping[str, Message]) -> Message | None:
        earlier = new.get(draft.client_key or "")
        return self._keys.match(draft, (earlier,)) if earlier else self._keys.find(draft)

    def _after_append(self, now: float | None) -> None:
        """Date the session, unless nothing new was said or done, and complete what is to be repaired."""
        if now is not None:
            self.facets.touch(now)
        while self._repairs:
            try:
                repair = self._repairs.pop(0)
            except IndexError:
                return  # another thread reports it
            try:
                self.append_event(draft_event("log.torn", repair.describe()))
            except DaypackError:
                # The append succeeded and must not fail now. The next append reports it.
                self._repairs.insert(0, repair)
                return

    def _restore_pins(self) -> dict[str, str]:
        pins: dict[str, bytes] = {}
        for event in self.events.records():
            try:
                if event.type == "pin.set":
                    pins[self.layout.pin(event.data["name"])] = self.captured(event.data)
                elif event.type == "pin.removed":
                    pins.pop(self.layout.pin(event.data["name"]), None)
            except (DaypackError, KeyError, TypeError, AttributeError) as error:
                text = f"{self.layout.events}: {event.id}: the pin cannot be restored: {error}"
                warnings.warn(DamageWarning(text), stacklevel=3)
        texts = {os.path.basename(path): pins[path] for path in sorted(pins)}
        with suppress(DaypackError, OSError):  # on a read-only file system they are read from the events each time
            self._place_pins(texts)
        return {name: data.decode("utf-8", "replace") for name, data in texts.items()}

    def _place_pins(self, texts: Mapping[str, bytes]) -> None:
        """Create the folder with all pins or not at all: a partial folder would be taken for complete."""
        temporary = f"{self.layout.pinned}{atomic.TEMPORARY}{os.getpid()}.{threading.get_ident()}"
        atomic.make_folders(temporary, inside=self.layout.folder)
        for name, data in texts.items():
            atomic.replace(os.path.join(temporary, name), data)
        try:
            os.rename(temporary, self.layout.pinned)
        except OSError:  # another process was faster
            for name in texts:
                atomic.discard(os.path.join(temporary, name))
            os.rmdir(temporary)

    def _weigh(self, message: Message) -> tuple[int, int]:
        flags = _ROLE_FLAGS[message.role]
        if message.tool_calls:
            flags |= CALLS
        if message.client_key:
            flags |= KEYED
        if message.meta and message.incomplete:
            flags |= BROKEN
        return self.count_tokens(message), flags


def _event_weight(event: Event) -> tuple[int, int]:
    seq = message_of(event) if event.type in TYPES else 0
    return (seq, OF_MESSAGE) if seq else (0, 0)


def _may_be_large(message: Message) -> bool:
    """Return True if a message can carry a content that is worth comparing; cheap, for every append."""
    if message.role == "tool":
        text = message.content
        return not isinstance(text, str) or _is_long(text)
    return any(_is_long(call.arguments) for call in message.tool_calls)


def _is_long(text: str) -> bool:
    return len(text) >= LARGE_BYTES or (len(text) * 4 >= LARGE_BYTES and not text.isascii())


def _holds_capture(data: Mapping[str, Any]) -> bool:
    return "digest" in data or any(isinstance(value, Mapping) and "digest" in value for value in data.values())
