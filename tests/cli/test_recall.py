"""`daypack recall`: a text by its id, or some of its lines."""

import json
import subprocess
from collections.abc import Callable, Iterator

import msgspec
import pytest
from turn.compacting import derived, step

import daypack
from daypack.session import Session
from daypack.turn.recall_tools import answer
from daypack.types.records import Ref

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Iterator[Session]:
    """A session with a large result that has left the window."""
    command("session", "new", "talk", "--model", "gpt-4o")
    with daypack.open_session("talk", home=home, durability="os") as session:
        step(session, 0, lines=300)
        for number in range(1, 10):
            step(session, number)
        session.append("user", "What is left to do?")
        assert session.compact(keep_tokens=1000).changed
        yield session


def output_of(talk: Session) -> str:
    """The id of the large result."""
    (made,) = talk.compactions
    (found,) = [one.id for one in made.swapped if one.event == "msg-3"]
    return found


@pytest.mark.requirement("S4-SW1")
def test_what_was_swapped_out_comes_back_by_its_id(command: Command, talk: Session) -> None:
    name, text = output_of(talk), talk.messages(3, 3)[0].text
    for spelled in (name, name[:19], f"swap:{name}"):
        done = command("recall", "talk", spelled)
        assert (done.returncode, done.stderr) == (0, "messages:3, 300 lines:\n")
        assert done.stdout == f"{text}\n"


def test_some_lines_of_it_come_back(command: Command, talk: Session) -> None:
    name = output_of(talk)
    some = command("recall", "talk", name, "--lines", "2-3")
    assert (some.returncode, some.stderr) == (0, "messages:3, lines 2-3 of 300:\n")
    assert some.stdout == "harbour_0_1 = 1\nharbour_0_2 = 2\n"
    one = command("recall", "talk", name, "--lines", "300")
    assert (one.stdout, one.stderr) == ("harbour_0_299 = 299\n", "messages:3, line 300 of 300:\n")
    beyond = command("recall", "talk", name, "--lines", "300-9999")
    assert beyond.stderr == "messages:3, line 300 of 300:\n"


def test_messages_records_refs_events_and_children_have_ids(command: Command, talk: Session) -> None:
    assert command("recall", "talk", "msg-1").stdout == f"{talk.messages(1, 1)[0].text}\n"
    several = command("recall", "talk", "messages:1-2").stdout
    assert several.startswith(f"[1 user] {talk.messages(1, 1)[0].text}\n\n[2 assistant] I read the harbour first.\n")
    decision = talk.compactions[-1].records.decisions[0]
    found = command("recall", "talk", decision.id)
    assert decision.decision in found.stdout
    assert found.stderr == f"{decision.source}, 1 line:\n"
    ref = msgspec.json.decode(derived(talk, "refs").splitlines()[0], type=Ref)
    assert "harbour_0_0 = 0" in command("recall", "talk", ref.id).stdout  # what was read, not the call
    event = talk.append_event("note", {"text": "ahoy"})
    assert "ahoy" in command("recall", "talk", event.id).stdout
    talk.put_child("pilot", handoff="Chart the reef.", result="It is charted.")
    assert command("recall", "talk", "child:pilot").stdout == "It is charted.\n"
    assert "harbour_0_7 = 7" in command("recall", "talk", "tool:c0").stdout


def test_json_tells_where_the_text_is_from(command: Command, talk: Session) -> None:
    name = output_of(talk)
    told = json.loads(command("recall", "talk", name[:19], "--lines", "2-3", "--json").stdout)
    assert told == {
        "id": name[:19],
        "source": "messages:3",
        "start": 2,
        "stop": 3,
        "lines": 300,
        "text": "harbour_0_1 = 1\nharbour_0_2 = 2",
    }


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("talk", "f99"), 1, "no message, event, record, chunk or child has the id 'f99'"),
        (("talk", "sha256-0123456789ab"), 1, "no message, event, record, chunk or child has the id"),
        (("talk", "sha256-01"), 1, "no message, event, record, chunk or child has the id"),
        (("talk", "child:none"), 1, "no message, event, record, chunk or child has the id"),
        (("talk", "\x1b[31m"), 1, "\\x1b"),
        (("talk", "msg-999"), 1, "the session has 41 messages"),
        (("talk", "tool:none"), 1, "no message has the result of that call"),
        (("talk", "msg-3", "--lines", "9-2"), 2, "is not a range of lines; the text has 300"),
        (("talk", "msg-3", "--lines", "0-2"), 2, "is not a range of lines; the text has 300"),
        (("talk", "msg-3", "--lines", "301"), 2, "is not a range of lines; the text has 300"),
        (("talk", "msg-3", "--lines", "few"), 2, "is not a range of lines; the text has 300"),
        (("talk", "msg-3", "--lines", "1-2-3"), 2, "is not a range of lines; the text has 300"),
        (("none", "msg-1"), 1, "no such session"),
    ],
)
def test_what_is_not_there_is_told(
    command: Command, talk: Session, args: tuple[str, ...], code: int, text: str
) -> None:
    done = command("recall", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "\x1b" not in done.stderr


def test_an_id_that_stands_for_other_words_now_is_damage(command: Command, talk: Session) -> None:
    name = output_of(talk)
    log = talk.path / "messages.jsonl"
    log.write_bytes(log.read_bytes().replace(b"harbour_0_7 = 7", b"harbour_0_7 = 8"))
    done = command("recall", "talk", name)
    assert (done.returncode, done.stdout) == (3, "")
    assert "was messages:3, and the text there has changed" in done.stderr


def test_control_characters_and_secrets_do_not_come_back(command: Command, talk: Session) -> None:
    key = "sk-ant-api03-" + "Ab1" * 31 + "AA"
    talk.append("user", f"\x1b[2J the key is {key}")
    done = command("recall", "talk", "messages:tail:1")
    assert done.stdout.startswith("\\x1b[2J the key is [redacted:")
    assert key not in done.stdout
    told = json.loads(command("recall", "talk", "messages:tail:1", "--json").stdout)
    assert told["text"].startswith("\x1b[2J the key is [redacted:")


def test_an_agents_tool_is_answered_with_the_same_words(command: Command, talk: Session) -> None:
    name = output_of(talk)
    shown = command("recall", "talk", name, "--lines", "2-3").stdout
    marked = answer(talk.lookup, "recall", {"id": name, "lines": "2-3"})
    assert marked.rpartition("\n")[0] == f"[recalled from messages:3, lines 2-3 of 300]\n{shown.rstrip()}"


def test_a_long_text_is_cut_on_a_terminal_and_whole_in_a_pipe(
    command: Command, talk: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.append("user", "\n".join(f"line {number}" for number in range(1, 1001)))
    newest = talk.messages()[-1].id
    assert len(command("recall", "talk", newest).stdout.splitlines()) == 1000
    monkeypatch.setattr("daypack.cli.recall.is_terminal", lambda: True)
    done = command("recall", "talk", newest)
    assert done.stdout.splitlines()[-1] == "line 400"
    assert done.stderr.splitlines()[-1] == (
        f"… 600 more lines; `daypack recall talk {newest} --lines 401-800` continues"
    )
    assert len(command("recall", "talk", newest, "--lines", "1-900").stdout.splitlines()) == 900
