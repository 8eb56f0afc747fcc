"""Measurements of the session: replay of every call, the sources of facts, garbage collection, rebuild."""

import shutil
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from daypack.derived.tiers import SNAPSHOT, Accepted, read_accepted
from daypack.files import atomic
from daypack.session import Session
from daypack.turn.dialects import NAMES, encode
from daypack.turn.items import Excerpt, Item
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.gc.apply import Applied, apply
from daypack.upkeep.gc.plan import Plan, plan
from daypack.upkeep.gc.policy import parse_policy
from daypack.upkeep.rebuild import Rebuilt, rebuild
from demo.model import text_of
from demo.story import Fact

POLICY = "pack_ttl=0s\nswap_ttl=0s\ndedup_min_refs=2\n"
COMPARED = ("CONTEXT.md", "pack.json", "pack.md", "facts.jsonl", "decisions.jsonl", "refs.jsonl")
_PLACES = {
    "core_blocks": "in a core block",
    "context_doc": "in CONTEXT.md",
    "refs": "in a ref to the child's answer",
    "child_result": "in the child's answer",
}


class Found(NamedTuple):
    """Where the window contained a fact when it was asked for."""

    fact: Fact
    place: str


def recorded(session: Session) -> list[str]:
    """Return the event ids of all prepared calls."""
    return [event.id for event in session.events() if event.type == "context.turn"]


def replay_all(session: Session) -> list[Turn]:
    """Replay every recorded call; a digest mismatch is an error."""
    return [session.replay(event) for event in recorded(session)]


def digest_sent(turn: Turn) -> str:
    """Return the digest of a call's bytes in all dialects."""
    return sha256(b"".join(encode(turn.request(name)) for name in NAMES)).hexdigest()


def section_of(session: Session, answer: Message) -> Accepted:
    """Return the accepted snapshot of an answer."""
    events = (event for event in session.events() if event.type == SNAPSHOT)
    return next(read_accepted(event.data) for event in events if event.data["message"] == answer.id)


def raw_of(answer: Message) -> str:
    """Return an answer as the model sent it: its text with the snapshot section that was cut out."""
    cut = (answer.meta or {}).get("daypack", {}).get("section", {"at": 0, "text": ""})
    return answer.text[: cut["at"]] + cut["text"] + answer.text[cut["at"] :]


def trace(session: Session, turns: Sequence[Turn], fact: Fact) -> Found:
    """Return which part of the window contained a fact in the last call of the turn that asked for it."""
    asked = next(message for message in session.messages() if message.client_key == f"turn-{fact.asked}")
    turn = [turn for turn in turns if turn.record.user == asked.seq][-1]
    if fact.words not in text_of(turn.request()):
        return Found(fact, "")
    for item in turn.inserted:
        if fact.words in item.text:
            return Found(fact, _place(item))
    searched = any(call.name == "search_history" for message in turn.parts.messages[-3:] for call in message.tool_calls)
    return Found(fact, "by the tool search_history" if searched else "in the tail")


def _place(item: Item) -> str:
    if isinstance(item, Excerpt):
        return f"quoted from message {item.id.rpartition(':')[2]}"
    if item.id == "names":
        return "in the names of what left"
    return _PLACES.get(item.kind, "from the memory" if item.kind.startswith("memory") else item.source)


def collect(session: Session) -> tuple[Plan, Applied]:
    """Write the most permissive policy, then plan and apply a collection."""
    path = session.history.layout.derived("gc_policy")
    atomic.replace(path, POLICY.encode())
    planned = plan(session.history, parse_policy(POLICY), time.time())
    return planned, apply(session.history, planned)


def derived_files(session: Session) -> dict[str, bytes]:
    """Return the derived files that a rebuild must reproduce byte for byte."""
    folder = session.path / "context"
    return {name: (folder / name).read_bytes() for name in COMPARED if (folder / name).exists()}


def remove_context(session: Session) -> tuple[int, int]:
    """Delete the folder `context/`; return its number of files and bytes."""
    folder = session.path / "context"
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    shutil.rmtree(folder)
    return len(sizes), sum(sizes)


def rebuild_context(session: Session) -> Rebuilt:
    """Rebuild `context/` from the logs."""
    return rebuild(session.history, session.turns)


def problems(session: Session) -> list[str]:
    """Return the problems that doctor reports."""
    return [finding.problem for finding in examine_session(session.layout) if finding.severity != "note"]


def count_tokens(session: Session) -> int:
    """Return the tokens of all messages."""
    return sum(map(session.history.count_tokens, session.messages()))
