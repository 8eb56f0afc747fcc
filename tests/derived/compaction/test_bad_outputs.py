"""Bad model outputs, some made by hand, some recorded from a model of 135 million parameters (recorded-*.txt)."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daypack.derived.compaction.grounding import ground
from daypack.derived.compaction.template_reader import read_filled
from daypack.derived.raw_history import Raw
from daypack.derived.template import MAX_BULLETS, problems, render
from daypack.text.clean import clean
from daypack.text.literals import literals, occurs
from daypack.text.sentences import sentences
from daypack.types.compaction import SECTIONS, Bullet, Loss
from daypack.types.history import Message
from daypack.types.records import ContextDoc
from daypack.types.source import Messages, parse_source

FOLDER = Path(__file__).parent / "bad_outputs"
MESSAGES = msgspec.json.decode((FOLDER / "conversation.json").read_bytes(), type=tuple[Message, ...])
RAW = Raw(MESSAGES, MESSAGES[0].seq, MESSAGES[-1].seq)
EXPECTED: dict[str, Any] = tomllib.loads((FOLDER / "expected.toml").read_text("utf-8"))
EVERYTHING: list[str] = EXPECTED.pop("all")
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
TALK = re.compile(
    r"think>|think▷|\[/?THINK\]|<\||```|\bI (?:should|cannot|can't|will)\b|\bLet me\b|\bAs an AI\b", re.IGNORECASE
)


def run(text: str) -> tuple[tuple[Bullet, ...], list[Loss]]:
    cleaned, losses = clean(text)
    doc, more = read_filled(cleaned)
    bullets, lost = ground(doc, RAW)
    return bullets, [*losses, *more, *lost]


def document(bullets: tuple[Bullet, ...]) -> ContextDoc:
    def texts(section: str) -> tuple[str, ...]:
        return tuple(one.text for one in bullets if one.section == section)

    return ContextDoc("".join(texts("task")), *map(texts, SECTIONS[1:]))


def said(start: int, stop: int) -> str:
    """All that some messages say; arguments as a program would read them."""
    parts: list[str] = []
    for message in MESSAGES:
        if start <= message.seq <= stop:
            parts.append(message.text)
            parts += [call.arguments.encode().decode("unicode_escape") for call in message.tool_calls]
    return "\n".join(parts)


def output(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_bytes().decode("utf-8")


def test_there_are_many_outputs_and_some_are_recorded() -> None:
    assert len(NAMES) >= 60
    assert len([name for name in NAMES if name.startswith("recorded-")]) >= 6
    assert sorted(EXPECTED) == NAMES


@pytest.mark.requirement("T3")
@pytest.mark.parametrize("name", NAMES)
def test_a_bad_output_ends_in_a_valid_document(name: str) -> None:
    bullets, _ = run(output(name))
    assert problems(render(document(bullets))) == []


@pytest.mark.requirement("S1-P2.1", "S1-P2.2", "S1-K2", "S1-K4", "S1-K5", "X35")
@pytest.mark.parametrize("name", NAMES)
def test_no_thinking_no_talk_and_no_placeholder_is_left_of_it(name: str) -> None:
    bullets, _ = run(output(name))
    text = render(document(bullets))
    assert not TALK.search(text)
    assert not re.search(r"^- (?:\[ \] )?\[.*\]$", text, re.MULTILINE)
    assert all(len(sentences(one.text)) == 1 for one in bullets)
    assert all(count <= MAX_BULLETS for count in Counter(one.section for one in bullets).values())


@pytest.mark.requirement("S1-K1")
@pytest.mark.parametrize("name", NAMES)
def test_every_literal_that_is_left_stands_in_the_messages_it_names(name: str) -> None:
    bullets, _ = run(output(name))
    for bullet in bullets:
        source = parse_source(bullet.source)
        assert isinstance(source, Messages)
        assert RAW.start <= source.start <= source.stop <= RAW.stop
        for text in filter(None, (bullet.text, bullet.resolution)):
            for found in literals(text):
                assert occurs(found.text, said(source.start, source.stop)), (bullet, found)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_is_kept_and_every_loss_is_recorded(name: str) -> None:
    bullets, losses = run(output(name))
    expected = EXPECTED[name]
    assert [f"{one.section}: {one.text}" for one in bullets] == (
        EVERYTHING if expected["kept"] == "all" else expected["kept"]
    )
    assert Counter(one.reason for one in losses) == Counter(expected["losses"])


@pytest.mark.requirement("S1-K6")
def test_text_around_the_template_is_cut() -> None:
    bullets, losses = run(f"A word before.\n\n{output('fence-markdown')}\n\nThe end of the story.\n")
    assert [f"{one.section}: {one.text}" for one in bullets] == EVERYTHING
    assert [one.reason for one in losses] == ["unreadable"]


@pytest.mark.parametrize("name", [name for name in NAMES if EXPECTED[name]["kept"] == "all"])
def test_an_output_cut_off_anywhere_still_ends_in_a_valid_document(name: str) -> None:
    text = output(name)
    for stop in range(0, len(text), max(1, len(text) // 20)):
        bullets, _ = run(text[:stop])
        assert problems(render(document(bullets))) == []
        assert not TALK.search(render(document(bullets)))
