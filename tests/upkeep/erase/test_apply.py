"""Erasing: after it no file below the home holds the bytes, and the session works as before."""

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from upkeep.erase.secrets import OTHER, SECRET, holding, leaky, more_than_fits, place

import daypack
from daypack.derived.children import ChildUpdate
from daypack.errors import BadInput, EntryMissing, Erased, KeyConflict, MemoryMissing, SourceMissing
from daypack.session import Session
from daypack.types.history import Event
from daypack.upkeep.archive import Guard, archive
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.erase.apply import Applied, apply
from daypack.upkeep.erase.plan import Request, plan
from daypack.upkeep.rebuild import rebuild, verify

WORK = Request(literal=SECRET, session="work")


@pytest.fixture
def session(home: str) -> Iterator[Session]:
    with leaky(home) as session:
        yield session


def turns(session: Session) -> list[str]:
    return [event.id for event in session.events() if event.type == "context.turn"]


def erased_turns(session: Session) -> list[str]:
    """Return the turns that replay refuses as erased; all others verify."""
    lost: list[str] = []
    for event in turns(session):
        try:
            session.replay(event)
        except Erased:
            lost.append(event)
    return lost


def tombstone(session: Session) -> Event:
    [event] = [event for event in session.events() if event.type == "history.erased"]
    return event


def derived(session: Session) -> dict[str, bytes]:
    names = ("CONTEXT.md", "facts.jsonl", "decisions.jsonl", "refs.jsonl", "swap/index.jsonl", "pack.json", "pack.md")
    folder = session.path / "context"
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


@pytest.mark.requirement("S4-R2")
def test_no_file_below_the_home_holds_an_erased_literal(session: Session, home: str) -> None:
    more_than_fits(session)
    session.search_history("password")
    assert len(holding(home)) > 8
    applied = apply(place(home), WORK)
    assert holding(home) == []
    assert applied.remaining == ()
    session.append("user", "What was the password?")
    session.prepare(budget=4000)
    session.close()
    assert holding(home) == []


@pytest.mark.requirement("X43")
def test_a_plan_says_what_would_change_and_changes_nothing(session: Session, home: str) -> None:
    before = {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()}
    planned = plan(place(home), WORK)
    assert {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()} == before
    [found] = planned.sessions
    assert found.messages == (5, 6, 7, 8)
    assert set(found.files) == {
        "latest.md",
        "context/pinned/rule.md",
        "context/pinned/long.md",
        "context/child/rev-1/handoff.md",
        "context/child/rev-1/result.md",
    } - ({"latest.md"} - set(found.files))
    assert found.blobs >= 3
    assert found.turns == tuple(turns(session)[1:])
    assert plan(place(home), WORK) == planned


@pytest.mark.requirement("S4-R2")
def test_numbers_ids_roles_calls_and_checksums_stay(session: Session, home: str) -> None:
    before = list(session.messages())
    apply(place(home), WORK)
    after = list(session.messages())
    assert [(m.seq, m.id, m.ts, m.role, m.tool_call_id, m.name) for m in after] == [
        (m.seq, m.id, m.ts, m.role, m.tool_call_id, m.name) for m in before
    ]
    marker = tombstone(session).data["marker"]
    assert after[4].text == before[4].text.replace(SECRET, marker)
    assert json.loads(after[5].tool_calls[0].arguments)["content"] == f"password = {marker}\n"
    assert [m for m in after if m.seq not in (5, 6, 7, 8)] == [m for m in before if m.seq not in (5, 6, 7, 8)]
    assert session.damage == []
    assert [finding for finding in examine_session(session.history.layout) if finding.severity != "note"] == []


@pytest.mark.requirement("X43")
def test_the_tombstone_has_a_keyed_digest_and_what_was_erased(session: Session, home: str) -> None:
    applied = apply(place(home), WORK)
    event = tombstone(session)
    assert event.id == applied.sessions[0].event == session.events()[-1].id
    assert event.data["kind"] == "literal"
    assert event.data["messages"] == "5-8"
    assert event.data["digest"] == applied.digest
    assert event.data["marker"] == f"[erased:{applied.digest.removeprefix('hmac-sha256:')[:12]}]"
    plain = sha256(SECRET.encode()).hexdigest()
    assert not [path for path in Path(home).rglob("*") if path.is_file() and plain.encode() in path.read_bytes()]


def test_the_same_literal_has_the_same_marker_in_one_home_and_another_in_others(home: str, tmp_path: Path) -> None:
    markers: list[str] = []
    for root, name in ((home, "one"), (home, "two"), (str(tmp_path / "other"), "one")):
        leaky(root, name).close()
        markers.append(apply(place(root), Request(literal=SECRET, session=name)).marker)
    assert markers[0] == markers[1] != markers[2]


def test_digests_that_could_confirm_a_guess_are_hidden(session: Session, home: str) -> None:
    """The digest of a whole request, and of a text, proves a guess of a short secret."""
    lines = (session.path / "events.jsonl").read_text().splitlines()
    affected = [json.loads(line) for line in lines if '"context.turn"' in line][1:]
    digests = {digest for event in affected for digest in event["data"]["sha256"].values()}
    digests |= {json.loads(line)["data"]["digest"] for line in lines if '"pin.set"' in line}
    apply(place(home), WORK)
    data = (session.path / "events.jsonl").read_text()
    assert [digest for digest in digests if digest.rpartition(":")[2] in data] == []


@pytest.mark.requirement("X43")
def test_turns_that_showed_it_are_erased_and_the_others_verify(session: Session, home: str) -> None:
    recorded = turns(session)
    assert erased_turns(session) == []
    apply(place(home), WORK)
    assert erased_turns(session) == recorded[1:]
    with pytest.raises(Erased, match=f"{recorded[1]} no longer verifies: .* was erased"):
        session.replay(recorded[1])


def test_the_next_turn_begins_an_epoch_and_can_be_replayed(session: Session, home: str) -> None:
    apply(place(home), WORK)
    session.append("user", "Shall we go on?")
    turn = session.prepare(budget=8000)
    assert turn.record.opening is not None
    assert turn.record.opening.reason == "erased"
    assert "[erased:" in json.dumps(turn.messages("openai"))
    session.replay(turn.event_id or "")
    session.accept("Yes.")
    session.append("user", "Good.")
    assert session.prepare(budget=8000).record.opening is None


def test_an_epoch_that_never_showed_it_continues(home: str) -> None:
    with daypack.open_session("calm", home=home, durability="os", workspace="") as session:
        session.append("user", "Which ferry?")
        session.prepare(budget=8000)
        session.accept(OTHER)
        session.append("user", f"The word is {SECRET}.")
        apply(place(home), Request(literal=SECRET, session="calm"))
        assert session.prepare(budget=8000).record.opening is None


def test_a_rebuild_gives_the_same_bytes(session: Session, home: str) -> None:
    more_than_fits(session)
    assert len(session.compactions) > 0
    apply(place(home), WORK)
    assert verify(place(home), "default", "work", session.history.config) == ()
    before = derived(session)
    assert "CONTEXT.md" in before
    assert "pack.md" in before
    assert rebuild(session.history, session.turns).problem is None
    assert derived(session) == before


def test_what_left_the_window_can_be_recalled(session: Session, home: str) -> None:
    more_than_fits(session)
    apply(place(home), WORK)
    records = [json.loads(line) for line in (session.path / "context/swap/index.jsonl").read_text().splitlines()]
    assert records
    for record in records:
        assert session.recall(record["id"])
    assert "[erased:" in session.recall("messages:5")


def test_an_open_session_of_another_process_continues_and_writes_nothing_back(session: Session, home: str) -> None:
    more_than_fits(session)
    session.search_history("password")
    child = os.fork()
    if child == 0:
        try:
            apply(place(home), WORK)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    message = session.append("user", "What was the password of the port, again?")
    assert message.seq == session.messages()[-1].seq
    session.prepare(budget=4000)
    session.accept("It was erased.")
    session.compact(keep_tokens=100)
    session.pin("note.md", "after it")
    assert "[erased:" in str([hit.text for hit in session.search_history("password of the port")])
    layout = session.history.layout
    session.close()
    assert holding(home) == []
    assert [finding for finding in examine_session(layout) if finding.severity != "note"] == []


def test_a_message_is_erased_with_its_copies_and_its_calls_still_have_results(session: Session, home: str) -> None:
    more_than_fits(session)
    applied = apply(place(home), Request(message="msg-6", session="work"))
    message = session.messages()[5]
    assert (message.seq, message.role, message.tool_calls[0].id) == (6, "assistant", "call-1")
    assert message.tool_calls[0].name == "write_file"
    assert json.loads(message.tool_calls[0].arguments) == {"erased": applied.marker}
    assert SECRET in session.messages()[6].text  # other messages stay
    apply(place(home), Request(message=5, session="work"))
    assert session.messages()[4].text.startswith("[erased:")
    rest = "we use port 8080 for the tide gauge"
    assert holding(home, rest) == []
    session.append("user", "Shall we go on?")
    session.prepare(budget=8000)
    assert [finding for finding in examine_session(session.history.layout) if finding.severity != "note"] == []


def test_a_child_session_is_included(session: Session, home: str) -> None:
    with daypack.open_session("child", agent="reviewer", home=home, durability="os") as child:
        child.append("user", f"Check {SECRET}")
        session.put_child("rev-2", ChildUpdate(agent="reviewer", session="child"), handoff="Check.")
        applied = apply(place(home), WORK)
    assert [done.plan.session for done in applied.sessions] == ["work", "child"]
    assert holding(home) == []


@pytest.mark.requirement("S4-R2")
def test_what_the_scope_does_not_reach_is_named(session: Session, home: str) -> None:
    leaky(home, "other").close()
    folder = session.history.layout.home.folder
    Path(folder, "notes.txt").write_text(f"{SECRET}")
    planned = plan(place(home), WORK)
    assert {os.path.relpath(found.path, folder).split(os.sep)[-1] for found in planned.elsewhere} >= {
        "notes.txt",
        "messages.jsonl",
    }
    remaining = apply(place(home), WORK).remaining
    assert [found.path for found in remaining if found.path.endswith("notes.txt")]
    assert not [found for found in remaining if "/session/work/" in found.path]


def test_all_includes_archived_sessions_and_memories(session: Session, home: str) -> None:
    leaky(home, "old").close()
    archive(place(home), "default", "old", Guard(0.0, force=True))
    memory = daypack.open_memory(home=home).create_memory("Port")
    daypack.open_memory(home=home).add_entry(memory.memory_id, f"The word is {SECRET}.")
    applied = apply(place(home), Request(literal=SECRET, everywhere=True))
    assert {done.plan.session for done in applied.sessions} == {"work", "old-1"}
    assert [found.memory_id for found in applied.memories] == [memory.memory_id]
    assert holding(home) == []


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_torn_files_and_hand_written_lines_are_rewritten(session: Session, home: str) -> None:
    with open(session.path / "messages.jsonl", "ab") as log:
        log.write(json.dumps({"role": "user", "content": f"by hand {SECRET}"}).encode() + b"\n")
        log.write(b'{"seq":99,"content":"broken ' + SECRET.encode() + b'","crc":"00000000"}\n')
        log.write(b'{"role":"user","content":"torn ' + SECRET.encode())
    count = session.append("user", "next").seq
    (session.path / "context" / ".tmp-pack.md.1.1").write_text(SECRET)
    (session.path / "blob" / ".tmp-x.1.1").write_text(SECRET)
    (session.path / "meta.json").write_text(
        json.dumps({**json.loads((session.path / "meta.json").read_text()), "note": SECRET})
    )
    assert any("torn" in name for name in holding(home))
    apply(place(home), WORK)
    assert session.messages()[-1].seq == count
    assert holding(home) == []
    assert session.meta["note"].startswith("[erased:")


def test_a_retry_with_the_key_of_an_erased_message_is_refused(home: str) -> None:
    with daypack.open_session("keys", home=home, durability="os") as session:
        session.append("user", f"The word is {SECRET}.", client_key="k1")
        apply(place(home), Request(literal=SECRET, session="keys"))
        with pytest.raises(KeyConflict):
            session.append("user", f"The word is {SECRET}.", client_key="k1")
        assert session.append("user", "other", client_key="k2").seq == 2


def test_nothing_found_changes_nothing(session: Session, home: str) -> None:
    before = (session.path / "messages.jsonl").read_bytes(), (session.path / "events.jsonl").read_bytes()
    request = Request(literal="not in this session", session="work")
    assert plan(place(home), request).is_empty
    assert apply(place(home), request).sessions == ()
    assert ((session.path / "messages.jsonl").read_bytes(), (session.path / "events.jsonl").read_bytes()) == before


def test_a_plan_that_has_changed_is_refused(session: Session, home: str) -> None:
    planned = plan(place(home), WORK)
    session.append("user", f"again {SECRET}")
    with pytest.raises(BadInput, match="the plan has changed"):
        apply(place(home), WORK, planned.id)
    assert holding(home)
    session.append("user", "nothing special")
    apply(place(home), WORK, plan(place(home), WORK).id)
    assert holding(home) == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"literal": ""}, "empty"),
        ({"literal": " \n"}, "empty"),
        ({"literal": "4711"}, "so short a text"),
        ({"literal": "assistant"}, "part of the format"),
        ({"literal": "content"}, "part of the format"),
        ({"literal": "\ud800abcdef"}, "surrogate"),
        ({"literal": "secret-name"}, "part of the name of a session"),
        ({}, "what to erase is required"),
        ({"literal": SECRET, "message": "5"}, "cannot be combined"),
        ({"literal": SECRET, "session": None}, "session required"),
        ({"literal": SECRET, "everywhere": True}, "cannot be combined"),
    ],
)
def test_what_cannot_be_erased_is_refused(home: str, fields: dict[str, object], problem: str) -> None:
    leaky(home, "secret-name").close()
    before = {path: path.read_bytes() for path in Path(home).rglob("*.jsonl")}
    request = Request(**{"session": "secret-name", **fields})  # type: ignore[arg-type]
    for work in (plan, apply):
        with pytest.raises(BadInput, match=problem) as raised:
            work(place(home), request)
        assert raised.value.operation
        assert raised.value.hint
    assert {path: path.read_bytes() for path in Path(home).rglob("*.jsonl")} == before


def test_what_does_not_exist_is_named(session: Session, home: str) -> None:
    with pytest.raises(SourceMissing, match="no message 99"):
        plan(place(home), Request(message="99", session="work"))
    with pytest.raises(EntryMissing):
        plan(place(home), Request(entry="0" * 32))
    with pytest.raises(MemoryMissing):
        plan(place(home), Request(literal=SECRET, memory="nowhere"))


def test_a_short_literal_is_erased_with_consent(home: str) -> None:
    with daypack.open_session("pin", home=home, durability="os", workspace="") as session:
        session.append("user", "The PIN is 4711, and 4711 is 4711.", meta={"pin": 4711})
        session.prepare(budget=4000)
        session.accept("Yes.")
        apply(place(home), Request(literal="4711", session="pin", force=True))
        assert session.messages()[0].text.count("[erased:") == 3
        assert str((session.messages()[0].meta or {})["pin"]).startswith("[erased:")
        assert [finding for finding in examine_session(session.history.layout) if finding.severity != "note"] == []


def test_applied_values_name_no_secret(session: Session, home: str) -> None:
    applied: Applied = apply(place(home), WORK)
    assert SECRET not in repr(applied)
