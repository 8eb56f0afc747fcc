"""For any session and any policy, no reachable file is removed and every turn replays."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.scenes import close_all, logs, outputs, stage, turn_events
from upkeep.gc.collectable import (
    DAY,
    HOUR,
    LARGE,
    NOW,
    layout_path,
    make_plan,
    refer,
    removal_names,
    store_blob,
    swap_out,
    tree,
    write_temporary_file,
)

from daypack.derived import dedup
from daypack.session import Session
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.types.context import ContextEnvelope
from daypack.types.records import Ref
from daypack.upkeep.gc.apply import apply
from daypack.upkeep.gc.policy import Policy
from daypack.upkeep.rebuild import rebuild

TEXTS = (LARGE, "Another output, quite as long as the first one was. " * 60, "No message contains this. " * 200)
_NAME = re.compile(r"sha256[-:]([0-9a-f]{64})")

numbers = st.integers(0, 7)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), numbers),
        st.tuples(st.just("output"), numbers),
        st.tuples(st.just("turn"), st.sampled_from(["model", "reviewer", "user"])),
        st.tuples(st.just("turn naming"), numbers),
        st.tuples(st.just("review naming"), numbers),
        st.tuples(st.just("pin"), numbers),
        st.tuples(st.just("child"), numbers),
        st.tuples(st.just("child naming"), numbers),
        st.tuples(st.just("swap"), numbers),
        st.tuples(st.just("dedup"), numbers),
        st.tuples(st.just("blob"), numbers),
        st.tuples(st.just("refs"), numbers),
        st.tuples(st.just("envelope"), numbers),
        st.tuples(st.just("leftover"), numbers),
    ),
    max_size=10,
)
# Every session starts with collectable files; the random steps add references to some of them.
FIRST_STEPS = (
    ("output", 0),
    ("output", 0),
    ("say", 1),
    ("dedup", 0),
    ("swap", 0),
    ("swap", 1),
    ("swap", 2),
    ("blob", 0),
    ("blob", 1),
)
policies = st.builds(
    Policy,
    pack_ttl_seconds=st.sampled_from([0, DAY, 10**9]),
    swap_ttl_seconds=st.sampled_from([0, 30 * DAY]),
    dedup_min_refs=st.sampled_from([1, 1, 0, 2, 3]),
    keep_messages=st.booleans(),
    keep_events=st.booleans(),
)


class Steps:
    """Performs the steps; numbers choose among the existing chunks and blobs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = ["sha256-" + "0" * 64]

    def name(self, number: int) -> str:
        return self.names[number % len(self.names)]

    def do(self, step: str, given: Any) -> None:
        getattr(self, step.replace(" ", "_"))(given)

    def say(self, number: int) -> None:
        self.session.append("user", f"Question {number} about the harbour and the glacier.")

    def output(self, number: int) -> None:
        call = f"call-{len(self.session.messages())}"
        self.session.append("assistant", "", tool_calls=[{"id": call, "name": "bash", "arguments": "{}"}])
        self.session.append("tool", TEXTS[number % 2], tool_call_id=call)

    def turn(self, target: str) -> None:
        self.session.prepare(target=target)

    def turn_naming(self, number: int) -> None:
        self.session.prepare(items=[{"context_kind": "manual_note", "content": f"It was in {self.name(number)}"}])

    def review_naming(self, number: int) -> None:
        note = {"context_kind": "manual_note", "content": f"It was in {self.name(number)}"}
        self.session.prepare(target="reviewer", items=[note])

    def pin(self, number: int) -> None:
        self.session.pin(f"p{number}", f"Mind swap:{self.name(number)} " + "and more " * 500 * (number % 2))

    def child(self, number: int) -> None:
        refs = [Ref("r1", f"context/swap/chunk/{self.name(number)}", "swap", "x")]
        self.session.put_child(f"c{number % 3}", handoff="Look.", result=f"Seen {number}." * (number + 1), refs=refs)

    def child_naming(self, number: int) -> None:
        refer(self.session, f"context/child/c{number % 3}/result.md")

    def swap(self, number: int) -> None:
        last = len(self.session.messages())
        self.names.append(swap_out(self.session, 1 + number % last, last).name)

    def dedup(self, _: int) -> None:
        dedup.refresh(self.session.history)
        self.names += [record.hash for record in dedup.read_index(self.session.history)]

    def blob(self, number: int) -> None:
        self.names.append(store_blob(self.session, TEXTS[2] + str(number), ("messages:1", "tool:x")).name)

    def refs(self, number: int) -> None:
        refer(self.session, "notes.txt", hash=self.name(number).replace("-", ":"))

    def leftover(self, number: int) -> None:
        write_temporary_file(self.session.path / ("blob" if number % 2 else "context"), f"x{number}")

    def envelope(self, number: int) -> None:
        fields: dict[str, Any] = {"scope": "handoff", "lifecycle": "available", "created_at": "2026-01-01T00:00:00Z"}
        document = ContextEnvelope(context_id=f"ctx-{number}", artifact_refs=(self.name(number),), **fields)
        data = msgspec.json.encode(document)
        self.session.append_event(IMPORTED, keep_envelope(self.session.history, data, read_envelope(data)))


def referring_text(session: Session, *, without_child: str = "") -> str:
    """Return all text that may contain references, optionally without the files of one child."""
    top = session.path
    names = ("pack.json", "pack.md", "refs.jsonl", "pinned/*", "child/*/*")
    paths = [path for name in names for path in top.glob(f"context/{name}") if path.is_file()]
    texts = [path.read_text() for path in paths if not without_child or path.parent.name != without_child]
    newest = {event.data["target"]: event.id for event in turn_events(session)}
    texts += [session.replay(event).pack_md for event in newest.values()]
    imported = [event.data["digest"] for event in session.events() if event.type == IMPORTED]
    texts += [(top / "blob" / digest.replace(":", "-")).read_text() for digest in imported]
    return "\n".join(texts)


def set_ages(session: Session, ages: list[int]) -> None:
    """Assign the ages to the derived files, cycling through them."""
    files = [path for path in sorted((session.path / "context").rglob("*")) if path.is_file()]
    for number, path in enumerate(files):
        age = ages[number % len(ages)]
        os.utime(path, (NOW - age, NOW - age))


@pytest.mark.requirement("T8", "X28", "X30", "S4-GC0", "S4-GC6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps,
    policy=policies,
    ages=st.lists(st.sampled_from([40 * DAY, 40 * DAY, 40 * DAY, 0, HOUR]), min_size=1, max_size=5),
    children=st.booleans(),
)
def test_nothing_reachable_is_removed_and_every_turn_replays(
    steps: list[tuple[str, Any]], policy: Policy, ages: list[int], *, children: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = stage(str(Path(folder) / "home"))
        try:
            session.append("user", "How deep is the harbour?")
            performer = Steps(session)
            for step, given_value in (*FIRST_STEPS, *steps):
                performer.do(step, given_value)
            set_ages(session, ages)
            check(session, policy, children=children)
        finally:
            close_all()


def check(session: Session, policy: Policy, *, children: bool) -> None:
    before, written = tree(session), logs(session)
    named = {f"sha256-{digits}" for digits in _NAME.findall(referring_text(session))}
    children_named = {f"c{at}": f"child/c{at}/" in referring_text(session, without_child=f"c{at}") for at in range(3)}
    shown = {event.id: outputs(session.replay(event.id)) for event in turn_events(session)}
    planned = make_plan(session, policy, children=children)
    assert planned.missing == ()
    applied = apply(session.history, planned)
    assert {removal.path for removal in applied.removed} == {removal.path for removal in planned.removals}
    after = tree(session)
    removed = set(before) - set(after)
    for path in removed:
        name = os.path.basename(path)
        least = policy.dedup_min_refs if path.startswith("context/dedup/") else 1
        assert name not in named or least > 1, path
        if path.startswith("context/child/"):
            assert children
            assert not children_named[path.split("/")[2]]
    allowed = ("context/pack.", "context/swap/chunk/", "context/dedup/blob/", "context/child/")
    assert all(path.startswith(allowed) or ".tmp-" in path for path in removed)
    assert logs(session)[0] == written[0]
    assert logs(session)[1].startswith(written[1])
    assert {event: outputs(session.replay(event)) for event in shown} == shown
    assert apply(session.history, planned).removed == ()
    assert make_plan(session, policy, children=children).missing == ()
    built = rebuild(session.history, session.turns)
    assert built.problem is None
    assert "context/pack.json" not in before or layout_path(session, "pack").read_bytes() == before["context/pack.json"]
    assert removal_names(make_plan(session, Policy(10**9, 10**9, 0))) <= {
        os.path.basename(path) for path in after if ".tmp-" in path
    }


@pytest.mark.requirement("S4-GC6")
def test_a_child_that_an_earlier_turn_wrote_into_the_tail_is_still_referenced(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi")
    session.prepare(target="user")
    session.put_child("c0", handoff="Look.", result="Seen.")
    session.prepare(target="user")  # writes the result into the tail of the epoch
    session.prepare(target="user")  # only carries it
    set_ages(session, [40 * DAY])
    check(
        session, Policy(pack_ttl_seconds=0, swap_ttl_seconds=0, keep_messages=False, keep_events=False), children=True
    )
    assert (session.path / "context" / "child" / "c0" / "result.md").exists()
