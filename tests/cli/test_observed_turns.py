"""`daypack turns`, `explain`, `diff` and `replay` on sessions of other programs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Command
from recorded_requests import ROW_TYPES, comparable, import_recording, load_recording, observed_turns

import daypack
from daypack.session import Session


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def notes(home: str) -> Iterator[Session]:
    """A session with recorded requests."""
    with daypack.open_session(import_recording(home), home=home, create=False) as session:
        yield session


@pytest.fixture
def older(home: str) -> Iterator[Session]:
    """The same of an older program, which did not record its requests."""
    name = import_recording(home, "older", leave_out=ROW_TYPES)
    with daypack.open_session(name, home=home, create=False) as session:
        yield session


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


# import


def test_an_import_counts_recorded_requests(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(load_recording().text)
    done = command("import", str(path))
    assert "23 messages (23 new), 5 tool calls, 9 recorded requests, 64 rows stored as events" in done.stdout


# turns


def test_calls_are_listed_with_usage_and_what_broke_the_cache(command: Command, notes: Session) -> None:
    done = command("turns", "notes")
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert columns(head) == ["turn", "age", "tokens", "cached", "new", "out", "model", "what changed"]
    changes = [columns(line)[-1] for line in lines]
    assert changes == [
        "first call",
        "+2 messages",
        "+3 messages",
        "+2 messages",
        "cache break: tools changed: +mcp__notes__count_lines",
        "+2 messages",
        "── compacted (manual): 1,318 → 542 tokens ──",
        "cache break: compacted (manual)",
        "cache break: model changed",
        "+2 messages",
    ]
    assert columns(lines[1])[2:5] == ["681", "571", "84 %"]
    assert "9 calls: 9,288 tokens in, 48 % from the cache; 3 cache breaks: 3,220 tokens read again" in done.stderr
    assert "`daypack diff notes` compares the newest two" in done.stderr


def test_only_the_newest_calls_are_listed_when_asked(command: Command, notes: Session) -> None:
    done = command("turns", "notes", "-n", "2")
    assert len(done.stdout.splitlines()) == 3
    assert "earlier turns are not shown; -n 0 shows all" in done.stderr


def test_calls_of_an_older_program_say_that_their_content_is_unknown(command: Command, older: Session) -> None:
    done = command("turns", "older")
    assert [columns(line)[0] for line in done.stdout.splitlines()[1:3]] == ["msg-2", "msg-4"]
    assert "what these calls contained is unknown: Claude Code recorded only their usage" in done.stderr


def test_turns_of_daypack_and_calls_of_another_program_are_listed_together(command: Command, notes: Session) -> None:
    turn = notes.prepare(budget=20_000)
    notes.accept("Own words.", usage={"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 0}})
    done = command("turns", "notes", "-n", "2")
    lines = [columns(line) for line in done.stdout.splitlines()]
    assert "by" in lines[0]
    assert lines[1][0] != turn.event_id == lines[2][0]
    assert ("Claude Code" in lines[1], "daypack" in lines[2]) == (True, True)
    found = json.loads(command("turns", "notes", "-n", "2", "--json").stdout)
    assert [entry.get("kind") for entry in found] == ["observed", "prepared"]


def test_json_has_calls_and_compactions(command: Command, notes: Session) -> None:
    found = json.loads(command("turns", "notes", "-n", "0", "--json").stdout)
    assert [entry["kind"] for entry in found].count("compaction") == 1
    call = found[4]
    assert call["cache_break"] == {
        "causes": ["tools"],
        "detail": "+mcp__notes__count_lines",
        "lost_tokens": 1032,
    }
    assert (call["kind"], call["program"], call["content"], call["messages"]) == (
        "observed",
        "claude-code",
        "recorded",
        12,
    )


# explain


def test_a_call_is_explained_by_source(command: Command, notes: Session) -> None:
    done = command("explain", "notes")
    assert done.returncode == 0, done.stderr
    first, reported, cache, _, head, *lines = done.stdout.splitlines()
    assert "Claude Code, claude-haiku-4-5-20251001, reply msg-23" in first
    assert reported == "1,374 tokens in, 1,233 (90 %) from the cache, 138 written to it, 5 out; 7 messages"
    assert cache == "cache: continued"
    assert columns(head) == ["tokens", "share", "source", "what"]
    sources = {columns(line)[-2]: columns(line)[-1] for line in lines[:-2]}
    assert sources["hooks"] == "SessionStart, UserPromptSubmit"
    assert sources["summary"] == "messages:14"
    assert sources["tool results"] == "mcp__notes__read_notes · messages:22"
    assert "estimates" in lines[-1]


def test_a_message_is_found_in_a_call_or_missed_with_a_reason(command: Command, notes: Session) -> None:
    found = command("explain", "notes", "messages:22")
    assert found.stdout.startswith("included: 1 part of ev-")
    assert "tool results" in found.stdout
    gone = command("explain", "notes", "msg-3")
    assert gone.returncode == 0
    assert gone.stdout.startswith("omitted: messages:3 left the window with the compaction ev-")
    refused = command("explain", "notes", "nothing")
    assert refused.returncode == 1
    assert "'nothing' is not in this call" in refused.stderr


def test_an_explanation_for_programs_has_every_part(command: Command, notes: Session) -> None:
    found = json.loads(command("explain", "notes", "--json").stdout)
    assert found["event_id"] == observed_turns(notes)[-1].event_id
    assert found["tokens"] == sum(part["tokens"] for part in found["parts"])
    assert {"source": "hooks", "name": "SessionStart"}.items() <= {
        name: value for part in found["parts"] if part.get("name") == "SessionStart" for name, value in part.items()
    }.items()


def test_what_is_unknown_is_told_as_unknown(command: Command, older: Session, home: str) -> None:
    done = command("explain", "older")
    assert done.returncode == 0
    assert "what the call contained is unknown: Claude Code recorded its usage, and no request" in done.stderr
    assert json.loads(command("explain", "older", "--json").stdout)["parts"] is None
    import_recording(home, "torn", leave_out=("api-request-shape", "api-request-blob"))
    torn = command("explain", "torn")
    assert torn.returncode == 0
    unknown = [columns(line)[1] for line in torn.stdout.splitlines() if line.startswith("unknown")]
    assert unknown == ["tools", "system", "unknown"]
    assert "not verified" in torn.stderr


def test_secrets_are_not_printed(command: Command, home: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    name = import_recording(home, replace=("please read the notes", f"use {secret} to read the notes"))
    for arguments in (("explain", name, "user"), ("diff", name), ("turns", name), ("explain", name, "--json")):
        done = command(*arguments)
        assert done.returncode in (0, 3), done.stderr
        assert secret not in done.stdout + done.stderr


# diff


def test_the_newest_two_calls_are_compared(command: Command, notes: Session) -> None:
    done = command("diff", "notes")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "tokens     1,233 → 1,374 (+141)"
    assert "messages   5 kept, 2 added" in lines
    assert lines[-2].split()[:4] == ["+", "6", "assistant", "messages:21"]


def test_two_named_calls_are_compared_with_tools_and_parameters(command: Command, notes: Session) -> None:
    names = [turn.event_id for turn in observed_turns(notes)]
    tools = command("diff", "notes", names[3], names[4]).stdout.splitlines()
    assert "tools      +mcp__notes__count_lines" in tools
    assert "cache      break: tools changed: +mcp__notes__count_lines; 1,032 tokens were read again" in tools
    far = command("diff", "notes", names[0], names[7]).stdout
    assert "parameter  max_tokens: 128000 → 32000" in far
    assert "cache  " not in far, "which is about the call before"
    found = json.loads(command("diff", "notes", names[3], names[4], "--json").stdout)
    assert found["difference"]["tools_added"] == ["mcp__notes__count_lines"]
    assert [found["before"]["event"], found["after"]["event"]] == names[3:5]


def test_the_call_before_a_named_one_is_the_default(command: Command, notes: Session) -> None:
    names = [turn.event_id for turn in observed_turns(notes)]
    assert command("diff", "notes", names[0], "latest").stdout.startswith(f"{names[0]} → {names[-1]}")


def test_of_an_older_program_the_messages_between_two_calls_are_listed(command: Command, older: Session) -> None:
    done = command("diff", "older", "msg-2", "msg-4")
    assert done.returncode == 0, done.stderr
    assert "messages   2 messages of history since the earlier call" in done.stdout
    assert [line.split()[1] for line in done.stdout.splitlines()[-2:]] == ["messages:2", "messages:3"]
    assert "what the call contained is unknown" in done.stderr


def test_a_turn_of_daypack_is_not_compared_with_a_call(command: Command, notes: Session) -> None:
    turn = notes.prepare(budget=20_000)
    done = command("diff", "notes", observed_turns(notes)[0].event_id, turn.event_id or "")
    assert done.returncode == 2
    assert "was prepared by daypack" in done.stderr


def test_a_call_does_not_differ_from_itself(command: Command, notes: Session) -> None:
    first = observed_turns(notes)[0].event_id
    assert "messages   2 kept" in command("diff", "notes", first, first).stdout


# replay


def test_a_request_is_verified_and_printed_as_it_was_sent(command: Command, notes: Session) -> None:
    done = command("replay", "notes")
    assert done.stdout.startswith("verified  ev-")
    assert "of Claude Code 2.1.325" in done.stdout
    body = json.loads(command("replay", "notes", "--dialect", "anthropic").stdout)
    assert body == comparable(load_recording().wire[-1])
    found = json.loads(command("replay", "notes", "--json").stdout)
    assert found["request"] == body
    assert found["verified"]["messages"] == len(body["messages"])
    assert "claude-code-20250219" in found["betas"]


def test_all_turns_of_both_kinds_are_verified(command: Command, notes: Session) -> None:
    notes.prepare(budget=20_000)
    done = command("replay", "notes", "--all")
    assert (done.returncode, done.stdout) == (0, "10 turns verified, 0 failed\n")


def test_a_request_that_was_not_recorded_whole_is_not_called_damaged(command: Command, home: str) -> None:
    import_recording(home, "torn", leave_out=("api-request-shape",))
    done = command("replay", "torn", "--all")
    assert (done.returncode, done.stdout) == (0, "0 turns verified, 0 failed, 9 not recorded whole\n")
    one = command("replay", "torn")
    assert one.returncode == 1
    assert "its system prompt and tools are unknown" in one.stderr
    assert len(json.loads(command("replay", "torn", "--all", "--json").stdout)["unknown"]) == 9


def test_a_request_is_not_translated(command: Command, notes: Session) -> None:
    done = command("replay", "notes", "--dialect", "openai")
    assert done.returncode == 2
    assert "was sent as anthropic, not as openai" in done.stderr


def test_a_request_that_changed_or_is_unknown_is_not_verified(command: Command, notes: Session, older: Session) -> None:
    shape = observed_turns(notes)[-1].record.shape
    (notes.path / "blob" / f"sha256-{shape[7:]}").unlink()
    done = command("replay", "notes")
    assert done.returncode == 3
    assert "its system prompt and tools cannot be read" in done.stderr
    every = command("replay", "notes", "--all")
    assert every.returncode == 3
    assert "7 turns verified, 2 failed" in every.stdout
    unknown = command("replay", "older")
    assert unknown.returncode == 1
    assert "cannot be rebuilt: what the call contained is unknown" in unknown.stderr


def test_a_call_has_no_envelope(command: Command, notes: Session) -> None:
    done = command("export", "notes", "--event", observed_turns(notes)[0].event_id)
    assert done.returncode == 1
    assert "is a call of another program: it has no envelope and no pack" in done.stderr


def test_events_of_calls_are_described_in_words(command: Command, notes: Session) -> None:
    log = command("log", "notes", "--events", "-n", "0").stdout
    assert "claude-code called claude-opus-5-5 with 4 messages, 2 of them new" in log
