"""`daypack budget`: how much a pack may hold."""

import json
import subprocess
from collections.abc import Callable

import pytest

import daypack

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _talk(command: Command) -> None:
    command("append", "talk", "hello")


def test_the_default_is_told(command: Command) -> None:
    assert command("budget", "talk").stdout == ("128,000 tokens, 4,096 of them reserved for the reply (default)\n")
    assert json.loads(command("budget", "talk", "--json").stdout)["set"] is None


@pytest.mark.requirement("S4-PK13")
def test_a_budget_that_is_set_holds_for_every_pack(command: Command) -> None:
    shown = "2,000 tokens, 500 of them reserved for the reply\n"
    assert command("budget", "talk", "2000").stdout == shown
    assert command("budget", "talk").stdout == shown
    for number in range(30):
        command("append", "talk", f"walrus {number} " * 100)
    packed = json.loads(command("pack", "talk", "--json").stdout)
    assert packed["budget_tokens"] == 2000
    assert 0 < packed["tokens"] <= 1500
    assert "messages:1-" in packed["omitted"][-1]["item_ref"]


def test_a_target_can_have_its_own(command: Command) -> None:
    value = '{"tokens": 16000, "bytes": 200000, "items": 30, "ms": 50, "targets": {"ui": {"tokens": 4000}}}'
    rest = "; 200,000 bytes; 30 items; 50 ms for searching"
    assert command("budget", "talk", value).stdout.splitlines() == [
        f"16,000 tokens, 4,000 of them reserved for the reply{rest}",
        f"ui: 4,000 tokens, 1,000 of them reserved for the reply{rest}",
    ]
    printed = json.loads(command("budget", "talk", "--json").stdout)
    assert printed["set"] == json.loads(value)
    assert (printed["limits"]["ui"]["tokens"], printed["limits"]["model"]["tokens"]) == (4000, 16000)


def test_0_is_no_limit(command: Command) -> None:
    assert command("budget", "talk", "0").stdout == "no limit\n"
    assert " tokens, no limit\n" in command("pack", "talk").stdout


def test_a_budget_survives_the_loss_of_its_file(command: Command, home: str) -> None:
    command("budget", "talk", "2000")
    (daypack.open_session("talk", home=home).path / "context" / "budget").unlink()
    assert command("budget", "talk").stdout.startswith("2,000 tokens")


@pytest.mark.parametrize("value", ["-5", "lots", "1.5", '{"token": 5}', '{"tokens": "many"}', "true"])
def test_a_bad_value_is_refused_and_changes_nothing(command: Command, value: str) -> None:
    done = command("budget", "talk", value)
    assert (done.returncode, done.stdout) == (2, "")
    assert "  → " in done.stderr
    assert "(default)" in command("budget", "talk").stdout


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8k", 8000), ("32K", 32_000), ("1.5k", 1500), ("1m", 1_000_000), ("200_000", 200_000), ("8,000", 8000)],
)
def test_a_budget_is_read_as_people_write_it(command: Command, text: str, tokens: int) -> None:
    assert json.loads(command("budget", "talk", text, "--json").stdout)["set"] == tokens
    for name in ("pack", "prepare"):
        assert json.loads(command(name, "talk", "--budget", text, "--json").stdout)["budget_tokens"] == tokens


def test_a_bad_budget_is_one_problem_and_one_hint(command: Command) -> None:
    for text in ("lots", "8kb", "8,00", "1.2345k", "k", "1e5", "9" * 5000):
        done = command("pack", "talk", "--budget", text)
        problem, hint = done.stderr.splitlines()
        assert problem == f"daypack: {text!r} is not a budget [--budget]"
        assert hint.startswith("  → give a number of tokens such as 32000 or 32k, or an object")


def test_tokens_to_keep_are_read_the_same_way(command: Command) -> None:
    assert command("compact", "talk", "--keep", "2k").returncode == 0
    refused = command("compact", "talk", "--keep", "lots").stderr
    assert "--keep: must be a number of tokens such as 8000 or 8k, got 'lots'" in refused
