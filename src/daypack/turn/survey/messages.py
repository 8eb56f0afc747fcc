"""The newest messages of a history as they would be shown: decoded, cleared of secrets and weighed once."""

from bisect import bisect_left
from collections.abc import Callable

import msgspec

from daypack.files.offsets import DAMAGED, UNCOUNTED, Slot
from daypack.history.session import History
from daypack.text.redact.messages import clear
from daypack.text.tokens import Counter, count_message
from daypack.turn.dialects.tool_calls import arguments_object
from daypack.turn.items import Cost, Entry, Scales
from daypack.types.history import Message, Other, Part, Text, Thinking

# What a provider puts around a message and around a tool call, at most (role, separators, ids).
MESSAGE_TOKENS = 4
CALL_TOKENS = 8
# What a dialect puts in, at most: "(no output)" for nothing, "[system note] " before an instruction, "[image: …]".
_STAND_IN = Cost(7, 14)
_MENTION_BYTES = 10
_NAME_TOKENS = 3  # the ": " between a name and the words, and what both lose by standing together
_CALL_BYTES = 26  # a name that has to be spelled otherwise, and an object around arguments that are none
_BATCH = 256


Lighten = Callable[[Entry], Cost]


class Recent:
    """A growing list of the newest messages; what was read once is not read again."""

    def __init__(self, history: History, scales: Scales, *, redacting: bool) -> None:
        self._history = history
        self._scales = scales
        self._own = scales.counter.name == history.tokenizer  # else the counts of the sidecar are of another kind
        self._redacting = redacting
        self._entries: list[Entry] = []
        self._from = self._to = 0  # the positions that were read
        self._newest: Slot | None = None  # of the last of them: its CRC covers all that stands before it
        self._generation = -1

    def since(self, seq: int) -> list[Entry]:
        """Return the messages from a number on."""
        self._catch_up()
        if not self._entries or self._entries[0].message.seq > seq:
            self._read_back(self._history.messages.reader.position(seq))
        at = bisect_left(self._entries, seq, key=lambda entry: entry.message.seq)
        return self._entries[at:]

    def weigh_since(self, seq: int, without: frozenset[int] = frozenset()) -> int:
        """Return about how many tokens the messages from a number on have, without reading what is not read yet."""
        reader = self._history.messages.reader
        self._catch_up_positions()
        if self._entries and self._entries[0].message.seq <= seq:
            return sum(entry.cost.tokens for entry in self.since(seq) if entry.message.seq not in without)
        slots = reader.slots(reader.position(seq), reader.count())
        kept = (slot for slot in slots if slot.seq not in without and not slot.flags & DAMAGED)
        return sum(slot.tokens for slot in kept if slot.tokens != UNCOUNTED)

    def newest(self, room: Cost, lighten: "Lighten | None" = None) -> tuple[list[Entry], bool]:
        """Return the newest messages until one does not fit, and whether these are all there are.

        `lighten` is asked for the cost of each, newest first, when it may be shown in a shorter form.
        """
        self._catch_up()
        used, at = Cost(), len(self._entries)
        while True:
            while at > 0:
                entry = self._entries[at - 1]
                used = used.plus(lighten(entry) if lighten else entry.cost)
                if not used.within(room):
                    return self._entries[at:], False
                at -= 1
            if self._from == 0:
                return list(self._entries), True
            before = len(self._entries)
            self._read_back(max(0, self._from - _BATCH))
            at = len(self._entries) - before

    def find_user(self) -> Entry | None:
        """Return the newest message of the user."""
        self._catch_up()
        at = len(self._entries)
        while True:
            while at > 0:
                at -= 1
                if self._entries[at].message.role == "user":
                    return self._entries[at]
            if self._from == 0:
                return None
            before = len(self._entries)
            self._read_back(max(0, self._from - _BATCH))
            at = len(self._entries) - before

    def user_before(self, seq: int) -> Entry | None:
        """Return the newest message of the user below a number; what is passed over on the way is not kept."""
        self._catch_up()
        for entry in reversed(self._entries):
            if entry.message.role == "user" and entry.message.seq < seq:
                return entry
        stop = self._from
        while stop > 0:
            start = max(0, stop - _BATCH)
            for message in reversed(self._history.messages.reader.read(start, stop)):
                if message.role == "user" and message.seq < seq:
                    return self.weigh(message)
            stop = start
        return None

    def forget_before(self, seq: int) -> None:
        """Let go of messages that no turn asks for any more."""
        at = bisect_left(self._entries, seq, key=lambda entry: entry.message.seq)
        if at > 4 * _BATCH:
            self._from = self._history.messages.reader.position(seq)
            del self._entries[:at]

    def _catch_up_positions(self) -> None:
        reader = self._history.messages.reader
        if self._generation != reader.generation or self._slot() != self._newest:
            # Lines were taken back, erased or numbered anew: whatever follows may stand on other lines than before.
            self._entries.clear()
            self._from = self._to = reader.count()
            self._generation = reader.generation
            self._newest = self._slot()

    def _catch_up(self) -> None:
        self._catch_up_positions()
        count = self._history.messages.reader.count()
        if count > self._to:
            if not self._entries and count - self._to > _BATCH:
                self._from = count
            else:
                self._entries += self._read(self._to, count)
            self._to = count
            self._newest = self._slot()

    def _slot(self) -> Slot | None:
        if not self._to:
            return None
        found = self._history.messages.reader.slots(self._to - 1, self._to)
        return found[0]._replace(tokens=0, flags=0) if found else None  # these two are learned later

    def _read_back(self, start: int) -> None:
        if start < self._from:
            self._entries[:0] = self._read(start, self._from)
            self._from = start

    def _read(self, start: int, stop: int) -> list[Entry]:
        reader = self._history.messages.reader
        counted: dict[int, int] = {}
        if self._own:
            counted = {
                slot.seq: slot.tokens
                for slot in reader.slots(start, stop)
                if slot.tokens != UNCOUNTED and not slot.flags & DAMAGED
            }
        return [self.weigh(message, counted.get(message.seq)) for message in reader.read(start, stop)]

    def weigh(self, message: Message, tokens: int | None = None) -> Entry:
        """Return a message as it would be shown, with its cost."""
        kinds: tuple[str, ...] = ()
        if self._redacting:
            shown, kinds = clear(message)
            if kinds:
                message, tokens = shown, None
        return Entry(message, weigh_message(message, self._scales.counter, tokens), kinds)


def weigh_message(message: Message, counter: Counter, tokens: int | None = None) -> Cost:
    """Return what a message takes of a window, in the dialect where that is most; `tokens`: of its words, if known."""
    if tokens is None:
        tokens = count_message(counter, message)
    content, calls = message.content, message.tool_calls
    size = size_of(message)
    tokens += MESSAGE_TOKENS
    if message.role == "system" or not content or (isinstance(content, str) and content.isspace()):
        tokens, size = tokens + _STAND_IN.tokens, size + _STAND_IN.bytes
    if not isinstance(content, str):
        tokens, size = tokens + len(content) + _STAND_IN.tokens, size + _MENTION_BYTES * (len(content) + 1)
    if message.name:
        tokens += _NAME_TOKENS
    if calls:
        more = sum(_escapes(call.arguments) for call in calls)
        tokens, size = tokens + CALL_TOKENS * len(calls) + more, size + _CALL_BYTES * len(calls) + more
    return Cost(tokens, size, 1)


def _escapes(arguments: str) -> int:
    """Return how much longer arguments become where only an object is taken and they are none."""
    if arguments_object(arguments).get("arguments") != arguments:
        return 0
    return len(msgspec.json.encode(arguments)) - len(arguments.encode("utf-8", "replace"))


def size_of(message: Message) -> int:
    """Return the bytes of what a message says."""
    content = message.content
    texts = [content] if isinstance(content, str) else [_words(part) for part in content]
    texts += [text for call in message.tool_calls for text in (call.name, call.arguments)]
    if message.name:
        texts.append(f"{message.name}: ")
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)


def _words(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Thinking):  # with what proves it to its provider
        sealed = (part.meta or {}).get("encrypted_content")
        return part.text + (part.signature or "") + (sealed if isinstance(sealed, str) else "")
    return msgspec.json.encode(part.value).decode() if isinstance(part, Other) else part.source
