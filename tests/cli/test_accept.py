"""`daypack accept`: a reply comes in, the user's words are printed, and what became of the snapshot is told beside."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from turn.scenes import close_all, stage
from turn.snapshot_replies import ADA, ask, block, reply_to, section, talking

from daypack.cli.main import run
from daypack.errors import WriteFailed
from daypack.history.session import History
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.types.history import Event

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def talk(home: str) -> Session:
    return talking(home, "talk")


@pytest.fixture
def turn(talk: Session) -> Turn:
    return ask(talk)


def test_the_words_are_printed_and_the_snapshot_is_told_beside(command: Command, talk: Session, turn: Turn) -> None:
    reply = reply_to(turn, "Done ✅\n\n", core=[block()], working=[block("w", "Other.")])
    done = command("accept", "talk", stdin=reply.encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "Done ✅\n", "msg-2: a snapshot with 2 blocks\n")
    assert talk.tail(1)[0].text == "Done ✅\n\n"
    assert [one.content for one in talk.tiers.core] == [ADA]


def test_a_reply_is_read_from_a_file(command: Command, talk: Session, turn: Turn) -> None:
    Path("reply.txt").write_text(reply_to(turn, core=[block()]), encoding="utf-8")
    done = command("accept", "talk", "reply.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes.\n", "msg-2: a snapshot with 1 block\n")


def test_what_is_wrong_is_told_and_the_words_are_taken_all_the_same(
    command: Command, talk: Session, turn: Turn
) -> None:
    done = command("accept", "talk", stdin=b"Just words.")
    assert (done.returncode, done.stdout) == (0, "Just words.\n")
    assert done.stderr.splitlines() == [
        "msg-2: no usable snapshot",
        "  S0-R1  the reply has no context section",
        "  what these rules demand",
        "    S0-R1  a reply ends with a <<<CONTEXT>>> section",
    ]
    assert talk.tail(1)[0].text == "Just words."


def test_of_many_violations_the_first_are_told_and_the_others_counted(
    command: Command, talk: Session, turn: Turn
) -> None:
    reply = reply_to(turn, core=[5] * 40)
    lines = command("accept", "talk", stdin=reply.encode()).stderr.splitlines()
    assert lines[0] == "msg-2: a snapshot with 0 blocks"
    assert lines[1] == "  S0-R10  memory.core[0]: a block cannot be 5; it is refused"
    assert lines[33] == "  and 8 more"
    assert lines[34:] == [
        "  what these rules demand",
        "    S0-R10  a block has id, type, decay, confidence, round, tags and content",
    ]


def test_a_response_of_a_provider_is_read_with_its_usage(command: Command, talk: Session, turn: Turn) -> None:
    body = {
        "choices": [{"message": {"role": "assistant", "content": reply_to(turn, core=[block()])}}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 9},
    }
    done = command("accept", "talk", "--response", stdin=json.dumps(body).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes.\n", "msg-2: a snapshot with 1 block\n")
    usage = [event.data for event in talk.events() if event.type == "context.usage"]
    assert [(one["message"], one["turn"], one["input_tokens"]) for one in usage] == [("msg-2", turn.event_id, 30)]


def test_a_response_that_calls_tools_prints_no_words(command: Command, talk: Session, turn: Turn) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    done = command("accept", "talk", "--response", stdin=json.dumps(body).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "msg-2\n")
    assert talk.tiers.violation_counts == {}


def test_json_holds_the_message_and_what_became_of_its_snapshot(command: Command, talk: Session, turn: Turn) -> None:
    done = command("accept", "talk", "--json", stdin=reply_to(turn, core=[block()]).encode())
    found = json.loads(done.stdout)
    assert (found["message"]["id"], found["message"]["content"]) == ("msg-2", "Yes.")
    assert found["protocol"]["message"] == "msg-2"
    assert found["protocol"]["turn"] == turn.event_id
    assert found["protocol"]["snapshot"]["memory"]["core"][0]["content"] == ADA
    assert done.stderr == ""


def test_without_the_protocol_a_reply_is_only_appended(command: Command, home: str) -> None:
    session = stage(home, "plain")
    ask(session)
    done = command("accept", "plain", stdin=b"In the bay.\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "In the bay.\n", "msg-2\n")
    assert json.loads(command("accept", "plain", "--json", stdin=b"Still.").stdout)["protocol"] is None


@pytest.mark.parametrize("turned", ["off", "once"])
def test_a_section_that_no_turn_asked_for_is_cut_and_that_is_told(command: Command, talk: Session, turned: str) -> None:
    reply = reply_to(ask(talk), "Done.", core=[block()])
    talk.switch("protocol", on=turned == "once")
    ask(talk, protocol=False)
    done = command("accept", "talk", stdin=reply.encode())
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert done.stderr == "msg-3: removed a snapshot section that no turn asked for\n"
    found = json.loads(command("accept", "talk", "--json", stdin=reply.encode()).stdout)
    assert found["protocol"] is None
    assert found["message"]["meta"]["daypack"]["section"]["text"] == reply[5:]
    assert talk.tiers.core == ()


def test_a_snapshot_that_could_not_be_recorded_is_not_told_as_unasked(
    command: Command, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = History.append_event

    def fail(history: History, event: Event) -> Event:
        if event.type == "context.snapshot":
            raise WriteFailed("no space", operation="append", place="events.jsonl")
        return record(history, event)

    monkeypatch.setattr(History, "append_event", fail)
    done = command("accept", "talk", stdin=reply_to(turn, core=[block()]).encode())
    assert (done.returncode, done.stdout) == (0, "Yes.\n")
    assert done.stderr.startswith("msg-2")
    assert "no turn asked" not in done.stderr


def test_what_pack_expects_can_be_sent_checked_and_accepted(command: Command, talk: Session) -> None:
    talk.append("user", "Hello.")
    expected = json.loads(command("prepare", "talk", "--json").stdout)["expected"]
    assert expected["runtime"]["round"] == 1
    reply = "Yes." + section(expected, core=[block()])
    Path("sent.json").write_text(json.dumps(expected), encoding="utf-8")
    Path("reply.txt").write_text(reply, encoding="utf-8")
    assert run(["check-reply", "reply.txt", "--expected", "sent.json"]) == 0
    assert command("accept", "talk", "reply.txt").stderr == "msg-2: a snapshot with 1 block\n"
    assert talk.tiers.violation_counts == {}
    talk.switch("protocol", on=False)
    talk.append("user", "Again.")
    assert "expected" not in json.loads(command("prepare", "talk", "--json").stdout)


def test_a_reply_that_looks_like_a_response_is_told_of(command: Command, talk: Session, turn: Turn) -> None:
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
    told = "this looks like a provider's response; use --response to read it as one"
    assert told in command("accept", "talk", stdin=body.encode()).stderr.splitlines()
    for other in (b'{"answer": 42}', b"{not json", b"Yes."):
        assert told not in command("accept", "talk", stdin=other).stderr


@pytest.mark.parametrize(
    ("args", "stdin", "told"),
    [
        (("--response",), b"{nope", "JSON is malformed"),
        (("--response",), b"{}", "is not an assistant's message"),
        (("--response",), b'{"error": {"message": "overloaded"}}', "overloaded"),
        (("nowhere.txt",), b"", "No such file or directory"),
        ((), b"h\xe9llo", "not UTF-8"),
    ],
)
def test_what_is_no_reply_is_refused_and_nothing_is_appended(
    command: Command, talk: Session, turn: Turn, args: tuple[str, ...], stdin: bytes, told: str
) -> None:
    done = command("accept", "talk", *args, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "  → " in done.stderr
    assert len(talk.messages()) == 1


@pytest.mark.parametrize(("typed", "place"), [("fine", "fine"), ("", "''")])
def test_a_text_in_place_of_a_file_is_refused_with_the_way_to_pass_a_text(
    command: Command, talk: Session, turn: Turn, typed: str, place: str
) -> None:
    assert command("accept", "talk", typed).stderr.splitlines() == [
        f"daypack: No such file or directory [{place}]",
        "  → the reply is read from a file, or from standard input: echo … | daypack accept talk",
    ]
    assert len(talk.messages()) == 1


def test_a_session_that_is_not_there_is_told_and_not_made(command: Command, home: str) -> None:
    done = command("accept", "nowhere", stdin=b"Hello.")
    assert (done.returncode, "no such session" in done.stderr) == (1, True)
    assert not (Path(home) / "home/0/agent/default/session/nowhere").exists()


def test_a_reply_cannot_draw_on_the_terminal(command: Command, talk: Session, turn: Turn) -> None:
    done = command("accept", "talk", stdin="Hi \x1b[31m\u202e.".encode())
    assert done.stdout == "Hi \\x1b[31m\\u202e.\n"
    assert talk.tail(1)[0].text == "Hi \x1b[31m\u202e."
