"""Sessions that fill their window, and ways to look at everything a compaction writes."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from scripted_endpoint import Endpoint, Reply, Seen
from turn.scenes import stage

from daypack.derived.documents import NAMES, documents
from daypack.derived.records import COMPACTED, UNDONE, Folded, fold
from daypack.derived.swap import chunk_for
from daypack.derived.template import MAX_BULLETS, problems
from daypack.history.layout import DERIVED
from daypack.session import Session
from daypack.turn.pack.additions import addition_cost
from daypack.turn.policy import DEFAULT_WINDOW
from daypack.turn.turn import Turn
from daypack.types.history import Event
from daypack.types.records import SwapRecord

BUDGET = 6000
OPENING = {"epoch_share": 0.72}  # as in a larger window: what a compaction keeps is all shown
TOPICS = ("harbour", "glacier", "orchard", "violin", "lantern", "quarry", "meadow", "cellar")

# What comes back byte for byte is the fold of the events; these are caches of where things stand.
_CACHES = ("search.sqlite", "search.sqlite-shm", "search.sqlite-wal", "ledger.json")


def step(session: Session, number: int, *, lines: int = 40, text: str = "") -> None:
    """Append one task: a request, a call, its bulky result and an answer."""
    topic = TOPICS[number % len(TOPICS)]
    call = {"id": f"c{number}", "name": "read_file", "arguments": f'{{"path": "src/{topic}_{number}.py"}}'}
    session.append("user", text or f"Fix the {topic} of part {number}: its lamp should burn {number + 3} hours.")
    session.append("assistant", f"I read the {topic} first.", tool_calls=[call])
    session.append("tool", "".join(f"{topic}_{number}_{at} = {at}\n" for at in range(lines)), tool_call_id=call["id"])
    decided = f"We decided to keep the {topic} lamp in src/{topic}_{number}.py because it is cheap."
    session.append("assistant", f"{decided} The {topic} has {number + 2} lamps.")


def turn_after(session: Session, number: int, **given: Any) -> Turn:
    """Append a task and a question, prepare the turn and accept an answer to it."""
    step(session, number, **given)
    session.append("user", f"What is next after part {number}?")
    turn = session.prepare(budget=BUDGET)
    session.accept(f"Part {number + 1} is next.")
    return turn


def fill(session: Session, compactions: int = 1, start: int = 0) -> tuple[Turn, int]:
    """Take turns until so many compactions were made; the answer is the turn that made the last, and the next task."""
    wanted = len(session.compactions) + compactions
    for number in range(start, start + 400):
        turn = turn_after(session, number)
        if len(session.compactions) >= wanted:
            return turn, number + 1
    raise AssertionError("the window never filled")


def opened_tokens(turn: Turn) -> int:
    """Prefix and messages of a turn, without what was recalled behind them."""
    return turn.stable_tokens - addition_cost(turn.parts.additions).tokens


def most_tokens(turn: Turn) -> int:
    """The most that prefix and messages take when an epoch begins; recent messages have a share of their own."""
    room_tokens = turn.record.limits.room.tokens
    least = turn.record.stable.prefix_tokens + DEFAULT_WINDOW.recent_share * room_tokens
    return int(max(least, DEFAULT_WINDOW.opening_share(room_tokens) * room_tokens))


def scene(home: str, steps: int = 12, **settings: Any) -> Session:
    """A session with tasks, a first turn, and more said than half of its window holds."""
    session = stage(home, **settings)
    for number in range(steps):
        step(session, number)
    session.append("user", "What is left to do?")
    return session


def tree(session: Session) -> dict[str, bytes]:
    """Every byte of a session's folder."""
    return _read(session.path)


def context_tree(session: Session) -> dict[str, bytes]:
    """Every byte under context/, without the caches of where things stand."""
    found = _read(session.path / "context")
    kept = {name: data for name, data in found.items() if name not in _CACHES and ".tmp-" not in name}
    return {name: data for name, data in kept.items() if name not in ("offsets/messages.idx", "offsets/events.idx")}


def _read(folder: Path) -> dict[str, bytes]:
    return {
        os.fspath(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def folded_of(session: Session) -> Folded:
    """The fold of the events, made anew."""
    return fold(session.history, session.events())


def compaction_events(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type in (COMPACTED, UNDONE)]


def document_of(session: Session) -> str:
    path = Path(session.history.layout.derived("context_doc"))
    return path.read_text() if path.exists() else ""


def check_files(session: Session, *, exact: bool = True) -> None:
    """The derived files say what the events say, and CONTEXT.md is the clean template.

    Not exact: chunks of older ranges may still be there.
    """
    folded = folded_of(session)
    layout = session.history.layout
    if folded.current is None:
        assert not [name for name in (*NAMES, "compaction") if os.path.lexists(layout.derived(name))]
    else:
        for name, data in documents(folded).items():
            assert Path(layout.derived(name)).read_bytes() == data, name
        assert problems(document_of(session)) == []
        mark = msgspec.json.decode(Path(layout.derived("compaction")).read_bytes())
        assert mark["compaction"] == folded.current.id
    check_swap(session, folded, exact=exact)


def check_swap(session: Session, folded: Folded, *, exact: bool) -> None:
    folder = Path(session.history.layout.derived("swap"))
    index = folder / "index.jsonl"
    listed = index.read_bytes() if index.exists() else b""
    records = [msgspec.json.decode(line, type=SwapRecord) for line in listed.splitlines()]
    assert records == list(folded.swapped.values())
    newest = [one for one in (folded.current.swapped if folded.current else ()) if one.kind == "message_range"]
    chunks = folder / "chunk"
    found = {path.name: path.read_bytes() for path in chunks.iterdir()} if chunks.exists() else {}
    found = {name: data for name, data in found.items() if not name.startswith(".tmp-")}
    wanted = {one.id: chunk_for(session.history, one) for one in newest}
    kept = {name: data for name, data in found.items() if exact or name in wanted}
    assert kept == wanted
    assert set(found) <= set(folded.swapped)


def check_bounds(session: Session) -> None:
    """No section has more than ten bullets, however often was compacted."""
    records = folded_of(session).records
    for section in (records.decisions, records.facts, records.todos, records.errors):
        assert len(section) <= MAX_BULLETS
        assert len({one.id for one in section}) == len(section)


def records_of(session: Session) -> dict[str, str]:
    """All records that stand: id -> words."""
    records = folded_of(session).records
    found = {one.id: one.decision for one in records.decisions}
    found |= {one.id: one.text for one in (*records.facts, *records.todos)}
    return found | {one.id: one.error for one in records.errors}


def derived(session: Session, name: str) -> bytes:
    return (session.path / "context" / DERIVED[name]).read_bytes()


@contextmanager
def model(answer: Callable[[Seen], Reply]) -> Generator[tuple[str, Endpoint]]:
    """A scripted endpoint as the setting that names it; anything but a question about a chat is refused."""

    def answered(seen: Seen) -> Reply:
        if not seen.path.endswith("/chat/completions"):
            return Reply({"error": {"message": "not found"}}, 404)
        return answer(seen)

    with Endpoint(answered) as endpoint:
        yield f"openai:{endpoint.url}/v1#scripted", endpoint
