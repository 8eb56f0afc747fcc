"""`daypack question`: ask, list, resolve."""

import json
import subprocess
from collections.abc import Callable

import pytest

import daypack

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(home: str) -> str:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "Deploy it.")
    return "talk"


@pytest.mark.requirement("S3-O12")
def test_a_question_is_asked_listed_and_resolved_from_the_command_line(command: Command, talk: str) -> None:
    done = command(
        *("question", talk, "add", "Which port?", "--needed-for", "the plan", "--blocked-action", "deploy"),
        *("--candidate-source", "messages:1", "--candidate-source", "docs/plan.md", "--requested-from", "user:anna"),
        *("--severity", "high", "--json"),
    )
    assert done.returncode == 0, done.stderr
    asked = json.loads(done.stdout)
    assert asked["needed_for"] == "the plan"
    assert asked["candidate_sources"] == ["messages:1", "docs/plan.md"]
    assert (asked["requested_from"], asked["severity"], asked["status"]) == ("user:anna", "high", "open")
    listed = command("question", talk)
    assert listed.stdout.splitlines() == [
        f"{asked['id']}  high  open  Which port?",
        "  needed for the plan",
        "  blocks deploy",
        "  may be in messages:1",
        "  may be in docs/plan.md",
        "  asked user:anna",
    ]
    assert command("question", talk, "list", "--json").stdout.count("Which port?") == 1
    resolved = command("question", talk, "resolve", asked["id"], "--answer", "8080", "--answer-ref", "messages:1")
    assert resolved.stdout == f"{asked['id']} is resolved\n"
    assert json.loads(command("question", talk, "--json").stdout) == []
    assert "no open questions" in command("question", talk).stderr
    (ended,) = json.loads(command("question", talk, "--all", "--json").stdout)
    assert ended["status"] == "resolved"
    assert ended["resolution_refs"][0] == "messages:1"
    exported = json.loads(command("export", talk, "--scope", "session").stdout)
    assert [missing["status"] for missing in exported["missing_contexts"]] == ["resolved"]
    log = command("log", talk, "--events").stdout
    assert f"asked user:anna {asked['id']}: Which port?" in log
    assert f"resolved the question {asked['id']}: messages:1" in log


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add",), 2, "add needs a value"),
        (("resolve",), 2, "resolve needs a value"),
        (("list", "x"), 2, "list takes no value"),
        (("resolve", "q-1"), 1, "no open question 'q-1'"),
        (("add", "Who?", "--requested-from", "Anna"), 2, "'Anna' is not a source ref"),
        (("add", "Who?", "--severity", "hihg"), 2, "did you mean high?"),
        (("add", "Who?", "--answer", "x"), 2, "--answer needs the action resolve"),
        (("resolve", "q-1", "--candidate-source", "a/b"), 2, "--candidate-source needs the action add"),
        (("resolve", "q-1", "--status", "done"), 2, "'done' is not a status"),
        (("add", "Who?", "--all"), 2, "--all needs the action list"),
        (("add", " "), 2, "the question is empty"),
    ],
)
def test_wrong_use_is_refused(command: Command, talk: str, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = command("question", talk, *arguments)
    assert said in done.stderr
    assert (done.returncode, done.stdout) == (code, "")


def test_asking_again_keeps_the_details_and_says_so(command: Command, talk: str) -> None:
    options = ("--needed-for", "the plan", "--requested-from", "user:anna", "--severity", "blocking")
    asked = command("question", talk, "add", "Which port?", *options)
    assert asked.stdout.startswith("asked q-")
    before = command("question", talk, "--json").stdout
    again = command("question", talk, "add", "Which port?")
    assert again.stdout == asked.stdout.replace("asked", "already open")
    assert command("question", talk, "--json").stdout == before
    changed = command("question", talk, "add", "Which port?", "--severity", "low")
    assert changed.stdout == asked.stdout.replace("asked", "changed")
    (listed,) = json.loads(command("question", talk, "--json").stdout)
    assert (listed["severity"], listed["needed_for"], listed["requested_from"]) == ("low", "the plan", "user:anna")


def test_resolving_needs_an_answer_or_another_status(command: Command, talk: str) -> None:
    asked = json.loads(command("question", talk, "add", "Which port?", "--json").stdout)["id"]
    refused = command("question", talk, "resolve", asked)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no answer" in refused.stderr
    assert "--answer" in refused.stderr
    assert command("question", talk, "resolve", asked, "--status", "declined").stdout == f"{asked} is declined\n"
    listed = command("question", talk, "list", "--all").stdout.splitlines()
    assert next(line for line in listed if "events:" in line).startswith("  declined in events:ev-")
