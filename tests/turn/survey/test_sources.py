"""What stands before the tail, each from where it lives, and what is said of it when it is not there."""

import os
from pathlib import Path
from typing import Any

import pytest
from faults import Faults
from turn.scenes import Clock, converse, lost, reasons, stage

from daypack.prompts import SHIPPED_PROMPTS
from daypack.session import Session
from daypack.text.tokens import counter_for
from daypack.turn.survey import sources
from daypack.turn.turn import Turn


def opened(home: str, workspace: Path | None = None, **settings: Any) -> Session:
    if workspace:
        workspace.mkdir(exist_ok=True)
        settings["workspace"] = str(workspace)
    session = stage(home, **settings)
    session.append("user", "Hi")
    return session


def switched(home: str, workspace: Path | None = None, **settings: Any) -> Session:
    session = opened(home, workspace, **settings)
    session.switch("identity", on=True)
    return session


def prefix(turn: Turn) -> dict[str, str]:
    return {one.id: one.text for one in turn.parts.epoch.prefix}


def derive(session: Session, name: str, text: str) -> Path:
    path = Path(session.history.layout.derived(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# Identity


@pytest.mark.requirement("S1-D1", "S1-D1.1", "S1-D1.3", "S1-D1.4", "S1-D1.5", "S1-D1.6", "S1-D2.1", "S1-I4", "X38")
def test_identity_has_its_things_and_each_in_a_line(home: str, tmp_path: Path) -> None:
    session = switched(home, tmp_path / "boat", model="claude-opus-4-1")
    (tmp_path / "boat" / "MEMORY.md").write_text("- Anna owns the boat.")
    derive(session, "context_doc", "# Context\n\n## Task\nSail.\n")
    assert prefix(session.prepare())["identity"].split("\n") == [
        "You run on claude-opus-4-1.",
        f"Workspace: {tmp_path / 'boat'}",
        "Be concise. Use tools. Never fabricate.",
        "Working memory: CONTEXT.md below.",
        "Long-term memory: MEMORY.md below.",
        "You are costly: leave routine work to cheaper models.",
    ]


@pytest.mark.requirement("S1-D1.6")
@pytest.mark.parametrize(("model", "told"), [("gpt-4o-mini", False), ("claude-opus-4", True), ("gemini-ultra", True)])
def test_only_a_costly_model_is_told_so(home: str, model: str, *, told: bool) -> None:
    session = switched(home, model=model)
    assert ("cheaper" in prefix(session.prepare())["identity"]) == told


@pytest.mark.requirement("S1-B1")
def test_identity_has_about_a_hundred_tokens_at_most(home: str, tmp_path: Path) -> None:
    folder = tmp_path / "a-rather-long-folder-name" / "and-another-one" / "workspace"
    folder.parent.mkdir(parents=True)
    session = switched(home, folder, model="claude-opus-4-1-20250805")
    (folder / "MEMORY.md").write_text("x")
    derive(session, "context_doc", "# Context")
    assert counter_for("gpt-4o").count(prefix(session.prepare())["identity"]) <= 110


@pytest.mark.requirement("X42", "S1-D1.2")
def test_the_time_is_runtime_state_and_not_part_of_the_prefix(home: str) -> None:
    clock = Clock()
    session = stage(home, clock=clock)
    session.switch("identity", on=True)
    session.append("user", "Hi")
    first = session.prepare()
    clock.now += 7200
    second = session.prepare()
    assert first.system == second.system
    assert "2027" not in first.system
    assert [one.text for one in second.parts.volatile] == ["Current time: 2027-01-15T10:00:00Z"]
    assert second.parts.volatile[0].context_kind == "runtime_state"
    assert second.messages()[-1]["content"].endswith("Current time: 2027-01-15T10:00:00Z")


def test_identity_is_off_until_it_is_switched_on_and_names_no_model_without_one(home: str) -> None:
    session = opened(home, model=None)
    assert prefix(session.prepare()) == {}
    session.switch("identity", on=True)
    session.refresh()
    assert prefix(session.prepare())["identity"] == "Be concise. Use tools. Never fabricate."
    session.switch("identity", on=False)
    session.refresh()
    assert prefix(session.prepare()) == {}


# Pins and leading messages


@pytest.mark.requirement("S4-PK4", "S4-F18")
def test_pins_stand_first_and_under_their_names(home: str) -> None:
    session = opened(home)
    session.pin("zebra", "Stripes.")
    session.pin("system", "You are a pilot.")
    (session.path / "context/pinned/blank.md").write_text(" \n")  # by hand
    turn = session.prepare()
    assert list(prefix(turn)) == ["pin:system.md", "pin:zebra.md"]
    kinds = {one.source: (one.kind, one.context_kind) for one in turn.items}
    assert kinds["context/pinned/system.md"] == ("system", "system_prompt")
    assert kinds["context/pinned/zebra.md"] == ("system", "developer_instruction")
    assert turn.system.startswith("You are a pilot.\n\n<instructions id=")


def test_leading_system_messages_and_a_greeting_never_leave_the_window(home: str) -> None:
    session = stage(home)
    session.append("system", "Speak like a sailor.")
    session.append("assistant", "Ahoy, what can I do?")
    converse(session, 12)
    session.append("user", "And now?")
    turn = session.prepare(budget=900)
    assert turn.record.first == 3
    found = {one.id: one for one in turn.parts.epoch.prefix}
    assert found["messages:1"].text == "Speak like a sailor."
    assert found["messages:1"].authority == "system"
    assert found["messages:2"].text == "Ahoy, what can I do?"
    assert found["messages:2"].authority == "agent"
    assert "messages:1" not in reasons(turn)


def test_without_a_user_message_nothing_is_a_greeting(home: str) -> None:
    session = stage(home)
    session.append("assistant", "Ahoy.")
    turn = session.prepare(target="reviewer")
    assert [message.text for message in turn.parts.messages] == ["Ahoy."]
    assert "messages:1" not in prefix(turn)


# Workspace


@pytest.mark.requirement("S1-F1")
def test_files_of_the_workspace_go_in_whole_and_in_order(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    for name in sources.WORKSPACE:
        (tmp_path / "w" / name).write_text(f"# {name}\nWords of {name}.\n")
    (tmp_path / "w" / "README.md").write_text("not for an agent")
    turn = session.prepare()
    assert [name for name in prefix(turn) if name.startswith("file:")] == [
        "file:AGENTS.md", "file:SOUL.md", "file:USER.md", "file:TOOLS.md", "file:MEMORY.md",
    ]  # fmt: skip
    assert prefix(turn)["file:SOUL.md"] == "# SOUL.md\nWords of SOUL.md."
    kinds = {one.source: (one.kind, one.context_kind) for one in turn.items}
    assert kinds["workspace:MEMORY.md"] == ("memory_document", "durable_memory")
    assert kinds["workspace:AGENTS.md"] == ("system", "developer_instruction")
    assert "not for an agent" not in turn.pack_md


def test_a_blank_file_is_as_good_as_none(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "w" / "AGENTS.md").write_text("\n \n")
    assert prefix(session.prepare()) == {}


def test_a_link_inside_the_workspace_is_followed(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "w" / "docs").mkdir()
    (tmp_path / "w" / "docs" / "rules.md").write_text("Ask first.")
    (tmp_path / "w" / "AGENTS.md").symlink_to("docs/rules.md")
    assert prefix(session.prepare())["file:AGENTS.md"] == "Ask first."


def test_a_link_out_of_the_workspace_is_not_followed_and_that_is_told(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "elsewhere.md").write_text("The key is under the mat.")
    (tmp_path / "w" / "AGENTS.md").symlink_to(tmp_path / "elsewhere.md")
    turn = session.prepare()
    assert reasons(turn)["file:AGENTS.md"] == "permission_missing"
    missing = lost(turn, "file:AGENTS.md")
    assert missing.severity == "high"
    assert missing.requested == str(tmp_path / "w" / "AGENTS.md")
    assert "under the mat" not in turn.pack_md


def test_a_workspace_that_is_itself_a_link_is_where_it_leads(home: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "AGENTS.md").write_text("Ask first.")
    (tmp_path / "w").symlink_to(tmp_path / "real")
    session = opened(home, tmp_path / "w")
    assert prefix(session.prepare())["file:AGENTS.md"] == "Ask first."


def test_what_is_no_readable_text_is_left_out_with_its_reason(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "w" / "AGENTS.md").write_bytes(b"\xff\xfe caf\xe9")
    (tmp_path / "w" / "SOUL.md").mkdir()
    (tmp_path / "w" / "USER.md").write_text("x" * ((1 << 20) + 1))
    os.mkfifo(tmp_path / "w" / "TOOLS.md")
    (tmp_path / "w" / "MEMORY.md").symlink_to("MEMORY.md")
    turn = session.prepare()
    assert {name: reason for name, reason in reasons(turn).items() if name.startswith("file:")} == {
        "file:AGENTS.md": "unsupported_media",
        "file:SOUL.md": "permission_missing",
        "file:USER.md": "too_large",
        "file:TOOLS.md": "permission_missing",
        "file:MEMORY.md": "permission_missing",
    }
    assert [one.high_impact for one in turn.omitted if one.item == "file:USER.md"] == [True]


def test_a_file_that_may_not_be_read_is_left_out_and_asked_for(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "w" / "AGENTS.md").write_text("Ask first.")
    faults = Faults(at=1, code=13)
    real = os.open
    with pytest.MonkeyPatch.context() as patch:

        def open_(path: str, *args: int) -> int:
            return faults.call("open", real, path, *args) if path.endswith("AGENTS.md") else real(path, *args)

        patch.setattr(os, "open", open_)
        turn = session.prepare()
    assert faults.hit
    assert reasons(turn)["file:AGENTS.md"] == "permission_missing"
    assert lost(turn, "file:AGENTS.md").severity == "high"


# Switched blocks


@pytest.mark.requirement("S1-D2.2", "S1-D6")
@pytest.mark.parametrize("name", ["voice", "provenance"])
def test_a_conditional_block_is_there_only_while_it_is_switched_on(home: str, name: str) -> None:
    session = opened(home)
    shipped = Path(SHIPPED_PROMPTS) / "blocks" / f"{name}.md"
    words = shipped.read_text().strip()
    assert words not in session.prepare(dry_run=True).system
    session.switch(name, on=True)
    assert prefix(session.prepare(dry_run=True))[f"block:{name}"] == words
    session.switch(name, on=False)
    assert words not in session.prepare().system


def test_the_users_own_text_goes_before_the_shipped_one_and_makes_new_blocks(home: str) -> None:
    session = opened(home)
    prompts = Path(session.history.layout.prompts)
    prompts.mkdir(parents=True)
    assert prompts.parent == session.path.parents[3]
    (prompts / "voice.md").write_text("Whisper.\n")
    (prompts / "pirate.md").write_text("Say arr.\n")
    (prompts / "provenance.md").write_text("\n")
    for name in ("voice", "pirate", "provenance"):
        session.switch(name, on=True)
    turn = session.prepare()
    found = prefix(turn)
    assert found["block:voice"] == "Whisper."
    assert found["block:pirate"] == "Say arr."
    assert "block:provenance" not in found
    assert turn.missing == ()


def test_a_switch_without_a_text_is_missed(home: str) -> None:
    session = opened(home)
    text = Path(session.layout.prompts) / "pirate.md"
    text.parent.mkdir(parents=True)
    text.write_text("Say arr.")
    session.switch("pirate", on=True)
    text.unlink()
    turn = session.prepare()
    missing = lost(turn, "block:pirate")
    assert (missing.severity, missing.requested) == ("high", "prompts/pirate.md")


def test_a_text_that_is_a_link_is_missed_and_the_turn_goes_on(home: str, tmp_path: Path) -> None:
    session = opened(home)
    Path(session.history.layout.prompts).mkdir(parents=True)
    (tmp_path / "x").write_text("Say arr.")
    (Path(session.history.layout.prompts) / "pirate.md").symlink_to(tmp_path / "x")
    session.switch("pirate", on=True)
    assert "symbolic link" in lost(session.prepare(), "block:pirate").question
