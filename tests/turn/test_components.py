"""Windows from 2 thousand to a million tokens: everything that can be in a pack is in it, whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from turn.scenes import excerpts_in
from turn.windows import answer, call, check_left, check_window, furnish, open_work, say, user, words_of

from daypack.turn.budget import Limits
from daypack.turn.dialects import NAMES
from daypack.turn.items import UNSEARCHED
from daypack.turn.turn import Turn

COMPONENTS = {
    "identity",
    "pin:system.md",
    "pin:rules.md",
    "file:AGENTS.md",
    "file:SOUL.md",
    "file:USER.md",
    "file:TOOLS.md",
    "file:MEMORY.md",
    "memory",
    "context_doc",
    "refs",
    "child_result:scout",
    "item:list",
    "item:policy",
    "item:core",
    "memory:e1",
    "clock",
}
# window -> sentences in each component, words in each message
WINDOWS = {2_000: (1, 6), 16_000: (20, 60), 64_000: (80, 300), 200_000: (250, 900), 1_000_000: (800, 4_000)}


def talk(window: int, words: int) -> Iterator[dict[str, Any]]:
    """A conversation somewhat longer than a window."""
    yield {"role": "system", "content": "You answer hikers."}
    topics = ("harbour", "glacier", "orchard", "violin")
    for number in range(window // words // 2):
        topic = topics[number % 4]
        yield user(f"Question {number} about the {topic}?")
        yield call(f"c{number}", arguments=f'{{"topic": "{topic}"}}')
        yield answer(f"c{number}", f"{topic} {number} " * (words // 3))
        yield say(f"{topic} " * words)
    yield user("What was said about the harbour, question 4?")


def texts_of(turn: Turn) -> str:
    return "\n".join(words for name in NAMES for words in words_of(name, turn.request(name))[0])


@pytest.mark.requirement("S1-V6", "S1-I4.1", "S3-O7")
@pytest.mark.parametrize("window", WINDOWS)
def test_all_components_fit_into_the_window(home: str, tmp_path: Path, window: int) -> None:
    sentences, words = WINDOWS[window]
    workspace = tmp_path / "workspace"
    with open_work(home, list(talk(window, words)), workspace=str(workspace)) as session:
        session.switch("identity", on=True)
        items = furnish(session, workspace, sentences=sentences)
        turn = session.prepare(budget=window, items=items)
        if any(gap.id == UNSEARCHED for gap in turn.missing):  # the next turn finds it, once the index is built
            session.turns.inputs.history_search.index.wait()
            turn = session.prepare(budget=window, items=items)
        newest = session.tail(1)[0]
        check_window(turn, Limits(window), newest)
        check_left(turn)
        files = {path.name: path.read_text().strip() for path in workspace.iterdir()}
    present = {item.id for item in turn.inserted}
    assert present >= COMPONENTS, sorted(COMPONENTS - present)
    assert excerpts_in(turn), "something of the past"
    assert len(turn.parts.messages) > 3, "a tail"
    assert not any(one.high_impact for one in turn.omitted)
    assert all(text in turn.system + turn.quoted for text in files.values())
    # Prefix, tail, what follows and the reserve are all of the window, in this order.
    assert turn.tokens + turn.record.limits.reserved_tokens <= window
    given = turn.assembly.given
    assert len(given.prefix) + len(given.quoted) == len(turn.parts.epoch.prefix)
    kinds = [item.kind for item in turn.items]
    assert kinds.index("system") < kinds.index("recent_messages") < kinds.index("runtime_block")


@pytest.mark.requirement("S1-I4.1")
def test_nothing_is_ever_shortened_or_marked_as_such(home: str, tmp_path: Path) -> None:
    """None of the sources has an ellipsis, so what is sent has none, whatever the window."""
    workspace = tmp_path / "workspace"
    with open_work(home, list(talk(8_000, 40)), workspace=str(workspace)) as session:
        items = furnish(session, workspace, sentences=12)
        sources = [path.read_text().strip() for path in workspace.iterdir()] + list(session.pins.values())
        seen: set[int] = set()
        for window in (60, 200, 500, 900, 1_400, 2_000, 3_000, 5_000, 9_000, 20_000, None):
            turn = session.prepare(budget=window and Limits(window), items=items, dry_run=True)
            sent = texts_of(turn)
            assert not any(mark in sent.lower() for mark in ("…", "...", "truncated", "[cut", "omitted"))
            whole = [source for source in sources if source in turn.system + turn.quoted]
            begun = [source for source in sources if source[:30] in turn.system + turn.quoted]
            assert whole == begun, "a file is there whole or not at all"
            seen.add(len(whole))
    assert {0, len(sources)} <= seen
    assert len(seen) > 3
