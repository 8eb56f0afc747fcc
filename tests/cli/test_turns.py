"""`daypack turns`: the recorded turns with their ids."""

import json
import subprocess
from collections.abc import Callable

from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


def cells(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell.strip()]


def test_turns_are_listed_with_ids_tokens_epoch_and_cache_the_newest_last(command: Command, talk: Session) -> None:
    first = talk.prepare(budget=8000)
    talk.accept("Two.", usage={"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 12}})
    talk.append("user", "Which?")
    second = talk.prepare()
    talk.refresh()
    third = talk.prepare()
    done = command("turns", "talk")
    assert done.returncode == 0
    head, *lines = [list(map(str.strip, cells(line))) for line in done.stdout.splitlines()]
    assert head == ["turn", "age", "tokens", "budget", "expected cache", "reported cache", "epoch"]
    assert [[line[0], *line[2:]] for line in lines] == [
        [first.event_id, f"{first.tokens}", "8,000", "0", "12 of 30", "new: first turn"],
        [second.event_id, f"{second.tokens}", "8,000", f"{first.stable_tokens}", "–", f"continues {first.event_id}"],
        [third.event_id, f"{third.tokens}", "8,000", f"{third.expected_cached_tokens}", "–", "new: refresh requested"],
    ]
    assert done.stderr == (
        f"`daypack explain talk --event {third.event_id}` lists what is in it; "
        "`daypack diff talk` compares the newest two\n"
    )


def test_json_has_all_facts_of_a_turn(command: Command, talk: Session) -> None:
    turn = talk.prepare(budget=8000)
    reply = talk.accept("Two.", usage={"prompt_tokens": 30, "completion_tokens": 2})
    (listed,) = json.loads(command("turns", "talk", "--json").stdout)
    assert listed.pop("at").startswith("20")
    assert listed == {
        "kind": "prepared",
        "event": turn.event_id,
        "target": "model",
        "model": "gpt-4o",
        "tokens": turn.tokens,
        "budget_tokens": 8000,
        "reserved_tokens": 2000,
        "messages": 1,
        "last_message": 1,
        "omitted": 0,
        "missing": 0,
        "epoch": turn.event_id,
        "new_epoch": "first",
        "expected_cached_tokens": 0,
        "reply": reply.id,
        "input_tokens": 30,
        "cached_tokens": None,
        "output_tokens": 2,
        "erased": None,
    }


def test_n_limits_the_list_to_the_newest(command: Command, talk: Session) -> None:
    events = [talk.prepare().event_id for _ in range(25)]
    for _ in range(300):  # more events than are read in one go
        talk.append_event("mine")
    done = command("turns", "talk", "-n", "3")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == events[-3:]
    assert "earlier turns are not shown; -n 0 shows all\n" in done.stderr
    assert len(command("turns", "talk").stdout.splitlines()) == 21
    everything = command("turns", "talk", "-n", "0")
    assert [line.split()[0] for line in everything.stdout.splitlines()[1:]] == events
    assert "earlier" not in everything.stderr


def test_turns_for_other_targets_are_marked(command: Command, talk: Session) -> None:
    talk.prepare(budget=8000)
    assert " for " not in command("turns", "talk").stdout
    talk.prepare(target="ui")
    head, model, ui = command("turns", "talk").stdout.splitlines()
    assert " for " in head
    assert " model " in model
    assert " ui " in ui


def test_a_session_without_turns_names_the_command_that_records_one(command: Command, talk: Session) -> None:
    done = command("turns", talk.name)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no turn is recorded yet; `daypack prepare talk` records one\n"
    assert command("turns", "talk", "--json").stdout == "[]\n"
    talk.append_event("context.turn", {"of": "another program"})
    assert command("turns", "talk").stdout == ""


def test_damaged_events_are_reported(command: Command, talk: Session) -> None:
    talk.prepare()
    log = talk.path / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"pin.set", b"pin.SET"))
    done = command("turns", "talk")
    assert done.returncode == 3
    assert "damaged: " in done.stderr
    assert "new: first turn" in done.stdout


def test_diff_replay_and_explain_mean_the_newest_turn(command: Command, talk: Session) -> None:
    for name in ("diff", "replay"):
        done = command(name, "talk")
        assert done.returncode == 1
        assert "no turn for model is recorded yet" in done.stderr
    first = talk.prepare()
    done = command("diff", "talk")
    assert done.returncode == 1
    assert f"daypack: only one turn for model is recorded: {first.event_id} [" in done.stderr
    assert "→ `daypack prepare talk` records the next one" in done.stderr
    talk.append("user", "Which?")
    talk.prepare(target="ui")
    second = talk.prepare()
    assert f"{first.event_id} (" in (line := command("diff", "talk").stdout.splitlines()[0])
    assert f"→ {second.event_id} (" in line
    assert command("diff", "talk", first.event_id).stdout.splitlines()[0] == line
    assert f"verified  {second.event_id}:" in command("replay", "talk").stdout
    assert f"turn {second.event_id}\n" in command("explain", "talk").stderr
    refused = command("replay", "talk", "ev-1")
    assert "ev-1 is not a turn" in refused.stderr
    assert "→ `daypack turns talk` lists the turns" in refused.stderr


def test_an_agents_session_without_requests_is_not_said_to_need_prepare(command: Command) -> None:
    command("append", "talk", "hello", "--agent", "copilot")
    done = command("turns", "talk")
    assert (done.returncode, done.stdout) == (0, "")
    assert "the transcript of Copilot CLI has no request and no token count" in done.stderr
    assert "daypack log copilot/talk" in done.stderr
    assert "prepare" not in done.stderr
