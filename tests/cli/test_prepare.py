"""`daypack prepare`: the next turn, told to a person, to a script and to a provider."""

import json
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]
HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202e evil \r over \x7f"


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with a pin and a question, for a model whose tokens are counted exactly."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.append("user", "List the files")
    return session


def fill(session: Session, count: int) -> None:
    """Append so many questions and long answers."""
    for number in range(count):
        answer = f"The walrus number {number} lives in harbour {number}. " * 30
        session.append_many(
            [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"And where does walrus {number + 1} live?"},
            ]
        )


def test_a_turn_is_packed_recorded_and_told(command: Command, talk: Session) -> None:
    done = command("prepare", "talk")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    tokens = json.loads(command("replay", "talk", "--json").stdout)["tokens"]
    assert lines[0] == f"default/talk: {tokens} of 128,000 tokens, 4,096 reserved for the reply"
    assert "epoch     new, from message 1: first turn" in lines
    assert "counted   by o200k_base" in lines
    event = talk.events()[-1]
    assert f"recorded  as {event.id}, {event.data['context_id']}" in lines
    assert event.type == "context.turn"
    rows = [line.split() for line in lines[lines.index("tokens  kind             source") + 1 :]]
    table = rows[: rows.index([])]
    assert [row[1:] for row in table] == [
        ["system", "context/pinned/rules.md"],
        ["recent_messages", "messages.jsonl", "1"],
    ]
    assert sum(int(row[0]) for row in table) == tokens
    assert lines[-5:] == ["omitted", "  nothing", "", "missing", "  nothing"]


def test_a_second_turn_goes_on_and_a_refresh_begins_anew(command: Command, talk: Session) -> None:
    first = json.loads(command("prepare", "talk", "--json").stdout)
    talk.append("assistant", "There are two.")
    talk.append("user", "Which?")
    talk.pin("rules", "Be long.")
    second = command("prepare", "talk").stdout
    assert f"epoch     continues {first['event_id']}, from message 1" in second
    assert "tokens, unchanged" in second
    assert f"expected cache hit: {first['stable_tokens']} of " in second
    third = command("prepare", "talk", "--refresh").stdout
    assert "epoch     new, from message 1: refresh requested" in third
    assert "tokens, changed" in third


def test_json_is_pack_json_and_what_happened(command: Command, talk: Session) -> None:
    talk.add_question("Which branch?", severity="high")
    printed = json.loads(command("prepare", "talk", "--budget", '{"tokens": 2000, "items": 1}', "--json").stdout)
    written = json.loads((talk.path / "context" / "pack.json").read_bytes())
    assert {name: printed[name] for name in written} == written
    assert printed["event_id"] == talk.events()[-1].id
    assert printed["budget_tokens"] == 2000
    assert printed["reserved_tokens"] == 500
    assert printed["new_epoch"] == "first"
    assert printed["omitted"][0]["reason"] == "budget_limit"
    assert [one["question"] for one in printed["missing"]] == ["Which branch?"]


def words(value: Any, key: str = "") -> Iterator[str]:
    """Yield all texts of a body."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from words(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from words(inner, key)
    elif key in ("content", "text"):
        yield str(value)


@pytest.mark.requirement("S4-PK14")
@pytest.mark.parametrize("dialect", ["openai", "responses", "anthropic"])
def test_the_pack_on_disk_shows_all_words_of_the_body(command: Command, talk: Session, dialect: str) -> None:
    fill(talk, 12)
    done = command("prepare", "talk", "--budget", "2500", "--dialect", dialect)
    body, pack = json.loads(done.stdout), (talk.path / "context" / "pack.md").read_text(encoding="utf-8")
    texts = list(words(body))
    assert len(texts) > 3
    assert [text for text in texts if "\n".join(f"    {line}" for line in text.split("\n")) not in pack] == []
    packed = json.loads((talk.path / "context" / "pack.json").read_bytes())["items"]
    quoted = [item["range"] for item in packed if item["context_kind"] == "retrieval_result"]
    assert quoted
    assert all(any(f"[{number} " in text for text in texts) for number in quoted)


@pytest.mark.parametrize("dialect", ["openai", "responses", "anthropic"])
def test_the_body_is_byte_for_byte_what_was_recorded(command: Command, talk: Session, dialect: str) -> None:
    talk.append("user", HOSTILE)
    done = command("prepare", "talk", "--dialect", dialect)
    recorded = talk.events()[-1].data["sha256"][dialect]
    assert recorded == f"sha256:{sha256(done.stdout.removesuffix(chr(10)).encode()).hexdigest()}"


def test_many_excerpts_are_told_in_one_row(command: Command, talk: Session) -> None:
    fill(talk, 40)
    done = command("prepare", "talk", "--budget", "3000")
    packed = json.loads(command("replay", "talk", "--json").stdout)
    past = [int(item["range"]) for item in packed["items"] if item["context_kind"] == "retrieval_result"]
    assert len(past) > 3
    (row,) = [line for line in done.stdout.splitlines() if "memory_entries" in line]
    assert row.endswith(f"memory_entries   {len(past)} excerpts from messages {min(past)}-{max(past)}")
    assert "  messages:1-" in done.stdout
    assert "budget_limit" in done.stdout


def test_the_rows_add_up_to_the_tokens_of_the_turn(command: Command, talk: Session) -> None:
    fill(talk, 40)
    lines = command("prepare", "talk", "--budget", "3000").stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("tokens  kind"))
    rows = [int(line.split()[0].replace(",", "")) for line in lines[start + 1 : lines.index("", start)]]
    assert sum(rows) == json.loads(command("replay", "talk", "--json").stdout)["tokens"]


def test_what_is_left_out_and_missing_is_told_with_its_reason(command: Command, talk: Session) -> None:
    asked = talk.add_question("Which branch?\nin   forged: line", severity="high")
    done = command("prepare", "talk", "--budget", '{"tokens": 2000, "items": 1}')
    assert "limits    " in done.stdout
    assert " of 1 items" in done.stdout
    assert "  pin:rules.md" in done.stdout
    assert "budget_limit (may change the reply)" in done.stdout
    assert f"  {asked}  high  Which branch?\\nin   forged: line" in done.stdout


def test_secrets_that_were_taken_out_are_told(command: Command, talk: Session) -> None:
    talk.append("user", "use ghp_" + "a1B2c3D4e5F6" * 3)
    done = command("prepare", "talk")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("redacted")]
    assert line.endswith(" in messages:2")


def test_a_pack_is_for_one_target(command: Command, talk: Session) -> None:
    printed = json.loads(command("prepare", "talk", "--target", "user", "--json").stdout)
    assert printed["target"] == "user"
    assert [item["kind"] for item in printed["items"]] == ["recent_messages"]
    assert command("prepare", "talk", "--target", "nobody").returncode == 2


def test_another_model_is_counted_in_its_own_way(command: Command, talk: Session) -> None:
    assert "counted   by cl100k_base" in command("prepare", "talk", "--model", "gpt-4").stdout


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("none",), 1, "no such session"),
        (("talk", "--budget", "lots"), 2, "'lots' is not a budget"),
        (("talk", "--budget", "1.5"), 2, "is not a budget"),
        (("talk", "--budget", "[1]"), 2, "is not a budget"),
        (("talk", "--budget", '{"token": 1}'), 2, "there is no limit 'token'; did you mean tokens?"),
        (("talk", "--budget", '{"tokens": "lots"}'), 2, "tokens must be a whole number of 0 or more, got 'lots'"),
        (("talk", "--budget", "0"), 2, "a budget of 0 has no space"),
        (("talk", "--budget", "4"), 2, "raise the budget to at least"),
        (("talk", "--dialect", "latin"), 2, "invalid choice"),
    ],
)
def test_wrong_use_is_told(command: Command, talk: Session, args: tuple[str, ...], code: int, text: str) -> None:
    done = command("prepare", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert len(talk.events()) == 1  # the pin


def test_without_a_user_message_there_is_nothing_to_answer(command: Command) -> None:
    command("session", "new", "empty")
    done = command("prepare", "empty")
    assert done.returncode == 1
    assert "append the user's message first" in done.stderr


def test_control_characters_from_data_never_reach_the_terminal(command: Command, talk: Session) -> None:
    talk.pin("p", HOSTILE)
    talk.add_question(HOSTILE)
    talk.append("user", HOSTILE)
    (Path.cwd() / "AGENTS.md").write_text(HOSTILE, encoding="utf-8")
    for args in (
        ("prepare", "talk"),
        ("prepare", "talk", "--json"),
        ("explain", "talk"),
        ("explain", "talk", "--json"),
    ):
        done = command(*args)
        assert done.returncode == 0
        text = done.stdout + done.stderr
        assert [char for char in text if ord(char) < 32 and char != "\n"] == []
        assert not any(char in text for char in "\x7f\x9b\u202e")


def test_tools_are_read_from_a_file(command: Command, session: Session, tmp_path: Path) -> None:
    function = {"name": "weather", "description": "The weather now"}
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([{"type": "function", "function": function}]))
    session.append("user", "Hi.")
    tools = ("--tools", str(file))
    assert "tools" in command("pack", "work", *tools).stdout
    assert json.loads(command("prepare", "work", *tools, "--json").stdout)["tools"]["count"] == 1
    body = json.loads(
        command("prepare", "work", "--tools", "-", "--dialect", "responses", stdin=file.read_bytes()).stdout
    )
    assert body["tools"][0]["name"] == "weather"
    file.write_text(json.dumps({"tools": [{"type": "web_search"}]}))
    changed = command("prepare", "work", *tools).stdout
    assert "D tools " in changed
    assert "\nexpected cache hit: 0 tokens\n" in changed
    assert "cache     not usable: the tools changed" in changed
    assert "which openai does not have" in command("pack", "work", *tools, "--dialect", "openai").stderr
    file.write_text("[")
    refused = command("prepare", "work", *tools)
    assert refused.returncode
    assert "not JSON" in refused.stderr


def test_an_omission_outside_the_vocabulary_is_said_in_words_alone(command: Command, session: Session) -> None:
    session.append("user", "Hi.")
    session.append("assistant", "I look.", tool_calls=[{"id": "c1", "name": "look", "arguments": "{}"}])
    turn = session.prepare()
    assert [(omission.reason, omission.note) for omission in turn.omitted] == [("custom", "results pending")]
    printed = command("replay", "work").stdout
    assert "omitted\n  messages:2    results pending\n" in printed
    pages = [printed, command("explain", "work").stdout, (session.path / "context" / "pack.md").read_text()]
    for page in pages:
        assert "results pending" in page
        assert "custom" not in page
    listed = json.loads(command("explain", "work", "--json").stdout)["omitted"]
    assert [omission["reason"] for omission in listed] == ["custom"]
