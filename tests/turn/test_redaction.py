"""A secret stays in the logs and is in nothing that leaves: no dialect, pack, envelope, export or error."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import (
    MARKER,
    SECRET,
    FakeMemory,
    converse,
    exported,
    given_out,
    item,
    outputs,
    sent,
    stage,
    turn_events,
)

from daypack.errors import DaypackError
from daypack.session import Session
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.turn.turn import Turn
from daypack.types.kinds import TARGETS
from daypack.types.memory import Remembered
from daypack.types.records import Ref

TOLD = f"the key is {SECRET}, keep it"


def everything(session: Session, turn: Turn) -> str:
    """All that a turn, its event and its exports say."""
    said = given_out(turn) + exported(session) + msgspec.json.encode(turn_events(session)[-1].data).decode()
    said += Path(session.layout.derived("pack")).read_text()
    said += Path(session.layout.derived("pack_text")).read_text()
    try:
        turn.explain("no such thing")
    except DaypackError as error:
        said += str(error)
    return said


def in_message(session: Session, _: Path) -> list[dict[str, Any]]:
    session.append("user", TOLD)
    return []


def in_parts(session: Session, _: Path) -> list[dict[str, Any]]:
    session.append("user", [{"type": "text", "text": TOLD}])
    session.append("assistant", [{"type": "thinking", "text": TOLD, "signature": "s"}, {"type": "text", "text": TOLD}])
    return []


def in_other_parts(session: Session, _: Path) -> list[dict[str, Any]]:
    parts = [
        {"type": "image", "source": f"https://pictures.example/a.png?token={SECRET}"},
        {"type": "web_search_call", "action": {"query": TOLD}},
    ]
    session.append("user", [{"type": "text", "text": "Look."}, *parts])
    session.append("user", "And I?", name=f"ada {SECRET}")
    return []


def in_call(session: Session, _: Path) -> list[dict[str, Any]]:
    calls = [{"id": "c1", "name": "login", "arguments": f'{{"token": "{SECRET}"}}'}]
    session.append("assistant", TOLD, tool_calls=calls)
    session.append("tool", TOLD, tool_call_id="c1")
    return []


def in_system(session: Session, _: Path) -> list[dict[str, Any]]:
    session.append("system", TOLD)
    return []


def in_pin(session: Session, _: Path) -> list[dict[str, Any]]:
    session.pin("system", TOLD)
    session.pin("style", TOLD)
    return []


def in_workspace(_: Session, workspace: Path) -> list[dict[str, Any]]:
    for name in ("AGENTS.md", "MEMORY.md"):
        (workspace / name).write_text(TOLD)
    return []


def in_caller(*_: object) -> list[dict[str, Any]]:
    source = {"source_id": "s", "uri": f"https://x/{SECRET}", "source_kind": "page"}
    return [
        item(content=TOLD, title=f"about {SECRET}", source_refs=[source]),
        item("browser_state", {"token": SECRET}, item_id=f"state-{SECRET}"),
        item("developer_instruction", f"Use {SECRET}", metadata={"placement": "prefix"}),
        item(content=f"hidden {SECRET}", visibility=["tool"], item_id="tools"),
        item(content_ref=f"events:{SECRET}", content=None),
    ]


def in_child(session: Session, _: Path) -> list[dict[str, Any]]:
    session.put_child("done", result=TOLD, refs=[Ref("r1", f"/tmp/{SECRET}", "file", TOLD)])
    session.put_child("waiting", handoff=TOLD)
    return []


def in_memory(session: Session, _: Path) -> list[dict[str, Any]]:
    session.memory = FakeMemory(TOLD, [Remembered("e1", TOLD)])
    return []


def in_failing_memory(session: Session, _: Path) -> list[dict[str, Any]]:
    session.memory = FakeMemory(error=RuntimeError(f"401 for {SECRET}"))
    return []


def in_question(session: Session, _: Path) -> list[dict[str, Any]]:
    session.add_question(f"Is {SECRET} right?", requested_from=f"user:{SECRET}")
    return []


def in_past(session: Session, _: Path) -> list[dict[str, Any]]:
    session.append("user", f"The walrus: {TOLD}")
    converse(session, 30)
    session.append("user", "What is the key of the walrus, and who keeps it?")
    return []


def in_block(session: Session, _: Path) -> list[dict[str, Any]]:
    Path(session.layout.prompts).mkdir(parents=True, exist_ok=True)
    (Path(session.layout.prompts) / "own.md").write_text(TOLD)
    session.switch("own", on=True)
    return []


def in_records(session: Session, _: Path) -> list[dict[str, Any]]:
    Path(session.layout.context).mkdir(exist_ok=True)
    fact = {"id": "f1", "text": TOLD, "source": "messages:1"}
    ref = {"id": "r1", "path": f"gone/{SECRET}", "kind": "file", "summary": TOLD}
    Path(session.layout.derived("facts")).write_text(msgspec.json.encode(fact).decode() + f"\n{SECRET}\n")
    Path(session.layout.derived("refs")).write_text(msgspec.json.encode(ref).decode())
    Path(session.layout.derived("summary")).write_text(TOLD)
    return []


def in_import(session: Session, _: Path) -> list[dict[str, Any]]:
    one = {"item_id": "i", "context_kind": "custom", "content_mode": "inline", "visibility": ["model"], "content": TOLD}
    basic = {"scope": "handoff", "created_at": "2027-01-01T00:00:00Z"}
    surface = {"surface_id": "s", **basic, "items": [one]}
    data = msgspec.json.encode({"context_id": "c", "lifecycle": "available", **basic, "surfaces": [surface]})
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))
    return []


PLACES = [value for name, value in sorted(globals().items()) if name.startswith("in_")]


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_secret_is_in_nothing_that_leaves(home: str, tmp_path: Path, place: Any) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    session = stage(home, workspace=str(workspace))
    session.append("user", "Hello")
    items = place(session, workspace)
    if session.tail(1)[0].role == "system":
        session.append("user", "Hello again")
    for budget in (128_000, 1600):
        turn = session.prepare(budget=budget, items=items)
        said = everything(session, turn)
        assert SECRET not in said
        assert "a1B2c3D4e5" not in said
        assert outputs(session.replay(turn.event_id or "")) == outputs(turn)
        assert MARKER in said
    blobs = Path(session.layout.blob)
    shown = {one.digest.replace(":", "-") for one in (*turn.parts.epoch.prefix, *turn.parts.volatile)}
    for path in blobs.iterdir() if blobs.exists() else ():
        assert path.name not in shown or SECRET not in path.read_text()


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("target", TARGETS)
def test_no_target_is_shown_a_secret(home: str, target: str) -> None:
    session = stage(home)
    in_message(session, Path())
    in_call(session, Path())
    in_pin(session, Path())
    in_child(session, Path())
    turn = session.prepare(target=target, items=[item(content=TOLD, visibility=[target])])
    assert SECRET not in given_out(turn)
    assert MARKER in given_out(turn)


def test_the_logs_keep_what_was_said(home: str) -> None:
    session = stage(home)
    in_message(session, Path())
    in_call(session, Path())
    raw = Path(session.layout.messages).read_bytes()
    session.prepare()
    assert Path(session.layout.messages).read_bytes() == raw
    assert raw.decode().count(SECRET) == 4
    assert [message.text for message in session.messages()] == [TOLD] * 3


def test_with_redaction_off_secrets_are_left_and_turns_replay(home: str, tmp_path: Path) -> None:
    session = stage(home, redaction="off")
    in_message(session, tmp_path)
    in_call(session, tmp_path)
    in_pin(session, tmp_path)
    turn = session.prepare(items=[item(content=TOLD)])
    # Three messages and a call, and of what stands outside the first that says it; in three dialects.
    assert sent(turn).count(SECRET) == 3 * 5
    assert MARKER not in given_out(turn)
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("order", [("on", "off"), ("off", "on")])
def test_the_setting_may_change_and_every_turn_replays_as_it_was(
    home: str, tmp_path: Path, order: tuple[str, str]
) -> None:
    turns: list[Turn] = []
    for number, setting in enumerate((*order, order[0])):
        with stage(home, redaction=setting) as session:
            if number == 0:
                in_pin(session, tmp_path)
                in_past(session, tmp_path)
            for budget in (128_000, 1600, 1600):
                turns.append(session.prepare(budget=budget, items=[item(content=TOLD)]))
                assert (SECRET in given_out(turns[-1])) == (setting == "off")
    for setting in ("on", "off"):
        with stage(home, redaction=setting) as session:
            for turn in turns:
                assert outputs(session.replay(turn.event_id or "")) == outputs(turn)
    shutil.rmtree(session.layout.context)
    with stage(home) as session:
        assert [session.replay(turn.event_id or "").messages() for turn in turns] == [turn.messages() for turn in turns]


@pytest.mark.requirement("G18")
def test_an_epoch_ends_when_redaction_is_switched_on(home: str, tmp_path: Path) -> None:
    """The frozen prefix of an epoch without redaction holds what must not be shown from now on."""
    with stage(home, redaction="off") as session:
        in_pin(session, tmp_path)
        session.append("user", "Hi")
        assert SECRET in session.prepare().system
    with stage(home, redaction="on") as session:
        turn = session.prepare()
        assert turn.new_epoch == "redaction_changed"
        assert SECRET not in given_out(turn)
        assert session.prepare().new_epoch == ""


@pytest.mark.requirement("G18")
def test_a_turn_of_another_version_is_not_shown_with_its_secrets(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage(home)
    in_message(session, Path())
    turn = session.prepare()
    monkeypatch.setattr("daypack.turn.evidence.record.VERSION", "1.2")
    assert SECRET not in given_out(session.turns.replay(turn.event_id or "", verify_digests=False))
    assert session.prepare().new_epoch == "renderer_changed"


def test_errors_of_a_turn_do_not_quote_secrets(home: str) -> None:
    session = stage(home)
    session.append("user", TOLD * 200)
    for budget in (50, 400):
        with pytest.raises(DaypackError) as caught:
            session.prepare(budget=budget)
        assert SECRET not in str(caught.value)


def test_a_secret_in_a_call_is_found_in_its_name_and_behind_escapes(home: str) -> None:
    session = stage(home)
    session.append("user", "Log in.")
    spelled = "".join(f"\\u{ord(one):04x}" for one in SECRET)
    calls = [{"id": "c1", "name": SECRET, "arguments": f'{{"key": "{spelled}"}}'}]
    session.append("assistant", tool_calls=calls)
    session.append("tool", "ok", tool_call_id="c1")
    turn = session.prepare()
    assert SECRET not in sent(turn)
    assert turn.record.redacted == {"2": ("github-token",)}
    assert session.replay(turn.event_id or "").messages() == turn.messages()
