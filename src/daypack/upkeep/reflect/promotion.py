"""Which facts, decisions and core blocks of sessions are worth keeping: those that came again, or were confirmed.

    {"type":"fact.confirmed","data":{"id":"f3"}}

Came again: at least two of the sessions have it, or two compactions of one session read it in different messages (what
is merely carried from one to the next came once). Confirmed: an event says
so, or the user wrote "remember: …" with most of its words. A fact must still stand in its session; what was superseded
or undone is not promoted. A core block that a model keeps for itself is a candidate like the others, and no more: it
comes again in another session only, because a model repeats what it sees.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from daypack.config import from_file
from daypack.derived.records import fold
from daypack.derived.tiers import Store, accepted_among, merge, project, read_policies
from daypack.history.session import History
from daypack.text.literals import literals, occurs
from daypack.text.redact.redact import redact
from daypack.types.compaction import Records
from daypack.upkeep.lint.duplicates import find_matches
from daypack.upkeep.lint.narrative import reason_of
from daypack.upkeep.lint.passages import Document
from daypack.upkeep.lint.vocabulary import terms_of

CONFIRMED = "fact.confirmed"
_REMEMBER = re.compile(r"^\W*(?:please\s+|always\s+)?(?:remember|keep in mind|note|don'?t forget|never forget)\b", re.I)
_MAX_ID_CHARS = 64
_NUMBER = re.compile(r"(?<!\w)\d+(?:[.,:]\d+)*(?!\w)")
_SAID_SHARE = 0.7  # of a fact's words that a confirming message has


class Origin(Struct, frozen=True):
    """Where a fact was read: session, record and messages."""

    session: str
    id: str
    source: str


class Candidate(Struct, frozen=True):
    """A fact or decision, everything it was read from, and why it is kept."""

    text: str
    origins: tuple[Origin, ...]
    why: str  # sessions, compactions or confirmed; empty: it is not kept


class Refused(Struct, frozen=True):
    """A candidate that is not promoted, and why."""

    text: str
    reason: str


def find_candidates(sessions: Sequence[tuple[str, History]]) -> list[Candidate]:
    """Return the facts and decisions of some sessions, each once, in the order in which they were met."""
    found: dict[frozenset[str], list[_Seen]] = defaultdict(list)
    for name, history in sessions:
        accepted = fold(history, history.events.records()).accepted
        recorded = _recorded(accepted[-1].records) if accepted else []
        known = {one.id for one in recorded}
        blocks = _core_blocks(history)
        confirmed = _confirmed(history) if recorded or blocks else {}
        for one in (*recorded, *blocks):
            # A model names its blocks itself: one that has the id of a record is not meant by who confirms that.
            meant = one in recorded or one.id not in known
            sure = (meant and one.id in confirmed) or _said(one.text, confirmed.values())
            found[_key(one.text)].append(_Seen(one.text, Origin(name, one.id, one.source), one.again, sure))
    return [_candidate(seen) for key, seen in found.items() if key]


class _Seen(NamedTuple):
    text: str
    origin: Origin
    again: str  # in what it came more than once; empty: it came once
    sure: bool


def _candidate(seen: Sequence[_Seen]) -> Candidate:
    why = next((one.again for one in seen if one.again), "")
    if any(one.sure for one in seen):
        why = "confirmed"
    elif len({one.origin.session for one in seen}) > 1:
        why = "sessions"
    return Candidate(seen[0].text, tuple(one.origin for one in seen), why)


def choose(candidates: Iterable[Candidate], documents: Sequence[Document]) -> tuple[list[Candidate], list[Refused]]:
    """Return what is promoted, and what is not: state, narrative, secrets, and what a text of the workspace has."""
    given = [(one, _objection(one)) for one in candidates]
    fit = [one for one, reason in given if not reason]
    said = _said_by([one.text for one in fit], documents)
    refused = [Refused(one.text, reason) for one, reason in given if reason]
    refused += [Refused(one.text, f"{said[one.text]} says it") for one in fit if one.text in said]
    return [one for one in fit if one.text not in said], refused


def _objection(one: Candidate) -> str:
    if not one.why:
        return "it came once"
    if reason := reason_of(one.text):
        return f"it belongs to a session ({reason})"
    if redact(one.text).kinds:
        return "it holds a secret"
    if not one.text.isprintable():
        return "it holds characters that cannot be seen"
    if len(one.text.splitlines()) > 1 or len(terms_of(one.text)) < 2:
        return "it is not one sentence"
    return ""


def _said_by(texts: Sequence[str], documents: Sequence[Document]) -> dict[str, str]:
    """Return which document says a text; one that lacks a number, path or name of it does not."""
    offered = Document("(offered)", "\n".join(f"- {text}" for text in texts), "memory")
    by_name = {document.name: document.text for document in documents}
    found: dict[str, str] = {}
    for document in documents:
        plain = " ".join(document.text.casefold().split())
        # Too short to be compared by its words, but there it stands.
        found |= {text: document.name for text in texts if " ".join(text.casefold().split()) in plain}
    for match in find_matches([*documents, offered]) if texts else ():
        sides = {match.small.source: match.small_lines, match.large.source: match.large_lines}
        lines = sides.pop(offered.name, None)
        if lines is None or match.kind == "cross-reference":
            continue
        name = next(iter(sides))
        for text in texts[lines.first - 1 : lines.last]:
            if all(occurs(one.text, by_name[name]) for one in literals(text)):
                found.setdefault(text, name)
    return found


class _Offered(NamedTuple):
    id: str
    text: str
    source: str
    again: str


def _recorded(records: Records) -> list[_Offered]:
    facts = [(one.id, one.text, one.source, one.confirmed) for one in records.facts]
    both = [*facts, *((one.id, one.decision, one.source, one.confirmed) for one in records.decisions)]
    return [_Offered(identity, text, source, "compactions" if came else "") for identity, text, source, came in both]


def _core_blocks(history: History) -> list[_Offered]:
    """Return the core blocks that are shown now, with the event that brought them.

    They never came again by themselves: a model sees its blocks, and sends them again because it saw them.
    """
    sources: dict[str, str] = {}
    store = Store()
    for event, accepted in accepted_among(history.events.records()):
        merge(store, accepted)
        standing = store.blocks["core"]
        sources = {key: sources.get(key, f"events:{event.id}") for key in standing}
    place = history.layout.home.config
    shown = project(store, store.round, read_policies(from_file(place), place)).core
    return [_Offered(_name(one.id), store.blocks["core"][one.id].content, sources[one.id], "") for one in shown]


def _name(block_id: str) -> str:
    """Return the id of a block as it may stand in a bullet: one short word that closes no bracket."""
    return re.sub(r"[^\w.:-]+", "-", redact(block_id).text).strip("-")[:_MAX_ID_CHARS] or "block"


def _key(text: str) -> frozenset[str]:
    return frozenset(terms_of(text))


def _confirmed(history: History) -> dict[str, str]:
    """Return the ids that events confirm, and the texts of messages that begin with "remember"."""
    found = {str(one.data.get("id")): "" for one in history.events.records() if one.type == CONFIRMED}
    for message in history.messages.records():
        if message.role == "user" and _REMEMBER.match(message.text):
            found[message.id] = message.text
    return found


def _said(text: str, messages: Iterable[str]) -> bool:
    """Whether a message says most of a text, and every number, path and name of it."""
    key, exact = _key(text), [one.text for one in literals(text)] + _NUMBER.findall(text)
    return any(
        len(key & _key(said)) >= _SAID_SHARE * len(key) and all(occurs(one, said) for one in exact)
        for said in messages
        if said
    )
