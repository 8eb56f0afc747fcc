"""What stands in for a prefix item that does not fit: the newest facts of MEMORY.md, or one line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turn.scenes import reasons, stage

from daypack.session import Session
from daypack.text.tokens import counter_for
from daypack.turn.items import Cost, Item, TokenMeter
from daypack.turn.pack.fence import measurer
from daypack.turn.pack.shorter import SHORTER, shorter_forms
from daypack.turn.turn import Turn

_MEASURE = measurer(TokenMeter(counter_for(None)), redacting=True)


def opened(home: str, workspace: Path, **files: str) -> Session:
    workspace.mkdir(exist_ok=True)
    for name, text in files.items():
        (workspace / f"{name}.md").write_text(text)
    session = stage(home, workspace=str(workspace))
    session.append("user", "Which harbour is next?")
    return session


def shown(turn: Turn) -> str:
    return "\n".join(str(message["content"]) for message in turn.messages())


def memory_file(count: int) -> str:
    facts = "\n".join(f"- Harbour {at} has {at * 3} berths and a crane of its own." for at in range(count))
    return f"# Memory\n\n## Boats\n- Anna owns the boat.\n\n## Harbours\n{facts}\n"


@pytest.mark.requirement("S1-B6")
def test_a_memory_file_too_long_for_its_share_keeps_its_newest_facts(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w", MEMORY=memory_file(400))
    turn = session.prepare(budget=4_000)
    text = shown(turn)
    assert "- Harbour 399 has" in text
    assert "## Harbours" in text
    assert "- Harbour 0 has" not in text
    assert "Anna owns" not in text
    item = next(item for item in turn.parts.epoch.prefix if item.id == f"file:MEMORY.md{SHORTER}")
    kept = item.text.count("- Harbour")
    assert 500 < item.tokens < 2_000  # most of its share, not a line of it
    omission = next(omission for omission in turn.omitted if omission.item == "file:MEMORY.md")
    assert (omission.reason, omission.note) == ("too_large", f"shown: the newest {kept} of 401 facts")
    assert turn.event_id
    assert session.replay(turn.event_id).messages() == turn.messages()


@pytest.mark.requirement("S1-B6")
def test_a_memory_file_that_fits_is_whole(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w", MEMORY=memory_file(20))
    turn = session.prepare(budget=4_000)
    assert "file:MEMORY.md" in {item.id for item in turn.parts.epoch.prefix}
    assert "file:MEMORY.md" not in reasons(turn)


@pytest.mark.requirement("G9")
@pytest.mark.parametrize("name", ["AGENTS", "SOUL", "USER", "TOOLS"])
def test_an_omitted_instruction_file_is_named_to_the_model_in_one_line(home: str, tmp_path: Path, name: str) -> None:
    session = opened(home, tmp_path / "w", **{name: "Ask before you sail. " * 2_000})
    turn = session.prepare(budget=4_000)
    text = shown(turn)
    assert "Ask before you sail." not in text
    (line,) = [line for line in text.splitlines() if f"{name}.md" in line]
    assert "not shown" in line
    assert "in the workspace" in line
    assert reasons(turn)[f"file:{name}.md"] == "too_large"
    # The next turn continues: the line is no change, and nothing is withdrawn.
    session.append("assistant", "Kiel.")
    session.append("user", "And then?")
    after = session.prepare(budget=4_000)
    assert not after.new_epoch
    assert shown(after).startswith(text[: text.index("Which harbour")])
    assert "withdrawn" not in shown(after)
    assert shown(after).count(f"{name}.md") == 1


def test_a_file_that_cannot_be_shown_at_all_is_named_too(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w", SOUL="x" * ((1 << 20) + 1))
    (tmp_path / "w" / "AGENTS.md").write_bytes(b"\xff\xfe caf\xe9")
    (tmp_path / "w" / "USER.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "outside.md").write_text("private")
    lines = shown(session.prepare()).splitlines()
    for name, why in (("AGENTS", "not UTF-8"), ("SOUL", "1,048,577 bytes"), ("USER", "cannot be read")):
        assert [line for line in lines if f"{name}.md applies and is not shown" in line and why in line]


def test_an_omitted_pin_is_named_and_comes_back_when_it_fits(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    session.pin("rules.md", "Moor at the east quay only. " * 1_000)
    assert "rules.md applies and is not shown" in shown(session.prepare(budget=4_000))
    whole = shown(session.prepare(budget=64_000))
    assert "Moor at the east quay only." in whole
    assert "is not shown" not in whole


@given(
    lines=st.lists(st.sampled_from(["# A", "## B", "- one", "  more of it", "plain", "", "* two words", "+ x"])),
    room=st.integers(1, 400),
)
def test_shorter_forms_shrink_and_hold_whole_lines_of_the_end(lines: list[str], room: int) -> None:
    text = "\n".join(f"{line} {at}" if line.strip() else line for at, line in enumerate(lines))
    whole = _MEASURE(
        Item(
            id="file:MEMORY.md",
            kind="memory_document",
            context_kind="durable_memory",
            source="workspace:MEMORY.md",
            text=text,
            title="MEMORY.md",
            placement="prefix",
        )
    )
    before = text
    for form in shorter_forms([whole], Cost(room, room * 4, 9), _MEASURE)["file:MEMORY.md"]:
        assert 0 < len(form.text) < len(before)
        assert set(form.text.splitlines()) <= {*text.splitlines(), ""}
        kept = [line for line in form.text.splitlines() if line and not line.startswith("#")]
        facts = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert facts[len(facts) - len(kept) :] == kept
        before = form.text
