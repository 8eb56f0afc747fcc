"""`daypack check-reply`: which rules a reply breaks, one line for each thing that is wrong, and the exit code."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from turn.snapshot_replies import block, section

Command = Callable[..., subprocess.CompletedProcess[str]]
STAMP: dict[str, Any] = {
    "version": 2.3,
    "runtime": {"round": 3, "workspace": "/shop/", "datetime": "2026-02-25T10:00:00.000Z", "startup_at": 1},
}
GOOD = "Hello.\n" + section(STAMP, core=[block()], working=[block("w")], active_task="Sail.")
BAD = (
    'Hi.<<<CONTEXT>>>```json\n{"version":"2.3","runtime":{},'
    '"memory":{"core":[{"id":"a"}],"working":"a story"}}\n```\nBye.'
)


@pytest.fixture
def command(bare_command: Command) -> Command:
    return bare_command


def written(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_good_reply_is_told_in_three_lines(command: Command) -> None:
    done = command("check-reply", written("reply.txt", GOOD))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "text      7 characters",
        "snapshot  1 core, 1 working, 0 ephemeral; active task: Sail.",
        "no rule is broken",
    ]


def test_everything_that_is_wrong_is_one_line_with_all_rules_it_breaks(command: Command) -> None:
    done = command("check-reply", written("reply.txt", BAD))
    assert (done.returncode, done.stderr) == (1, "")
    problems, rules = done.stdout.split("\n\nwhat these rules demand\n")
    assert rules.splitlines()[:2] == [
        "  S0-F2     no Markdown fence surrounds the snapshot",
        "  S0-R6     only white space surrounds the JSON object",
    ]
    assert problems.splitlines() == [
        "text      8 characters, 5 of them after the snapshot",
        "snapshot  0 core, 0 working, 0 ephemeral",
        "S0-F2 S0-R6 S0-R4 S0-R5  line 2: a code fence surrounds the JSON",
        "S0-R2 S0-R6  line 4: words follow the JSON; they are taken as text",
        "S0-R8.1  version: was 2.3 and came back as '2.3'",
        "S0-T2  version: the version is a number, not text",
        "S0-R8.2  runtime.round: is missing",
        "S0-R8.3  runtime.workspace: is missing",
        "S0-R8.4  runtime.datetime: is missing",
        "S0-R8.5  runtime.startup_at: is missing",
        "S0-R10.2  memory.core[0].type: is missing",
        "S0-R10.3  memory.core[0].decay: is missing",
        "S0-R10.4  memory.core[0].confidence: is missing; 0.5 is assumed",
        "S0-R10.7  memory.core[0].content: is missing",
        "S0-R10.5  memory.core[0].round: is missing",
        "S0-R10.6  memory.core[0].tags: is missing",
        "S0-R10  memory.core[0]: the block is refused: no usable content and decay",
        "S0-T7  memory.working: cannot be 'a story'; it is an array",
        "S0-R7  memory.working: a story instead of a state",
        "S0-T7  memory.ephemeral: is missing; it is taken as empty (should)",
    ]


def test_what_only_should_be_so_stands_last_and_is_no_failure(command: Command) -> None:
    reply = "Hi." + section(STAMP, core=[block("a", decay=0.3), block("b", "Other."), block("c", "Dim.", decay=0.9)])
    done = command("check-reply", written("reply.txt", reply))
    assert done.returncode == 0
    assert done.stdout.splitlines()[2:] == [
        "S0-R13  memory.core[2]: should be left out: decay 0.9 is over 0.35 (should)",
        "S0-R15  memory.core: better blocks should come first (should)",
        "",
        "what these rules demand",
        "  S0-R13  blocks of low quality are left out",
        "  S0-R15  a tier lists its best blocks first and repeats nothing",
    ]
    mixed = command("check-reply", written("mixed.txt", reply.replace("2.3", "2.4")))
    assert mixed.returncode == 1
    assert mixed.stdout.splitlines()[2] == "S0-R8.1  version: was 2.3 and came back as 2.4"


@pytest.mark.parametrize("file", [("-",), ()])
def test_standard_input_is_read_for_a_dash_and_without_a_file(command: Command, file: tuple[str, ...]) -> None:
    done = command("check-reply", *file, stdin="Nothing 记.".encode())
    assert (done.returncode, done.stdout.splitlines()[:3]) == (
        1,
        ["text      10 characters", "snapshot  none", "S0-R1  the reply has no context section"],
    )
    assert command("check-reply", *file, stdin=GOOD.encode()).returncode == 0
    sent = written("sent.json", json.dumps(STAMP))
    assert command("check-reply", *file, "--expected", sent, stdin=GOOD.encode()).returncode == 0
    assert json.loads(command("check-reply", *file, "--json", stdin=GOOD.encode()).stdout)["ok"] is True


@pytest.mark.requirement("S0-R8", "S0-R8.2", "X22")
def test_the_fields_that_were_sent_can_be_compared(command: Command) -> None:
    sent = written("sent.json", json.dumps(STAMP))
    assert command("check-reply", written("reply.txt", GOOD), "--expected", sent).returncode == 0
    other = written("other.json", json.dumps({**STAMP, "runtime": {**STAMP["runtime"], "round": 4}}))
    done = command("check-reply", "reply.txt", "--expected", other)
    assert done.returncode == 1
    assert "S0-R8.2  runtime.round: was 4 and came back as 3" in done.stdout.splitlines()


def test_json_holds_text_snapshot_and_violations(command: Command) -> None:
    done = command("check-reply", written("reply.txt", GOOD), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["text"], found["violations"]) == (0, True, "Hello.\n", [])
    assert found["snapshot"] == json.loads(GOOD.partition("<<<CONTEXT>>>")[2])
    done = command("check-reply", "-", "--json", stdin=b"Nothing.")
    assert (done.returncode, json.loads(done.stdout)) == (
        1,
        {
            "text": "Nothing.",
            "snapshot": None,
            "violations": [
                {
                    "rule": "S0-R1",
                    "problem": "the reply has no context section",
                    "where": "",
                    "level": "must",
                    "sentence": "a reply ends with a <<<CONTEXT>>> section",
                }
            ],
            "ok": False,
        },
    )


@pytest.mark.parametrize(
    ("args", "told", "way_out"),
    [
        (("nowhere.txt",), "No such file or directory", "name a readable file"),
        ((".",), "Is a directory", "name a readable file"),
        (("latin.txt",), "not UTF-8: byte 1", "convert it with iconv"),
        (("reply.txt", "--expected", "nowhere.json"), "No such file or directory", "name a readable file"),
        (("reply.txt", "--expected", "list.json"), "Expected `object`, got `array`", "version and runtime"),
        (("reply.txt", "--expected", "broken.json"), "Input data was truncated", "version and runtime"),
        (("reply.txt", "--expected", "empty.json"), "round", "round, workspace, datetime and startup_at"),
    ],
)
def test_wrong_use_is_told_with_a_way_out(command: Command, args: tuple[str, ...], told: str, way_out: str) -> None:
    written("reply.txt", GOOD)
    written("list.json", "[1]")
    written("broken.json", '{"version')
    written("empty.json", "{}")
    Path("latin.txt").write_bytes(b"h\xe9llo")
    done = command("check-reply", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert way_out in done.stderr


def test_a_reply_cannot_draw_on_the_terminal(command: Command) -> None:
    forged = {"version": "\x1b[31m\n", "runtime": {"datetime": 5}}
    reply = "Hi." + section(forged, core=["\x1b[2J"], active_task="\x1b]0;x\x07")
    reply = reply.replace('"ephemeral"', '"\\u001b[31m\\nx"')
    for args in ((), ("--json",)):
        done = command("check-reply", "-", *args, stdin=reply.encode())
        assert (done.returncode, "\x1b" in done.stdout) == (1, False)
    assert any(
        "memory.\\x1b[31m\\nx" in line for line in command("check-reply", "-", stdin=reply.encode()).stdout.splitlines()
    )
