"""`daypack conform`: a verdict per rule, for documents of any runtime and folders of them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from turn.conformance.broken import BROKEN
from turn.conformance.documents import good
from turn.survey.test_imported_envelopes import FOREIGN

from daypack.turn.conformance.rules.rulebook import RULES

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(bare_command: Command) -> Command:
    return bare_command


def broken(rule: str) -> str:
    return json.dumps(next(broken for broken in BROKEN if broken.rule == rule).document())


def test_an_export_conforms_and_every_rule_has_a_verdict(command: Command) -> None:
    command("append", "talk", "Where are the keys?")
    command("export", "talk", "--scope", "session", "--out", "out.json")
    done = command("conform", "out.json")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [rule.id for rule in RULES]
    assert lines[-1].startswith("conforms: ")
    printed = json.loads(command("conform", "out.json", "--json").stdout)
    assert printed["conforms"]
    assert printed["failed"] == printed["warnings"] == []
    assert {verdict["outcome"] for verdict in printed["verdicts"]} == {"passed", "not_applicable"}


def test_a_broken_rule_is_named_with_its_path_and_what_differs(command: Command) -> None:
    done = command("conform", "-", stdin=broken("budget.sum").encode())
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith("budget.sum")]
    assert lines[at].split() == ["budget.sum", "failed", "1"]
    assert lines[at + 1] == "    $.windows[0].actual_tokens: the segments add up to 71, the window states 70"
    assert lines[-1] == "does not conform: 39 rules passed, 1 failed (budget.sum), 0 not applicable"
    printed = json.loads(command("conform", "-", "--json", stdin=broken("budget.sum").encode()).stdout)
    assert printed["failed"] == ["budget.sum"]
    [verdict] = [verdict for verdict in printed["verdicts"] if verdict["outcome"] == "failed"]
    assert verdict["sentence"] == "The tokens of the segments add up to those of their window."
    assert verdict["failures"][0]["path"] == "$.windows[0].actual_tokens"


@pytest.mark.requirement("S3-K0", "S3-V0")
def test_a_document_of_an_unknown_runtime_conforms_with_warnings(command: Command) -> None:
    done = command("conform", str(FOREIGN))
    assert done.returncode == 0
    assert "context_kind 'sensor_reading' is unknown: $.surfaces[0].items[0].context_kind" in done.stdout
    assert "target 'wall_display' is unknown" in done.stdout


def test_a_folder_is_summed_up(command: Command) -> None:
    folder = Path("envelopes")
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(good()))
    (folder / "b.json").write_text(broken("refs.item"))
    (folder / "notes.txt").write_text("no document")
    done = command("conform", "envelopes")
    assert done.returncode == 3
    assert done.stdout.splitlines()[0].startswith("envelopes/a.json: conforms: 40 rules passed")
    assert "  refs.item" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "2 documents: 1 conform, 1 do not, 0 unreadable"
    (folder / "b.json").write_text("[1")
    done = command("conform", "envelopes")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == "2 documents: 1 conform, 0 do not, 1 unreadable"
    assert "envelopes/b.json" in done.stderr
    printed = json.loads(command("conform", "envelopes", "--json").stdout)
    assert [document["conforms"] for document in printed["documents"]] == [True, False]
    assert printed["documents"][1]["error"]["place"] == "envelopes/b.json"
    assert not printed["conforms"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ("[]", "expected a JSON object"),
        ('{"context_id": 5}', "context_id must be a text"),
        ('{"context_id": "c", "context_id": "d"}', "'context_id' comes twice"),
        ('{"context_id": "c", "x": 1e999}', "too large for a number"),
        ('{"context_id": "c", "x": ' + "[" * 100 + "]" * 100 + "}", "nested deeper than 64 levels"),
        ('{"context_id": "c", "surfaces": [{"items": [5]}]}', "items must hold objects"),
        ('{"context_id": "c"} {}', "more text follows"),
    ],
)
def test_what_cannot_be_read_is_refused(command: Command, text: str, problem: str) -> None:
    done = command("conform", "-", stdin=text.encode())
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_a_file_that_is_not_there_or_a_folder_without_documents_is_refused(command: Command) -> None:
    Path("empty").mkdir()
    assert "No such file" in command("conform", "none.json").stderr
    done = command("conform", "empty")
    assert done.returncode == 2
    assert "no *.json in this folder" in done.stderr


def test_escapes_in_a_document_do_not_reach_the_terminal(command: Command) -> None:
    odd = {**good(), "context_id": "c\x1b[2J", "scope": "\x1b[31mred"}
    assert "\x1b" not in command("conform", "-", stdin=json.dumps(odd).encode()).stdout
