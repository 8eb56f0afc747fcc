"""The messages of one turn: the tail of the epoch, and the window that a new epoch is cut from."""

from collections.abc import Sequence

from msgspec.structs import replace

from daypack.turn.budget import Limits
from daypack.turn.items import SEEN_BY_DEFAULT, Entry, Omission, TokenMeter, message_range
from daypack.turn.surface import Epoch, Window
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.visibility import OUTSIDE, READERS, entry_seen_by, is_hidden_from
from daypack.types.history import Message
from daypack.types.kinds import Target

LEADING = 8  # messages at the start of a history that are searched for instructions


class Conversation:
    """The messages up to a fixed last one, as one target sees them; later appends do not change it."""

    def __init__(self, inputs: TurnInputs, meter: TokenMeter, target: Target) -> None:
        self._inputs = inputs
        self._meter = meter
        self._target: Target = target
        self._inside = target in SEEN_BY_DEFAULT
        self._messages = inputs.messages(meter)
        reader = inputs.history.messages.reader
        self.leading = reader.read(0, LEADING)
        self.last = reader.newest().seq
        self.first = _first(self.leading)  # the first message that is not an instruction
        # Messages before the first user message, if there is one among the first few.
        while self.leading and self.leading[-1].seq >= self.first:
            self.leading.pop()  # it is read again when it is shown, and may be long
        self.has_leading = bool(self.leading)
        self.damaged = _damaged(self.leading, self.first) if self.first > 1 else ()
        self.user: Entry | None = None
        self.hidden: Omission | None = None  # all messages, for a target that sees none
        if target in READERS:
            user = self._messages.newest_user()
            if user and user.message.seq > self.last:
                user = self._messages.user_before(self.last + 1)
            self.user = entry_seen_by(user, target) if user and target in OUTSIDE else user
        elif self.last >= self.first:
            self.hidden = Omission(item=message_range(self.first, self.last), reason="not_visible_to_target")
            self.first = self.last + 1

    def tail(self, epoch: Epoch, max_tokens: int | None = None) -> Window | None:
        """Return the messages of an epoch; None if they have far too many tokens or are not all readable."""
        if self._target not in READERS:
            return Window()
        if max_tokens is not None and self._messages.tokens_since(epoch.start, epoch.stubbed) > max_tokens:
            return None
        entries: Sequence[Entry] = self._messages.since(epoch.start)
        if entries and entries[-1].message.seq > self.last:
            entries = self._until_last(entries)
        self._messages.forget_before(epoch.start)
        repeats: dict[int, int] = {}
        if self._inside and (epoch.stubbed or _has_output(entries, epoch.refer_after)):
            entries, repeats = self._inputs.stubs(self._meter).show(entries, epoch.stubbed, epoch.refer_after)
        if epoch.start < self.first:
            entries = [entry for entry in entries if entry.message.seq >= self.first]
        tail = Window(entries=tuple(entries), complete=epoch.start <= self.first, repeats=repeats)
        if self._target in OUTSIDE:
            tail = self._visible(tail)
        if epoch.head is not None:
            head = self._head(epoch.head)
            if head is None:
                return None
            tail = replace(tail, head=head)
        return tail if self._starts_epoch(tail, epoch) else None

    def window(self, limits: Limits, after: int = 0) -> Window:
        """Return the newest messages that can fit; `after`: the last message that a compaction covers."""
        if self._target not in READERS:
            return Window()
        stubs = self._inputs.stubs(self._meter)
        cost_of = stubs.least_costs() if self._inside else None
        newest, complete = self._messages.newest(limits.room, cost_of)
        window = Window(entries=tuple(self._until_last(newest)), complete=complete)
        window = messages_after(window, after)
        if self._inside:
            window = replace(window, stubs=stubs.stubs_for(window.entries), refer=stubs.refer)
        entries = window.entries
        if entries and not window.complete:
            head = self._messages.user_before(entries[0].message.seq)
            window = replace(window, head=head and entry_seen_by(head, self._target))
        if window.complete or (entries and entries[0].message.seq <= self.first):
            window = replace(window, complete=True)
            entries = tuple(entry for entry in entries if entry.message.seq >= self.first)
        window = replace(window, entries=entries)
        return self._visible(window) if self._target in OUTSIDE else window

    def _head(self, seq: int) -> Entry | None:
        head = self._messages.user_before(seq + 1)
        return entry_seen_by(head, self._target) if head and head.message.seq == seq else None

    def _starts_epoch(self, tail: Window, epoch: Epoch) -> bool:
        """Return True if a window is the tail of the epoch: from its start, with the newest user message."""
        if not tail.entries:
            return set(tail.hidden).issuperset(range(max(epoch.start, self.first), self.last + 1))
        start = tail.entries[0].message.seq
        user = self.user.message.seq if self.user else start
        return start == epoch.start and (user >= start or user == epoch.head)

    def _visible(self, window: Window) -> Window:
        """Return a window as a target outside sees it."""
        visible: list[Entry] = []
        hidden: list[int] = []
        for entry in window.entries:
            if is_hidden_from(entry.message, self._target):
                hidden.append(entry.message.seq)
            else:
                visible.append(entry_seen_by(entry, self._target))
        return replace(window, entries=tuple(visible), hidden=tuple(hidden))

    def _until_last(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [entry for entry in entries if entry.message.seq <= self.last]


def messages_after(window: Window, seq: int) -> Window:
    """Return the part of a window after a message, with the newest user message before it as its head."""
    entries = window.entries
    if not entries or entries[0].message.seq > seq:
        return window
    kept = tuple(entry for entry in entries if entry.message.seq > seq)
    users = (entry for entry in reversed(entries[: len(entries) - len(kept)]) if entry.message.role == "user")
    stubs = {number: stub for number, stub in window.stubs.items() if number > seq}
    head = next(users, window.head)
    return Window(entries=kept, complete=False, head=head, stubs=stubs, refer=window.refer)


def _has_output(entries: Sequence[Entry], after: int) -> bool:
    """Return True if a tool output comes after a message."""
    for entry in reversed(entries):
        if entry.message.seq <= after:
            return False
        if entry.message.role == "tool":
            return True
    return False


def _damaged(leading: Sequence[Message], first: int) -> Sequence[int]:
    """Return the messages before the first that cannot be read."""
    readable = {message.seq for message in leading}
    return [seq for seq in range(1, first) if seq not in readable]


def _first(leading: Sequence[Message]) -> int:
    """Return the first message that is not part of the prefix."""
    for message in leading:
        if message.role == "user":
            return message.seq
    return leading[0].seq if leading else 1  # no user message among the first few: they are ordinary messages
