"""A compaction is a value made of raw history: read slab by slab, weighed, valid, smaller, and nothing is written."""

import pytest
from turn.compacting import TOPICS, scene, step, tree
from turn.scenes import MARKER, SECRET, close_all, release, stage

from daypack.derived.compaction import compaction as module
from daypack.derived.compaction.compaction import CompactionRequest, compact
from daypack.derived.records import Folded, document
from daypack.derived.template import MAX_BULLETS, problems, render
from daypack.errors import DamageWarning, ModelFailed, NothingToCompact
from daypack.llm.completion.port import Completion, Prompt
from daypack.session import Session
from daypack.text.tokens import counter_named
from daypack.types.compaction import Compaction

TASK = "Fix the {topic} of part 11, whose lamp should burn 14 hours."  # the newest request of the scene, in other words
FILLED = (
    f"# Context\n\n## Task\n{TASK.format(topic=TOPICS[11 % len(TOPICS)])}\n\n## Decisions\n\n"
    "## Facts\n- Its lamp should burn 4 hours.\n\n"
)


@pytest.fixture(autouse=True)
def _closed_sessions():
    yield
    close_all()


class Scripted:
    """A model that answers as it was told, or fails."""

    name = "scripted"
    window_tokens = 8000

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []

    def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, "stop", self.name)

    def close(self) -> None:
        """Nothing is open."""


def run(session: Session, folded: Folded | None = None, completer: Scripted | None = None, **ask: object) -> Compaction:
    given = {"start": 1, "through": len(session.messages()), **ask}
    counter = counter_named(session.history.tokenizer)
    return compact(session.history, folded or Folded(), CompactionRequest(**given), counter, completer)  # type: ignore[arg-type]


def test_nothing_is_written_and_the_same_range_gives_the_same_value(home: str) -> None:
    session = scene(home)
    before = tree(session)
    first, second = run(session), run(session)
    assert first == second
    assert tree(session) == before
    assert first.id == ""
    assert first.source == f"messages:1-{len(session.messages())}"


@pytest.mark.requirement("S1-K1", "S1-P2.3", "G12")
def test_the_result_is_valid_smaller_and_word_for_word_what_was_said(home: str) -> None:
    session = scene(home)
    made = run(session)
    text = render(document(made.records))
    assert problems(text) == []
    assert made.after_tokens == counter_named(session.history.tokenizer).count(text) < made.before_tokens
    said = " ".join(" ".join(message.text.split()) for message in session.messages())
    records = made.records
    assert records.decisions
    assert records.facts
    for words in [one.decision for one in records.decisions] + [one.text for one in records.facts]:
        assert words in said
    for one in (*records.decisions, *records.facts):
        seq = int(one.source.removeprefix("messages:"))
        assert 1 <= seq <= len(session.messages())


def test_a_result_that_would_not_be_smaller_is_refused(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi.")
    with pytest.raises(NothingToCompact, match="would replace"):
        run(session)


def test_a_result_that_is_too_large_gives_up_its_lightest_bullets_first(home: str) -> None:
    session = stage(home)
    for number in range(6):
        session.append("user", f"We decided to paint the {'abcdef'[number]}door in shade {number} of grey.")
    made = run(session)
    assert made.after_tokens < made.before_tokens
    assert any(one.reason == "over_limit" for one in made.losses)


def test_coverage_says_what_was_read_by_whom(home: str) -> None:
    session = scene(home)
    made = run(session)
    count = len(session.messages())
    assert made.coverage["messages"] == made.coverage["read"] == count
    assert made.coverage["files"] == 12
    assert "read_by_model" not in made.coverage
    with_model = run(session, None, Scripted(FILLED))
    assert with_model.coverage["read_by_model"] == count
    assert with_model.coverage["bullets_by_model"] == 2
    assert (with_model.model, with_model.method) == ("scripted", "structured_digest")


def test_a_model_goes_first_and_what_it_leaves_empty_is_filled_without_it(home: str) -> None:
    session = scene(home)
    plain, made = run(session), run(session, None, Scripted(FILLED))
    assert made.records.task is not None
    assert made.records.task.text == TASK.format(topic=TOPICS[11 % len(TOPICS)])
    assert made.records.facts[0].text == "Its lamp should burn 4 hours."
    assert made.records.decisions == plain.records.decisions
    assert len(made.records.facts) <= MAX_BULLETS
    assert made.output == {"texts": [FILLED]}


@pytest.mark.requirement("S1-C2")
@pytest.mark.parametrize(
    "task",
    [
        "Fix the glacier of part 1: its lamp should burn 4 hours.",  # an older request, word for word
        "I read the {topic} first.",  # what the agent said
        "We decided to keep the {topic} lamp in src/{topic}_11.py because it is cheap.",
        "Fix the {topic}.",  # the request without what makes it exact
        "Fix the {topic} of part 11.",
        "Part 11 of the {topic}: fix its lamp, which should burn 14 hours.",  # the same words, something else asked for
        "Fixed the {topic} of part 11: its lamp should burn 14 hours.",
        "Fix the {topic} of part 11: its lamp should burn 14 hours, then delete it.",
        "Stop: fix the {topic} of part 11: its lamp should burn 14 hours.",
        "Should we fix the {topic} of part 11, whose lamp should burn 14 hours?",
    ],
)
def test_a_models_task_that_is_not_the_newest_request_does_not_replace_the_users_words(home: str, task: str) -> None:
    session = scene(home)
    plain = run(session)
    said = task.format(topic=TOPICS[11 % len(TOPICS)])
    made = run(session, None, Scripted(f"# Context\n\n## Task\n{said}\n\n## Facts\n- Its lamp should burn 4 hours.\n"))
    assert plain.records.task is not None
    assert made.records.task == plain.records.task
    assert made.records.facts[0].text == "Its lamp should burn 4 hours."
    [loss] = [one for one in made.losses if one.what == said]
    assert (loss.reason, loss.detail) == ("ungrounded", "not what the user asked for")


@pytest.mark.requirement("S1-C2")
@pytest.mark.parametrize(
    ("task", "taken"),
    [
        ("Move the invoices from the inbox to the archive, and rename them by date", True),
        ("Move the invoices from the archive to the inbox and rename them by date.", False),
        ("Move the invoices from the inbox to the archive.", False),
        ("Move the invoices from the inbox to the archive and rename them by customer.", False),
    ],
)
def test_a_models_task_reverses_omits_and_adds_nothing(home: str, task: str, taken: bool) -> None:
    session = stage(home)
    filler = "The weather over the bay has been changing a lot during these last long and quiet weeks of the autumn. "
    asked = "Move the invoices from the inbox to the archive and rename them by date."
    session.append("user", asked)
    session.append("assistant", f"The customer has the archive. {filler * 12}")
    made = run(session, None, Scripted(f"# Context\n\n## Task\n{task}\n")).records.task
    assert made is not None
    assert made.text == (task if taken else asked)


@pytest.mark.requirement("S1-C2")
def test_where_nobody_asks_for_anything_the_users_own_newest_words_may_be_the_task(home: str) -> None:
    session = stage(home)
    filler = "The weather over the bay has been changing a lot during these last long and quiet weeks of the autumn. "
    session.append("assistant", f"The orchard needs more water than the glacier gives. {filler * 8}")
    session.append("user", f"The orchard catalogue is about pears from the north coast. {filler * 8}")
    session.append("assistant", f"I see. {filler * 4}")
    own, other = "The orchard catalogue is about pears from the north coast.", "The orchard needs more water."
    with_own = run(session, None, Scripted(f"# Context\n\n## Task\n{own}\n"))
    assert with_own.records.task is not None
    assert with_own.records.task.text == own
    with_other = run(session, None, Scripted(f"# Context\n\n## Task\n{other}\n"))
    assert with_other.records.task == run(session).records.task


@pytest.mark.requirement("X34", "G12")
def test_a_dead_model_leaves_what_no_model_makes_and_a_loss(home: str) -> None:
    session = scene(home)
    failed = ModelFailed("it does not answer", operation="complete", place="there", hint="try later")
    made = run(session, None, Scripted(failed))
    assert made.records == run(session).records
    assert made.method == "extractive_summary"
    told = [one.reason for one in made.losses if not one.sentences]
    assert [reason for reason in told if reason not in ("over_limit", "tool_output")] == ["unread"]
    assert made.output is None


def test_a_range_larger_than_a_slab_is_read_whole(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = scene(home, steps=30)
    whole = run(session)
    monkeypatch.setattr(module, "_SLAB_BYTES", 3000)
    made = run(session)
    assert made.coverage["read"] == len(session.messages())
    assert {one.path for one in made.refs} == {one.path for one in whole.refs}
    assert len(made.refs) == 30
    assert made.swapped == whole.swapped
    assert problems(render(document(made.records))) == []


def test_open_work_and_task_of_an_earlier_slab_are_not_forgotten(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage(home)
    session.append("user", "Please move the nightly export to object storage.")
    session.append("user", "TODO: add an alert for late exports to jobs/alerts.py.")
    session.append("assistant", "Understood.")
    for _ in range(30):
        session.append("assistant", "The upload is still running and nothing else happened so far.")
    monkeypatch.setattr(module, "_SLAB_BYTES", 2000)
    made = run(session)
    assert made.records.task is not None
    assert "nightly export" in made.records.task.text
    assert any("alert for late exports" in one.text for one in made.records.todos)


def test_secrets_are_in_no_part_of_a_compaction(home: str) -> None:
    session = stage(home)
    session.put_child("scout", result=f"The token is {SECRET}.")
    session.append("user", f"We decided to use the token {SECRET} for the upload.")
    call = {"id": "a", "name": "read_file", "arguments": f'{{"path": "conf/{SECRET}.txt"}}'}
    session.append("assistant", f"Reading with {SECRET}.", tool_calls=[call])
    session.append("tool", f"token = {SECRET}\n" * 200, tool_call_id="a")
    step(session, 1)
    session.append("user", "And now?")
    completer = Scripted(f"# Context\n\n## Task\nUse the token {MARKER} for the upload.\n")
    made = run(session, None, completer)
    for name in Compaction.__struct_fields__:
        assert SECRET not in repr(getattr(made, name)), name
    assert MARKER in repr(made.records)
    assert SECRET not in completer.prompts[0].user


def test_a_foreign_summary_and_recalled_text_reach_neither_model_nor_records(home: str) -> None:
    session = scene(home, steps=4)
    session.append("user", "This session is continued: ZEBRAFISH is in /srv/zebra.", meta={"foreign_summary": True})
    session.append("assistant", "", tool_calls=[{"id": "r", "name": "recall", "arguments": "{}"}])
    answer = session.call("recall", {"id": f"msg-{len(session.messages()) - 1}"})
    assert "ZEBRAFISH" in answer
    session.append("tool", answer, tool_call_id="r")
    completer = Scripted(FILLED)
    made = run(session, None, completer)
    assert "ZEBRAFISH" not in completer.prompts[0].user
    assert "ZEBRAFISH" not in repr(made)


def test_children_are_merged_as_refs(home: str) -> None:
    session = scene(home)
    session.put_child("scout", handoff="Look.", result="# Found\nThe lamp is in the cellar.")
    [ref] = [one for one in run(session).refs if one.kind == "child_result"]
    assert ref.path == "context/child/scout/result.md"
    assert "scout" in ref.summary


def test_damaged_messages_are_counted_and_passed_over(home: str) -> None:
    session = scene(home)
    release(session)
    path = session.path / "messages.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"x" * (len(lines[4]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.warns(DamageWarning):
        made = run(session)
    assert made.coverage["damaged"] == 1
    assert made.coverage["read"] == made.coverage["messages"] - 1
