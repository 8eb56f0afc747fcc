"""Records keep their ids and their words; only what contradicts a record replaces it, and ten stay at most."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daypack
from daypack.derived.compaction.worth import weigh
from daypack.derived.readings import changes_value
from daypack.derived.records import (
    COMPACTED,
    INLINE_BYTES,
    UNDONE,
    Folded,
    document,
    fold,
    number_refs,
    store,
    update_records,
    without_lightest,
)
from daypack.derived.template import MAX_BULLETS, parse, render
from daypack.history.draft import draft_event
from daypack.session import Session
from daypack.types.compaction import Bullet, Compaction, Records, Section
from daypack.types.records import Decision, ErrorRecord, Fact, Ref, Summary, Todo


def compaction(records: Records, number: int = 1, refs: tuple[Ref, ...] = ()) -> Compaction:
    return Compaction(
        id=f"ev-{number}",
        source=f"messages:{10 * number - 9}-{10 * number}",
        through=10 * number,
        trigger="manual",
        method="extractive_summary",
        model="none",
        before_tokens=1000 * number,
        after_tokens=10,
        records=records,
        refs=refs,
    )


class Chain:
    """Compactions one on top of the other, as a session has them."""

    def __init__(self) -> None:
        self.folded = Folded()

    def add(self, *bullets: Bullet, finished: frozenset[str] = frozenset()) -> dict[str, str]:
        """Carry bullets over and return what the losses say: words -> reason."""
        update = update_records(self.folded, bullets, weigh, dict.fromkeys(finished, "done"))
        number = len(self.folded.accepted) + 1
        self.folded.accepted.append(compaction(update.records, number))
        for one in (*self.records.decisions, *self.records.facts, *self.records.todos, *self.records.errors):
            highest = self.folded.numbers.get(one.id[0], 0)
            self.folded.numbers[one.id[0]] = max(highest, int(one.id[1:]))
        return {one.what: one.reason for one in update.losses}

    @property
    def records(self) -> Records:
        return self.folded.records

    @property
    def facts(self) -> dict[str, str]:
        return {one.id: one.text for one in self.records.facts}


def fact(text: str, seq: int = 1, weight: float = 0.5) -> Bullet:
    return Bullet("facts", text, f"messages:{seq}", weight=weight)


@pytest.mark.requirement("X11", "X14")
def test_a_record_that_is_said_again_keeps_its_id_its_words_and_its_source() -> None:
    chain = Chain()
    chain.add(fact("The bucket is named exports-eu.", 3))
    chain.add(fact("the bucket  is named exports-eu", 40), fact("The region is eu-west.", 41))
    assert chain.facts == {"f1": "The bucket is named exports-eu.", "f2": "The region is eu-west."}
    assert chain.records.facts[0].source == "messages:3"


def test_what_nobody_says_again_is_carried_over_verbatim() -> None:
    chain = Chain()
    chain.add(
        Bullet("decisions", "We keep boto3.", "messages:1"),
        Bullet("errors", "TimeoutError in upload.", "messages:2"),
        Bullet("pending", "Add an alert.", "messages:4"),
        Bullet("task", "Move the export.", "messages:1"),
    )
    first = chain.records
    chain.add()
    assert chain.records == first
    chain.add(Bullet("errors", "TimeoutError in upload.", "messages:30", resolution="fixed by a retry"))
    [error] = chain.records.errors
    assert (error.id, error.error, error.source) == ("e1", "TimeoutError in upload.", "messages:2")
    assert error.resolution == "fixed by a retry"


def test_a_new_value_of_the_same_subject_replaces_the_former_and_that_is_told() -> None:
    chain = Chain()
    chain.add(fact("The port of the server is 8080."))
    losses = chain.add(fact("The port of the server is 9090."))
    assert chain.facts == {"f2": "The port of the server is 9090."}
    assert losses == {"The port of the server is 8080.": "superseded"}


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("The port of the server is 8080.", "The port of the server is not 8080."),
        ("Use the cache for all 3 tenants.", "Never use the cache for all 3 tenants."),
        ("The tests of the parser pass.", "The tests of the parser do not pass."),
        ("The nightly export is broken.", "The nightly export is fixed now."),
        ("All 12 tests pass.", "3 of 14 tests failed."),
        ("缓存端口是8080。", "缓存端口不是8080。"),
    ],
)
def test_two_records_that_contradict_each_other_are_never_kept_together(former: str, new: str) -> None:
    chain = Chain()
    chain.add(fact(former))
    assert chain.add(fact(new, 9)) == {former: "superseded"}
    assert list(chain.facts.values()) == [new]


def test_a_decision_that_rejects_what_was_chosen_replaces_it() -> None:
    chain = Chain()
    chain.add(Bullet("decisions", "Use SQLite for the index.", "messages:1"))
    chain.add(Bullet("decisions", "Use PostgreSQL instead of SQLite.", "messages:9"))
    assert [one.decision for one in chain.records.decisions] == ["Use PostgreSQL instead of SQLite."]


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("The build runs on Linux.", "The build runs on Windows."),
        ("The limit is 5.", "The timeout is 5."),
        ("Version 3 is out.", "8 is out."),
        ("Phase 1 gets tests in the parser.", "Phase 2 gets tests in the lexer."),
        ("The nightly export is broken.", "The weekly export is fixed now."),
    ],
)
def test_what_merely_looks_alike_is_never_merged(former: str, new: str) -> None:
    chain = Chain()
    chain.add(fact(former))
    assert chain.add(fact(new)) == {}
    assert list(chain.facts.values()) == [former, new]


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("Server 1 listens on port 8080.", "Server 2 listens on port 8081."),
        ("The retry limit of src/module1.py is 4.", "The retry limit of src/module2.py is 5."),
        ("Ticket 4711 is about the login page.", "Ticket 4712 is about the login page."),
    ],
)
def test_values_of_different_subjects_that_are_told_apart_by_a_number_all_stay(former: str, new: str) -> None:
    chain = Chain()
    chain.add(fact(former))
    chain.add(fact(new))
    assert list(chain.facts.values()) == [former, new]


def test_a_record_that_is_retired_or_cured_is_told() -> None:
    chain = Chain()
    chain.add(fact("`run` is unused."), Bullet("errors", "TypeError: x", "messages:2", keys=("run make",)))
    update = update_records(chain.folded, [], weigh, {"f1": "outdated"}, {"e1": "editing a.py"})
    assert [(one.what, one.reason) for one in update.losses] == [("`run` is unused.", "outdated")]
    assert [(one.resolution, one.keys) for one in update.records.errors] == [("editing a.py", ())]


def test_a_newer_command_for_the_same_purpose_replaces_the_former() -> None:
    chain = Chain()
    chain.add(Bullet("facts", "make test", "messages:1", purpose="runs the tests"))
    chain.add(Bullet("facts", "make check", "messages:9", purpose="runs the tests"), fact("make is slow."))
    assert document(chain.records).facts == ("make check — runs the tests", "make is slow.")


def test_an_error_is_shown_with_its_cause_and_its_cure_as_far_as_they_fit() -> None:
    cured = ErrorRecord("e1", "TypeError: x", "messages:1", "editing a.py", cause="x is None")
    long = msgspec.structs.replace(cured, cause="x is None " * 60)
    records = Records(errors=(cured, long, msgspec.structs.replace(cured, resolution=None)))
    assert document(records).errors == (
        "TypeError: x — cause: x is None; resolved by editing a.py",
        "TypeError: x — resolved by editing a.py",
        "TypeError: x",
    )


def test_open_work_that_is_done_leaves_and_its_id_is_not_given_again() -> None:
    chain = Chain()
    chain.add(Bullet("pending", "Add an alert.", "messages:4"), Bullet("pending", "Write the docs.", "messages:5"))
    chain.add(finished=frozenset({"t1"}))
    assert [(one.id, one.text) for one in chain.records.todos] == [("t2", "Write the docs.")]
    chain.add(Bullet("pending", "Clean up.", "messages:9"), finished=frozenset({"t2"}))
    assert [one.id for one in chain.records.todos] == ["t3"]


@pytest.mark.requirement("S1-P2.4")
def test_ten_of_each_stay_and_the_lightest_that_gave_way_are_told() -> None:
    chain = Chain()
    losses: dict[str, str] = {}
    for number in range(30):
        words = ("ant", "bee", "cat", "dog", "eel", "fox")[number % 6] * (number + 1)
        losses |= chain.add(fact(f"The {words} sleeps.", number + 1, 0.9 if number == 0 else 0.5))
        assert len(chain.records.facts) <= MAX_BULLETS
    assert set(losses.values()) == {"displaced"}
    assert len(losses) == 20
    numbers = [int(name[1:]) for name in chain.facts]
    assert numbers == sorted(numbers)
    assert max(numbers) == 30
    assert len(render(document(chain.records))) < 2000


def test_the_newest_task_counts_and_the_same_task_keeps_its_source() -> None:
    chain = Chain()
    chain.add(Bullet("task", "Move the export.", "messages:1"))
    chain.add(Bullet("task", "Move the  export", "messages:20"))
    assert chain.records.task == Summary("Move the export.", "messages:1")
    chain.add(Bullet("task", "Write the docs.", "messages:40"))
    assert chain.records.task == Summary("Write the docs.", "messages:40")
    chain.add()
    assert chain.records.task == Summary("Write the docs.", "messages:40")


texts = st.lists(
    st.sampled_from(["alpha", "beta", "not", "7", "9", "is", "the", "of", "src/a.py"]), min_size=1, max_size=5
)
SECTIONS: tuple[Section, ...] = ("decisions", "facts", "pending", "errors")


def made(section: Section, words: list[str]) -> Bullet:
    return Bullet(section, " ".join(words), "messages:1", weight=0.4)


bullets = st.builds(made, st.sampled_from(SECTIONS), texts)


@given(st.lists(st.lists(bullets, max_size=14), min_size=1, max_size=6))
def test_whatever_is_carried_ids_are_of_one_text_and_no_two_records_say_the_same(runs: list[list[Bullet]]) -> None:
    chain = Chain()
    meant: dict[str, str] = {}
    for run in runs:
        before = chain.records
        losses = chain.add(*run)
        records = chain.records
        for name in ("decisions", "facts", "todos", "errors"):
            ones = getattr(records, name)
            said = [getattr(one, "text", None) or getattr(one, "decision", None) or one.error for one in ones]
            assert len(ones) <= MAX_BULLETS
            assert len(set(said)) == len(said)
            for one, words in zip(ones, said, strict=True):
                assert meant.setdefault(one.id, words) == words
            # What stood and does not stand any more is told.
            gone = {one.id for one in getattr(before, name)} - {one.id for one in ones}
            assert all(meant[identity] in losses for identity in gone)


@pytest.mark.parametrize(
    ("former", "later", "expected"),
    [
        ("The port is 8080.", "the PORT is 9090", True),
        ("The port is 8080.", "The port is 8080.", False),
        ("Ticket 4711 is open.", "Ticket 4712 is open.", False),
        ("Server 1 listens on port 80.", "Server 2 listens on port 81.", False),
        ("The port is 8080.", "The port is now 9090.", False),
        ("The port is open.", "The port is 9090.", False),
        ("Port 8080", "Port 9090", False),
    ],
)
def test_a_change_is_another_value_of_the_same_thing(former: str, later: str, *, expected: bool) -> None:
    assert changes_value(former, later) is expected
    assert changes_value(later, former) is expected


def test_giving_way_to_size_takes_the_lightest_facts_first_and_decisions_last() -> None:
    records = Records(
        decisions=(Decision("d1", "Keep it.", "messages:1", 0.1),),
        facts=(Fact("f1", "Heavy.", "messages:1", 0.9), Fact("f2", "Light.", "messages:2", 0.2)),
        todos=(Todo("t1", "Do it.", "messages:3"),),
        errors=(ErrorRecord("e1", "It broke.", "messages:4"),),
    )
    gone: list[str] = []
    while True:
        records, loss = without_lightest(records)
        if loss is None:
            break
        gone.append(loss.what)
    assert gone == ["Light.", "Heavy.", "It broke.", "Do it.", "Keep it."]
    assert records == Records()


def test_a_path_keeps_the_id_of_its_ref() -> None:
    folded = Folded(refs={"a.py": Ref("r3", "a.py", "file", "read")}, numbers={"r": 7})
    found = [Ref("", "b.py", "file", "read"), Ref("", "a.py", "file", "written"), Ref("", "c.py", "file", "read")]
    told = number_refs(folded, found, lambda _, new: new)
    assert [(one.id, one.path) for one in told] == [("r8", "b.py"), ("r3", "a.py"), ("r9", "c.py")]


# Events


def append(session: Session, records: Records, number: int) -> str:
    data = store(session.history, compaction(records, number, (Ref(f"r{number}", f"{number}.py", "file", "read"),)))
    return session.history.append_event(draft_event(COMPACTED, data)).id


def test_the_fold_of_the_events_is_what_was_recorded_and_undone(session: Session) -> None:
    first = Records(facts=(Fact("f1", "One.", "messages:1"),))
    second = Records(facts=(Fact("f1", "One.", "messages:1", compaction="ev-1"), Fact("f2", "Two.", "messages:11")))
    names = [append(session, first, 1), append(session, second, 2)]
    folded = fold(session.history, session.events())
    assert [one.id for one in folded.accepted] == names
    assert [(one.id, one.compaction) for one in folded.records.facts] == [("f1", "ev-1"), ("f2", names[1])]
    assert (folded.through, list(folded.refs), folded.numbers) == (20, ["1.py", "2.py"], {"f": 2, "r": 2})
    session.append_event(UNDONE, {"compaction": names[1]})
    session.append_event(UNDONE, {"compaction": "ev-777"})
    session.append_event(COMPACTED, {"source": 5})  # of another writer
    session.append_event(COMPACTED, {})
    folded = fold(session.history, session.events())
    assert [one.id for one in folded.accepted] == names[:1]
    assert (folded.undone, folded.through, list(folded.refs)) == ([names[1]], 10, ["1.py"])
    assert folded.numbers == {"f": 2, "r": 2}  # no id is given again


def test_folding_on_gives_the_same_as_folding_at_once(session: Session) -> None:
    append(session, Records(facts=(Fact("f1", "One.", "messages:1"),)), 1)
    half = fold(session.history, session.events())
    whole_before = msgspec.json.encode(half)
    append(session, Records(facts=(Fact("f2", "Two.", "messages:2"),)), 2)
    session.append_event(UNDONE, {"compaction": "ev-1"})
    assert fold(session.history, session.events(2), half) == fold(session.history, session.events())
    assert msgspec.json.encode(half) == whole_before


def test_a_large_compaction_is_captured_and_reads_back_the_same(session: Session, tmp_path: Path) -> None:
    facts = tuple(Fact(f"f{at}", f"Number {at}: " + "x" * 9000, f"messages:{at}") for at in range(1, 11))
    name = append(session, Records(facts=facts), 1)
    [event] = session.events()
    assert "records" not in event.data
    assert len(msgspec.json.encode(event)) < INLINE_BYTES
    session.close()
    with daypack.open_session("work", home=session.path.parents[5], durability="os") as again:
        folded = fold(again.history, again.events())
    assert [(one.text, one.compaction) for one in folded.records.facts] == [(one.text, name) for one in facts]


@pytest.mark.requirement("S4-CP11")
def test_the_sample_records_are_read_and_written_back_unchanged() -> None:
    facts = [
        (
            b'{"id":"f1","text":"CortexFS root contains status, bin, model, agent, tool, home, shared.",'
            b'"source":"messages:12-18"}'
        ),
        b'{"id":"f2","text":"Model ABI must not expose provider API formats.","source":"messages:80-96"}',
    ]
    decisions = [
        (
            b'{"id":"d1","decision":"DESIGN.md is an index; normative details live under spec/.",'
            b'"source":"messages:200-230"}'
        ),
        b'{"id":"d2","decision":"Child agents are owned and die with the parent by default.","source":"user:latest"}',
    ]
    for line in facts:
        assert msgspec.json.encode(msgspec.json.decode(line, type=Fact)) == line
    for line in decisions:
        assert msgspec.json.encode(msgspec.json.decode(line, type=Decision)) == line


def test_the_document_says_what_the_records_say() -> None:
    records = Records(
        Summary("Move it.", "messages:1"),
        (Decision("d1", "Keep boto3.", "messages:2"),),
        (Fact("f1", "The port is 80.", "messages:3"),),
        (Todo("t1", "Add an alert.", "messages:4"), Todo("t2", "Done already.", "messages:5", done=True)),
        (ErrorRecord("e1", "It broke.", "messages:6", "mended"), ErrorRecord("e2", "It burns.", "messages:7")),
    )
    doc = parse(render(document(records)))
    assert (doc.task, doc.decisions, doc.facts) == ("Move it.", ("Keep boto3.",), ("The port is 80.",))
    assert doc.pending == ("Add an alert.",)
    assert doc.errors == ("It broke — resolved by mended", "It burns.")
