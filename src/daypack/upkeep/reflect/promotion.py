"""Choose facts, decisions and core blocks of sessions for promotion: those that recur or were confirmed.

    {"type":"fact.confirmed","data":{"id":"f3"}}

Recurring: at least two sessions have it, or two compactions of one session read it in different messages (a fact that
is only carried over counts once). Confirmed: an event confirms it, or the user wrote "remember: …" with most of its
words. A fact must still be active in its session; superseded and undone facts are not promoted. A core block that a
model keeps is a candidate too, but recurs only if another session has it, because a model repeats what it sees.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from daypack.config import from_file
from daypack.derived.records import fold
from daypack.derived.tiers import Store, accepted_among, merge, project, read_policies
from daypack.history.session import History
from daypack.text.literals import literals, occurs
from daypack.text.redact.redact import redact
from daypack.text.statements.narrative import session_reason
from daypack.text.statements.passages import Document
from daypack.text.statements.wording import terms_of, wording_of
from daypack.types.compaction import Records
from daypack.upkeep.lint.matches import Finder

CONFIRMED = "fact.confirmed"
_REMEMBER = re.compile(r"^\W*(?:please\s+|always\s+)?(?:remember|keep in mind|note|don'?t forget|never forget)\b", re.I)
_MAX_ID_CHARS = 64
_NUMBER = re.compile(r"(?<!\w)\d+(?:[.,:]\d+)*(?!\w)")
_CONFIRMED_SHARE = 0.7  # of a fact's terms that a confirming message contains


PromotionReason = Literal["sessions", "compactions", "confirmed"]


class Origin(Struct, frozen=True):
    """Where a fact was read: session, record and messages."""

    session: str
    id: str
    source: str


class Candidate(Struct, frozen=True):
    """A fact, decision or core block, its origins, and why it is worth promoting."""

    text: str
    origins: tuple[Origin, ...]
    why: PromotionReason | None  # None: it occurred once


class Refused(Struct, frozen=True):
    """A candidate that is not promoted, and why."""

    text: str
    reason: str


def find_candidates(sessions: Sequence[tuple[str, History]]) -> list[Candidate]:
    """Return the distinct facts, decisions and core blocks of some sessions, in order of occurrence."""
    readings: dict[frozenset[str], list[_Reading]] = defaultdict(list)
    for name, history in sessions:
        accepted = fold(history, history.events.records()).accepted
        recorded = _recorded(accepted[-1].records) if accepted else []
        known = {entry.id for entry in recorded}
        blocks = _core_blocks(history)
        confirmed = _confirmed(history) if recorded or blocks else {}
        for entry in (*recorded, *blocks):
            # Models choose the ids of blocks: confirming a record does not confirm a block with the same id.
            unambiguous = entry in recorded or entry.id not in known
            is_confirmed = (unambiguous and entry.id in confirmed) or _states(confirmed.values(), entry.text)
            readings[_key(entry.text)].append(
                _Reading(entry.text, Origin(name, entry.id, entry.source), entry.recurrence, is_confirmed)
            )
    return [_candidate(group) for key, group in readings.items() if key]


class _Reading(NamedTuple):
    text: str
    origin: Origin
    recurrence: PromotionReason | None
    confirmed: bool


def _candidate(readings: Sequence[_Reading]) -> Candidate:
    why: PromotionReason | None = next((reading.recurrence for reading in readings if reading.recurrence), None)
    if any(reading.confirmed for reading in readings):
        why = "confirmed"
    elif len({reading.origin.session for reading in readings}) > 1:
        why = "sessions"
    return Candidate(readings[0].text, tuple(reading.origin for reading in readings), why)


def choose(candidates: Iterable[Candidate], documents: Sequence[Document]) -> tuple[list[Candidate], list[Refused]]:
    """Split candidates into promoted and refused: state, narrative, secrets, and facts the workspace already states."""
    judged = [(candidate, _objection(candidate)) for candidate in candidates]
    fit = [candidate for candidate, reason in judged if not reason]
    stated = _stated_in([candidate.text for candidate in fit], documents)
    refused = [Refused(candidate.text, reason) for candidate, reason in judged if reason]
    refused += [
        Refused(candidate.text, f"stated in {stated[candidate.text]}") for candidate in fit if candidate.text in stated
    ]
    return [candidate for candidate in fit if candidate.text not in stated], refused


def _objection(candidate: Candidate) -> str:
    if not candidate.why:
        return "occurred only once"
    if reason := session_reason(candidate.text):
        return f"belongs to a single session ({reason})"
    if redact(candidate.text).kinds:
        return "contains a secret"
    if not candidate.text.isprintable():
        return "contains invisible characters"
    if len(candidate.text.splitlines()) > 1 or len(terms_of(candidate.text)) < 2:
        return "not a single sentence"
    return ""


def _stated_in(texts: Sequence[str], documents: Sequence[Document]) -> dict[str, str]:
    """Return the document that states each text, including all its numbers, paths and names."""
    offered = Document("(offered)", "\n".join(f"- {text}" for text in texts), "memory")
    by_name = {document.name: document.text for document in documents}
    found: dict[str, str] = {}
    for document in documents:
        plain = " ".join(document.text.casefold().split())
        # Short texts cannot be compared by terms, but they may occur verbatim.
        found |= {text: document.name for text in texts if " ".join(text.casefold().split()) in plain}
    for match in Finder([*documents, offered]).find() if texts else ():
        sides = {match.left.source: match.left.lines, match.right.source: match.right.lines}
        lines = sides.pop(offered.name, None)
        if lines is None or not sides or match.differs or match.kind == "cross-reference":
            continue
        name = next(iter(sides))
        for text in texts[lines.first - 1 : lines.last]:
            if all(occurs(literal.text, by_name[name]) for literal in literals(text)):
                found.setdefault(text, name)
    return found


class _Entry(NamedTuple):
    id: str
    text: str
    source: str
    recurrence: PromotionReason | None


def _recorded(records: Records) -> list[_Entry]:
    facts = [(fact.id, fact.text, fact.source, fact.confirmed) for fact in records.facts]
    both = [
        *facts,
        *((decision.id, decision.decision, decision.source, decision.confirmed) for decision in records.decisions),
    ]
    return [_Entry(entry_id, text, source, "compactions" if count else None) for entry_id, text, source, count in both]


def _core_blocks(history: History) -> list[_Entry]:
    """Return the core blocks that are currently shown, with the event that introduced them.

    Repetition within a session does not count: a model sends its blocks again because it sees them.
    """
    sources: dict[str, str] = {}
    store = Store()
    for event, accepted in accepted_among(history.events.records()):
        merge(store, accepted)
        active = store.blocks["core"]
        sources = {key: sources.get(key, f"events:{event.id}") for key in active}
    place = history.layout.home.config
    shown = project(store, store.round, read_policies(from_file(place), place)).core
    return [_Entry(_name(block.id), store.blocks["core"][block.id].content, sources[block.id], None) for block in shown]


def _name(block_id: str) -> str:
    """Return the id of a block as a short word that is safe in a bullet's brackets."""
    return re.sub(r"[^\w.:-]+", "-", redact(block_id).text).strip("-")[:_MAX_ID_CHARS] or "block"


def _key(text: str) -> frozenset[str]:
    wording = wording_of(text)
    return wording.terms | wording.specifics | ({"not"} if wording.negated else set[str]())


def _confirmed(history: History) -> dict[str, str]:
    """Return the ids that events confirm, and the texts of messages that begin with "remember"."""
    found = {str(event.data.get("id")): "" for event in history.events.records() if event.type == CONFIRMED}
    for message in history.messages.records():
        if message.role == "user" and _REMEMBER.match(message.text):
            found[message.id] = message.text
    return found


def _states(messages: Iterable[str], text: str) -> bool:
    """Return True if a message contains most terms of a text and all its numbers, paths and names."""
    key, exact = _key(text), [literal.text for literal in literals(text)] + _NUMBER.findall(text)
    return any(
        len(key & _key(message)) >= _CONFIRMED_SHARE * len(key) and all(occurs(literal, message) for literal in exact)
        for message in messages
        if message
    )
