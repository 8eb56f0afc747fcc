"""Upkeep of observed turns: erasing reaches them, nothing collects their blobs, damage in them is reported."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from recorded_requests import assert_rebuilt, import_recording, load_recording, observed_turns
from upkeep.erase.secrets import holding, place
from upkeep.gc.collectable import collect

import daypack
from daypack.errors import Erased
from daypack.session import Session
from daypack.turn.evidence.observed.digests import message_bytes
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.ledger import OBSERVED
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request as RestoreRequest
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request, plan
from daypack.upkeep.rebuild import rebuild, verify

PROMPT = "now read them again, with the picture"  # a message of history, in the third call and those after it
HOOK = "Recalled: the gate was painted in May."  # put in by a hook, in every call: only in blobs
TOOL = "Return a picture of the project."  # the description of a tool
RESULT = "repair the gate"  # in the result of a tool: in history, and in a blob after the change of the model


@pytest.fixture
def notes(home: str) -> Iterator[Session]:
    with daypack.open_session(import_recording(home), home=home, create=False) as session:
        yield session


def is_erased(turn: ObservedTurn) -> bool:
    try:
        turn.verify()
    except Erased:
        return True
    return False


@pytest.mark.parametrize(
    ("literal", "lost"),
    [
        (PROMPT, [2, 3, 4, 5]),
        (HOOK, list(range(9))),
        (TOOL, list(range(9))),
        (RESULT, [1, 2, 3, 4, 5, 8]),
    ],
)
def test_an_erased_text_is_gone_and_the_turns_that_had_it_say_so(
    notes: Session, home: str, literal: str, lost: list[int]
) -> None:
    names = [turn.event_id for turn in observed_turns(notes)]
    request = Request(literal=literal, session="notes")
    planned = plan(place(home), request)
    assert list(planned.sessions[0].turns) == [names[at] for at in lost]
    apply(place(home), request)
    assert holding(home, literal) == []
    turns = observed_turns(notes)
    assert [at for at, turn in enumerate(turns) if is_erased(turn)] == lost
    for turn in turns:
        assert turn.verdict.unknown == (), "everything else can still be read"
    assert not [finding for finding in examine_session(notes.history.layout) if finding.severity == "damage"]


def test_no_digest_is_left_that_would_confirm_a_guess(notes: Session, home: str) -> None:
    digests = [sha256(message_bytes({"role": "user", "content": PROMPT})).hexdigest()]
    digests += [turn.record.digest[7:] for turn in observed_turns(notes)[2:6]]
    assert all(holding(home, digest) for digest in digests)
    apply(place(home), Request(literal=PROMPT, session="notes"))
    assert [holding(home, digest) for digest in digests] == [[]] * len(digests)


def test_a_message_that_is_erased_is_erased_from_requests(notes: Session, home: str) -> None:
    result = notes.messages(3)[0]
    apply(place(home), Request(message="msg-3", session="notes"))
    assert result.text not in "".join(map(str, (turn.messages for turn in observed_turns(notes)[:2])))
    assert [is_erased(turn) for turn in observed_turns(notes)[1:3]] == [True, True]


def test_garbage_collection_and_a_rebuild_keep_every_request(notes: Session, home: str) -> None:
    before = sorted(os.listdir(notes.path / "blob"))
    collect(notes)
    rebuild(notes.history, notes.turns)
    assert verify(place(home), "default", "notes", notes.history.config) == ()
    assert sorted(os.listdir(notes.path / "blob")) == before
    assert assert_rebuilt(notes, load_recording().wire) == 9


def test_doctor_reports_a_blob_that_is_missing_and_none_that_never_was(notes: Session, home: str) -> None:
    assert not [finding for finding in examine_session(notes.history.layout) if finding.severity == "damage"]
    shape = observed_turns(notes)[0].record.shape
    (notes.path / "blob" / f"sha256-{shape[7:]}").unlink()
    found = [finding for finding in examine_session(notes.history.layout) if finding.severity == "damage"]
    assert [finding.problem.partition(" by ")[0] for finding in found] == ["missing, but referenced"]
    partial = import_recording(home, "partial", leave_out=("api-request-blob", "api-request-shape"))
    with daypack.open_session(partial, home=home, create=False) as session:
        assert any(event.type == OBSERVED for event in session.events())
        assert not [finding for finding in examine_session(session.history.layout) if finding.severity == "damage"]


def test_a_backup_brings_requests_back(notes: Session, home: str, tmp_path: Path) -> None:
    wire = load_recording().wire
    assert assert_rebuilt(notes, wire) == 9
    back_up(place(home), BackupRequest(), str(tmp_path / "backup.tar"))
    restore(str(tmp_path / "other"), str(tmp_path / "backup.tar"), RestoreRequest())
    with daypack.open_session("notes", home=str(tmp_path / "other"), create=False) as restored:
        assert assert_rebuilt(restored, wire) == 9
