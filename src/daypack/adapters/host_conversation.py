"""The conversation of a host program, kept in a session: what the host has now decides what a request may show.

A host passes its whole list of messages with every request. What is new in it is stored. A list that was rolled
back or edited continues in a branch, a session of its own (NAME.2, NAME.3 …): no turn shows what is gone.

    host.branched   {"session":"20251118_101500_ab12cd","messages":14}   in a branch: where it comes from
    host.continued  {"session":"20251118_101500_ab12cd"}   in a session without messages: the host gave it another id
    host.kept       {"messages":{"5c41…":12}}              the host stores these digests in place of message 12
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from daypack.adapters.host_message import (
    DIGEST,
    Fields,
    digest_of,
    draft_of,
    split_system,
    text_of,
    with_text_after,
    with_text_before,
)
from daypack.history.draft import drafts_from
from daypack.history.home import find_home
from daypack.history.layout import safe_name
from daypack.session import Session
from daypack.session.opening import open_session
from daypack.text.injected import SAME, SWAPPED
from daypack.text.tokens import counter_for
from daypack.turn.dialects.given import Given
from daypack.turn.dialects.openai import render
from daypack.turn.pack.fence import SEPARATOR
from daypack.turn.turn import Turn
from daypack.types.history import Message

BRANCHED, CONTINUED, KEPT = "host.branched", "host.continued", "host.kept"
_SYSTEM_TOKENS = 8  # of a message besides its text
_LEAST_SHARED = 2  # messages: many conversations begin with the same greeting


class Place(NamedTuple):
    """Where the sessions of a host are stored."""

    agent: str
    home: str | None = None
    uid: str | None = None


class _Stored(NamedTuple):
    """A stored message, as it is compared with those of the host."""

    seq: int
    digest: str
    words: str  # of a user message


class Followed(NamedTuple):
    """The host's messages with their numbers in the session."""

    messages: list[Fields]
    seqs: list[int]


class _Composed(NamedTuple):
    """A message to send, and the number of the stored message that it is; 0 for a text that a turn adds."""

    fields: Fields
    seq: int = 0


class HostConversation:
    """One conversation of a host, in the branch of its session that the host is in."""

    def __init__(self, name: str, place: Place, model: str | None = None) -> None:
        self.name = safe_name(name)
        self.model = model
        self._place = place
        self._session: Session | None = None
        self._stored: list[_Stored] = []
        self._kept: dict[str, int] = {}  # digests that the host stores in place of a message
        self.usage: Mapping[str, Any] | None = None  # of a reply that is not stored yet
        self.last: tuple[list[Fields], list[Fields]] | None = None  # the newest request, whole and as it was packed

    @property
    def session(self) -> Session:
        """The session of the current branch."""
        if self._session is None:
            self._open(self._newest_branch())
        return cast(Session, self._session)

    @property
    def is_new(self) -> bool:
        """Whether nothing is stored yet."""
        return self._session is None and not self._exists(self.name)

    def extend(self, request: list[Fields]) -> list[Fields] | None:
        """Return the request of a side conversation with the newest pack in place of the messages they share.

        None if it is none: it has all messages of this one up to a point, and one more.
        """
        messages = split_system(request)[1]
        pairs = zip(self._stored, messages, strict=False)
        shared = next((at for at, pair in enumerate(pairs) if not _is_same(*pair, self._kept)), len(self._stored))
        if self.last is None or shared < _LEAST_SHARED or shared < len(messages) - 1:
            return None
        whole, packed = self.last
        later = len(split_system(whole)[1]) - shared  # messages of this one that the other has not
        kept = packed[: len(packed) - later] if later > 0 else packed
        return [*kept, *messages[shared + min(later, 0) :]]

    def continue_as(self, name: str) -> None:
        """Note that the host gives the conversation another id from now on."""
        other, own = safe_name(name), self.session.name
        if other != own:
            with self._opened(other) as session:
                session.append_event(CONTINUED, {"session": own})

    def follow(self, messages: list[Fields], *, branching: bool = True) -> Followed | None:
        """Store what is new; None if the list does not continue the session and no branch is wanted."""
        own = self.session
        own.history.refresh()
        newest = self._stored[-1].seq if self._stored else 0
        if own.history.messages.reader.newest().seq > newest:  # another process has stored some
            self._stored += map(_stored, own.messages(newest + 1))
        offset = self._offset(self._stored, self._kept, messages)
        if offset is None:
            if not branching:
                return None
            own, offset = self._branch(messages), 0
        start = len(self._stored) - offset
        new = self._append(own, messages[start:])
        if self.usage and (reply := next((message for message in new if message.role == "assistant"), None)):
            own.turns.record_usage(reply, self.usage)
            self.usage = None
        return Followed(messages, [stored.seq for stored in self._stored[offset:]])

    def pack(self, request: list[Fields], budget: int, tools: Sequence[object] = ()) -> list[Fields] | None:
        """Return what to send in place of a request; None if it fits as it is."""
        system, messages = split_system(request)
        if not messages or (followed := self.follow(messages)) is None:
            return None
        turn = self._prepare(system, budget, tools)
        packed = None if _is_whole(turn, followed) else [*system, *(each.fields for each in _compose(turn, followed))]
        self.last = (request, packed or request)
        return packed

    def compress(self, transcript: list[Fields], budget: int) -> list[Fields] | None:
        """Return what the host stores in place of its messages; None if nothing can leave.

        The pack is recognised when it comes back, also after a restart.
        """
        system, messages = split_system(transcript)
        if not messages or (followed := self.follow(messages)) is None:
            return None
        turn = self._prepare(system, budget, ())
        if _is_whole(turn, followed):
            self.session.compact_on_overflow()
            turn = self._prepare(system, budget, ())
        if _is_whole(turn, followed):
            return None
        composed = _compose(turn, followed)
        digests = {stored.seq: stored.digest for stored in self._stored}
        kept = {digest_of(each.fields): each.seq for each in composed if each.seq}
        kept = {digest: seq for digest, seq in kept.items() if digests.get(seq) != digest or seq == composed[0].seq}
        self.session.append_event(KEPT, {"messages": kept})
        self._kept.update(kept)
        return [*system, *(each.fields for each in composed)]

    def _prepare(self, system: Sequence[Fields], budget: int, tools: Sequence[object]) -> Turn:
        room = max(1, budget - self._tokens(system))
        return self.session.prepare(budget=room, model=self.model, tools=list(tools) or None)

    def close(self) -> None:
        """Close the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _tokens(self, messages: Sequence[Mapping[str, Any]]) -> int:
        counter = counter_for(self.model)
        return sum(counter.count(text_of(message)) + _SYSTEM_TOKENS for message in messages)

    def _append(self, session: Session, messages: Sequence[Fields]) -> tuple[Message, ...]:
        def store_blob(data: bytes) -> str:
            return session.history.blobs.put(data)

        first = len(self._stored) + 1
        drafts = [
            draft_of(message, f"{self._place.agent}:{at}:{digest_of(message)}", store_blob)
            for at, message in enumerate(messages, first)
        ]
        stored = session.history.append(drafts_from(drafts)) if drafts else ()
        self._stored += map(_stored, stored)
        return stored

    # Branches

    def _exists(self, name: str) -> bool:
        return find_home(self._place.home, self._place.uid).has(self._place.agent, name)

    def _opened(self, name: str) -> Session:
        # The host puts AGENTS.md and such files into its own prompt.
        return open_session(name, agent=self._place.agent, home=self._place.home, uid=self._place.uid, workspace="")

    def _newest_branch(self) -> str:
        number = 1
        while self._exists(_branch_name(self.name, number + 1)):
            number += 1
        return _branch_name(self.name, number)

    def _open(self, name: str) -> None:
        """Open a session and read what it has; one that the host continued under another id leads to the first."""
        self._kept = {}
        seen: set[str] = set()
        session = self._opened(name)
        while session.name not in seen:
            seen.add(session.name)
            events = [event for event in session.events() if event.type in (CONTINUED, KEPT)]
            continued = next((event.data.get("session") for event in events if event.type == CONTINUED), None)
            if not isinstance(continued, str):
                break
            session.close()
            self.name = continued.partition(".")[0]
            session = self._opened(continued)
        kept = [event.data.get("messages") for event in session.events() if event.type == KEPT]
        for each in kept:
            self._kept.update(cast("dict[str, int]", each) if isinstance(each, dict) else {})
        self._stored = [_stored(message) for message in session.messages()]
        self._session = session

    def _branch(self, messages: Sequence[Fields]) -> Session:
        """Open an earlier branch that these messages continue, or begin another."""
        number = 1
        while self._exists(_branch_name(self.name, number)):
            number += 1
        origin = self.session.name
        for earlier in range(number - 1, 0, -1):
            if (name := _branch_name(self.name, earlier)) == origin:
                continue
            self.close()
            self._open(name)
            if self._offset(self._stored, self._kept, messages) == 0:
                return self.session
        self.close()
        self._open(_branch_name(self.name, number))
        self.session.append_event(BRANCHED, {"session": origin, "messages": len(messages)})
        return self.session

    def _offset(
        self, stored: Sequence[_Stored], kept: Mapping[str, int], messages: Sequence[Mapping[str, Any]]
    ) -> int | None:
        """Return how many stored messages the host no longer has before those that it has; None if it has others."""
        offset = 0
        if messages and (seq := kept.get(digest_of(messages[0]))) is not None:
            offset = next((at for at, each in enumerate(stored) if each.seq == seq), 0)
        wanted = stored[offset:]
        if len(wanted) > len(messages):
            return None
        pairs = zip(wanted, messages, strict=False)
        return offset if all(_is_same(each, message, kept) for each, message in pairs) else None


def _branch_name(name: str, number: int) -> str:
    return name if number == 1 else f"{name}.{number}"


def _stored(message: Message) -> _Stored:
    digest = (message.meta or {}).get(DIGEST)
    words = message.text.strip() if message.role == "user" else ""
    return _Stored(message.seq, digest if isinstance(digest, str) else "", words)


def _is_same(stored: _Stored, message: Mapping[str, Any], kept: Mapping[str, int]) -> bool:
    digest = digest_of(message)
    if digest == stored.digest or kept.get(digest) == stored.seq:
        return True
    # Hosts add to the newest user message, and leave that away later.
    words = text_of(message).strip() if message.get("role") == "user" else ""
    added = stored.words.removeprefix(words) if words else ""
    return added != stored.words and added.lstrip(" ").startswith("\n\n")


def _is_whole(turn: Turn, followed: Followed) -> bool:
    """Return True if a turn shows exactly the host's messages."""
    given = turn.assembly.given
    if given.prefix or given.quoted or given.volatile:
        return False
    same = [message.seq for message in given.messages] == followed.seqs
    return same and all(message.id and not _is_stub(message) for message in given.messages)


def _is_stub(message: Message) -> bool:
    return message.role == "tool" and message.text.startswith((SWAPPED, SAME))


def _compose(turn: Turn, followed: Followed) -> list[_Composed]:
    """Return the messages of a turn in the host's own form, with what it adds inside user messages.

    The host's fields stay: signatures and marks of providers that daypack does not know.
    """
    given = turn.assembly.given
    own = dict(zip(followed.seqs, followed.messages, strict=True))
    composed: list[_Composed] = []
    for message in given.messages:
        if not message.id:  # excerpts, after the message that they are for
            _add(composed, message.text)
        elif (fields := own.get(message.seq)) is None:
            composed += (_Composed(each, message.seq) for each in render(Given(messages=(message,)))["messages"])
        else:
            shown = {**fields, "content": message.text} if _is_stub(message) else dict(fields)
            composed.append(_Composed(shown, message.seq))
    if opening := SEPARATOR.join(filter(None, (turn.system, turn.quoted))):
        if composed and composed[0].fields.get("role") == "user":
            composed[0] = composed[0]._replace(fields=with_text_before(composed[0].fields, opening))
        else:
            composed.insert(0, _Composed({"role": "user", "content": opening}))
    if given.volatile:
        _add(composed, SEPARATOR.join(given.volatile))
    return composed


def _add(composed: list[_Composed], text: str) -> None:
    if composed and composed[-1].fields.get("role") == "user":
        composed[-1] = composed[-1]._replace(fields=with_text_after(composed[-1].fields, text))
    else:
        composed.append(_Composed({"role": "user", "content": text}))
