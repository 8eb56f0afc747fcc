"""docs/format.md has a row for every event type that daypack writes, with every field of its data."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import daypack
from daypack.cli.event_words import WORDS, describe_event
from daypack.importers.import_file import Destination, import_file
from daypack.types.history import Event
from demo import proofs
from demo.agent import Agent
from demo.writer import open_story

ROOT = Path(__file__).resolve().parents[2]
COMPACTED = {"trigger": "auto", "preTokens": 9, "postTokens": 3, "preservedMessages": {"uuids": ["u1"]}}


def documented() -> dict[str, set[str]]:
    """Return the fields of each event type that the page documents."""
    page = (ROOT / "docs/format.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+(?:\.[a-z_]+)+)` \| (.*) \|$", page, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows}


def story(home: str) -> Iterator[Event]:
    """Play a part of the demo, then everything else that appends an event."""
    with open_story(home) as session:
        agent = Agent(session, lambda _name, _arguments: "{}")
        agent.begin()
        for step in range(1, 41):
            agent.play(step)
        session.unpin("system")
        session.set_budget(9_000)
        session.switch("voice", on=True)
        question = session.add_question("Which port?")
        session.resolve_question(question, answer="8080")
        (session.path / "context" / "gc.policy").write_text("swap_ttl=2w\n")
        proofs.collect(session)
        session.undo()
        with (session.path / "messages.jsonl").open("ab") as log:
            log.write(b'{"role":"us')
        session.append("user", "Done?")
        session.prepare()
        session.accept("Yes.", usage={"prompt_tokens": 9, "completion_tokens": 1})
        session.set_state("done")
        yield from session.events()


def transcript(home: str, folder: Path) -> Iterator[Event]:
    rows = [
        {"type": "summary", "summary": "x"},
        {"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "Hello"}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "s1", "sessionId": "s", "compactMetadata": COMPACTED},
    ]
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_file("claude-code", str(path), Destination(home))
    with daypack.open_session("s", home=home) as session:
        yield from session.events()


def test_every_event_and_each_of_its_fields_is_documented(home: str, tmp_path: Path) -> None:
    page, seen = documented(), set[str]()
    for event in [*story(home), *transcript(str(tmp_path / "other"), tmp_path)]:
        seen.add(event.type)
        assert event.type in page, event.type
        assert set(event.data) - page[event.type] == set(), event.type
        assert not describe_event(event, len).startswith(event.type), event.type  # the log says it in words
    assert len(seen) > 15


def test_every_event_type_that_the_source_names_is_documented() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/daypack").rglob("*.py"))
    constants = re.findall(r"^[A-Z_, ]+ = (\"(?:context|child|gc|import|tool|provider)\..+)$", source, re.MULTILINE)
    types = {name for line in constants for name in re.findall(r'"([a-z_.]+)"', line)}
    types |= set(re.findall(r'draft_event\(\s*"([a-z_.]+)"', source))
    assert len(types) > 20
    # Files of that name, and an event of the envelope model that no log holds.
    assert types - set(documented()) - {"gc.progress", "context.missing.detected"} == set()


def test_every_documented_event_type_is_described_in_words() -> None:
    types = {name for name in documented() if not name.endswith((".md", ".json", ".jsonl"))}
    assert types - set(WORDS) == {"pin.set"}  # described apart: it counts tokens
