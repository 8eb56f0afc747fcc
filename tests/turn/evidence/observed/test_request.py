"""Requests that are rebuilt one after the other share what they have in common, and nothing else."""

import itertools
from random import Random

import pytest

from daypack.session import Session
from daypack.turn.evidence.observed.digests import RequestDigest, around_messages
from daypack.turn.evidence.observed.request import RequestReader, open_observed
from daypack.turn.ledger import OBSERVED
from daypack.types.canonical import canonical
from daypack.types.digest import digest_bytes


def names_of(session: Session) -> list[str]:
    return [event.id for event in session.events() if event.type == OBSERVED]


def test_turns_are_the_same_in_whatever_order_they_are_read(notes: Session) -> None:
    names = names_of(notes)
    alone = {name: open_observed(notes.history, name).request for name in names}
    reader, order = RequestReader(notes.history), Random(7)
    for _ in range(5):
        order.shuffle(names)
        for name in names:
            turn = reader.open(name)
            turn.verify()
            assert turn.request == alone[name]


@pytest.mark.parametrize("broken", range(9))
def test_a_turn_that_does_not_verify_spoils_no_other(notes: Session, broken: int) -> None:
    names = names_of(notes)
    blob = open_observed(notes.history, names[broken]).record.shape
    path = notes.path / "blob" / f"sha256-{blob[7:]}"
    path.write_bytes(path.read_bytes() + b" ")
    reader = RequestReader(notes.history)
    alone = [open_observed(notes.history, name).verdict for name in names]
    assert [reader.open(name).verdict for name in names] == alone
    assert not alone[broken].verified


def test_the_digest_of_a_request_is_that_of_its_canonical_form() -> None:
    fields = {"betas": ["x"], "model": "opus", "tools": [], "zebra": 1.0, "mess": None}
    messages = [{"role": "user", "content": [{"type": "text", "text": f"{at}"}]} for at in range(6)]
    marked = [{**message, "mark": True} for message in messages]
    digest = RequestDigest()
    for count, marks in itertools.product((6, 2, 0, 4, 6), ((), (1,), (0, 3), (5,))):
        sent = [marked[at] if at in marks else message for at, message in enumerate(messages[:count])]
        found = digest.compute(
            around_messages(fields),
            [(f"{at}", canonical(message)) for at, message in enumerate(messages[:count])],
            {at: canonical(marked[at]) for at in marks if at < count},
        )
        assert found == digest_bytes(canonical({**fields, "messages": sent}))
