"""A real small model is given the instructions: whatever it answers is shown, explained, and loses no byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_model import find_small_model
from turn.snapshot_replies import ask, taken_in, talking

from daypack.derived.tiers import read_accepted
from daypack.llm.completers import open_completer
from daypack.llm.completion.port import Completer, Prompt
from daypack.protocol import SEPARATOR, parse
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.types.history import Message

# The stamp is copied by the grammar; words, decay and content are the model's own.
GRAMMAR = r"""root ::= words "<<<CONTEXT>>>{\"version\":2.3,\"runtime\":STAMP,\"memory\":{\"core\":[" block "]" others
words ::= [A-Z] [a-z ]{8,24} "."
block ::= "{\"id\":\"core-001\",\"type\":\"identity\",\"decay\":0." [0-3] ",\"confidence\":0." [7-9] rest
rest ::= ",\"round\":1,\"tags\":[\"user\"],\"content\":\"" [A-Z] [A-Za-z ]{4,24} ".\"}"
others ::= ",\"working\":[],\"ephemeral\":[]},\"capabilities\":[],\"active_task\":\"\"}"
"""


@pytest.fixture(scope="module")
def model() -> Iterator[Completer]:
    completer = open_completer(f"llama:{find_small_model()}?window=2048")
    assert completer is not None
    yield completer
    completer.close()


def answered(model: Completer, turn: Turn, *, max_tokens: int = 24, grammar: str | None = None) -> str:
    """What the model says to a turn as it was rendered."""
    first, *rest = turn.messages("openai")
    said = "\n\n".join(str(one["content"]) for one in rest)
    assert SEPARATOR in said
    return model.complete(Prompt(str(first["content"]), said, max_tokens=max_tokens, grammar=grammar)).text


def check(session: Session, turn: Turn, answer: str) -> Message:
    """Accept an answer: nothing of it is lost, and what became of it is told."""
    message = session.accept(answer)
    parsed = parse(answer, expected=turn.expected)
    at = parsed.cut[0] if parsed.cut else len(answer)
    assert message.text == parsed.text
    assert message.text[:at] + parsed.raw + message.text[at:] == answer
    accepted = read_accepted(taken_in(session)[-1].data)
    assert accepted.message == message.id
    assert accepted.snapshot is not None or accepted.violation_counts
    assert session.tail(1) == (message,)
    return message


def test_whatever_it_answers_to_the_instructions_is_shown_and_explained(home: str, model: Completer) -> None:
    session = talking(home)
    turn = ask(session, "My name is Ada. Remember that.")
    check(session, turn, answered(model, turn))
    assert ask(session, "Who am I?").event_id


def test_what_it_writes_in_the_form_is_remembered_and_a_part_of_it_is_told(home: str, model: Completer) -> None:
    session = talking(home)
    own = Path(session.history.layout.prompts) / "protocol.md"  # shorter, so that the model has read it sooner
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("End with <<<CONTEXT>>> and JSON: version, runtime, memory.", encoding="utf-8")
    turn = ask(session, "My name is Ada. Remember that.")
    assert turn.expected
    runtime = turn.expected["runtime"]
    copied = (
        f'{{\\"round\\":{runtime["round"]},\\"workspace\\":\\"\\",\\"datetime\\":\\"{runtime["datetime"]}\\",'
        f'\\"startup_at\\":{runtime["startup_at"]}}}'
    )
    # More tokens than the grammar has characters: it comes to its end whatever the model chooses.
    answer = answered(model, turn, max_tokens=500, grammar=GRAMMAR.replace("STAMP", copied))
    assert len(answer) < 500
    message = check(session, turn, answer)
    assert message.text == answer.partition(SEPARATOR)[0]
    assert read_accepted(taken_in(session)[-1].data).violation_counts == {}
    [kept] = session.tiers.core
    assert kept.content in answer
    asked = ask(session, "Who am I?")
    [note] = [message for message in asked.assembly.given.messages if not message.id]
    assert " ".join(kept.content.split()) in note.text

    cut = talking(home, "cut")
    turn = ask(cut, "My name is Ada. Remember that.")
    assert check(cut, turn, answer[:-30]).text == message.text
    assert cut.tiers.violation_counts["S0-R4"] == 1
    assert cut.tiers.core == ()
