"""`daypack import-envelope`: documents made elsewhere are checked, told and kept."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def document(command: Command) -> bytes:
    """An envelope that was exported from another session."""
    command("append", "other", "Where are the keys?")
    command("append", "other", "--role", "assistant", "Under the mat.")
    command("append", "other", "Which mat?")
    data = command("export", "other", "--scope", "handoff").stdout.encode()
    Path("in.json").write_bytes(data)
    return data


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session that is to get an envelope."""
    command("append", "talk", "What do you know of keys?")
    return daypack.open_session("talk", home=home, durability="os")


def test_a_document_is_checked_and_told(command: Command, document: bytes) -> None:
    context = json.loads(document)["context_id"]
    lines = command("import-envelope", "in.json").stdout.splitlines()
    assert lines[0] == f"context   {context}"
    assert lines[1].startswith("scope     handoff, assembled, ")
    assert lines[2:] == [
        "made by   daypack:default/other",
        "items     3: 2 session_history, 1 user_message",
        "verified  18 of 18 digests",
    ]


def test_it_can_come_from_standard_input(command: Command, document: bytes) -> None:
    printed = json.loads(command("import-envelope", "-", "--json", stdin=document).stdout)
    assert (printed["items"], printed["verified"], printed["digests"], printed["warnings"]) == (3, 18, 18, [])
    assert printed["kinds"] == {"session_history": 2, "user_message": 1}
    assert printed["event_id"] is None


@pytest.mark.usefixtures("document")
def test_a_kept_document_is_recorded_and_used_by_the_next_turn(command: Command, talk: Session) -> None:
    done = command("import-envelope", "in.json", "--session", "talk")
    event = talk.events()[-1]
    assert event.type == "context.imported"
    assert done.stdout.splitlines()[-1].startswith(f"added     to talk as {event.id}; ")
    assert "Under the mat." in command("prepare", "talk", "--dialect", "openai").stdout


def test_words_that_do_not_match_their_digest_are_told_and_not_kept(
    command: Command, talk: Session, document: bytes
) -> None:
    Path("bad.json").write_bytes(document.replace(b"Under the mat.", b"Under my hat."))
    done = command("import-envelope", "bad.json")
    assert done.returncode == 3
    assert "verified  14 of 18 digests" in done.stdout
    assert "warning   items messages:2: content does not match its digest" in done.stdout
    refused = command("import-envelope", "bad.json", "--session", "talk")
    assert refused.returncode == 3
    assert "nothing was stored" in refused.stderr
    assert len(talk.events()) == 0
    assert not (talk.path / "blob").exists()


@pytest.mark.requirement("X18")
@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("budgets", 0, "actual_tokens"), 7, "budgets {}/budget"),
        (("selections", 0, "selected_item_refs"), [], "selections {}/selection"),
        (("injections", 0, "injection_point"), "system_prompt", "injections {}/injection-1"),
        (("surfaces", 0, "items", 1, "visibility"), ["tool"], "items messages:2"),
        (("surfaces", 0, "visibility"), ["user"], "surfaces {}/surface"),
        (("windows", 0, "segments", 1, "actual_tokens"), 1, "windows {}/window"),
        (("assemblies", 0, "redaction_state"), "removed", "assemblies {}/assembly"),
        (("events", 0, "time"), "2020-01-01T00:00:00Z", "events {}/event-1"),
        (("scope",), "turn", "envelope {}"),
        (("metadata", "x"), 1, "envelope {}"),
    ],
)
def test_a_changed_record_is_named_and_not_kept(
    command: Command, talk: Session, document: bytes, path: tuple[str | int, ...], value: object, named: str
) -> None:
    changed = inner = json.loads(document)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    done = command("import-envelope", "-", "--json", stdin=json.dumps(changed).encode())
    assert done.returncode == 3
    [difference] = json.loads(done.stdout)["differences"]
    assert difference["object"] == named.format(changed["context_id"])
    refused = command("import-envelope", "-", "--session", "talk", stdin=json.dumps(changed).encode())
    assert refused.returncode == 3
    assert difference["object"] in refused.stderr
    assert "nothing was stored" in refused.stderr
    assert len(talk.events()) == 0
    assert not (talk.path / "blob").exists()


@pytest.mark.requirement("X18")
def test_what_was_removed_or_renamed_is_named_by_the_id_of_its_digest(command: Command, document: bytes) -> None:
    good = json.loads(document)
    context = good["context_id"]
    renamed, removed, item = json.loads(document), json.loads(document), json.loads(document)
    renamed["context_id"] = "ctx-other"
    removed["budgets"] = []
    item["surfaces"][0]["items"][0]["item_id"] = "messages:9"
    for changed, named in (
        (renamed, [f"object {context}"]),
        (removed, [f"object {context}/budget", f"envelope {context}"]),
        (item, [f"surfaces {context}/surface", f"object {good['item_refs'][0]}"]),
    ):
        done = command("import-envelope", "-", "--json", stdin=json.dumps(changed).encode())
        assert done.returncode == 3
        assert [found["object"] for found in json.loads(done.stdout)["differences"]] == named
    unsealed = {**good, "digests": {name: digest for name, digest in good["digests"].items() if name != context}}
    done = command("import-envelope", "-", stdin=json.dumps(unsealed).encode())
    assert done.returncode == 0
    assert f"1 without a digest: {context}" in done.stdout


def test_an_export_without_the_form_of_its_digests_is_kept_with_a_warning(
    command: Command, talk: Session, document: bytes
) -> None:
    old = json.loads(document)
    del old["digest_form"]
    done = command("import-envelope", "-", "--session", "talk", stdin=json.dumps(old).encode())
    assert done.returncode == 0
    assert "verified  3 of 18 digests; 15 cannot be verified" in done.stdout
    assert "15 digests of records cannot be verified: the document states no digest_form" in done.stdout
    assert len(talk.events()) == 1


def test_another_document_with_a_known_id_is_refused_unless_it_is_to_replace_it(
    command: Command, talk: Session, document: bytes
) -> None:
    first = command("import-envelope", "in.json", "--session", "talk")
    assert first.returncode == 0
    again = command("import-envelope", "in.json", "--session", "talk")
    assert again.returncode == 0
    assert again.stdout.splitlines()[-1] == f"known     talk has it already, as {talk.events()[-1].id}"
    assert len(talk.events()) == 1
    forged = json.loads(document.replace(b"Under the mat.", b"Under my hat."))
    forged["digests"], forged["surfaces"][0]["items"] = {}, forged["surfaces"][0]["items"][1:]
    del forged["surfaces"][0]["items"][0]["digest"]
    other = json.dumps(forged).encode()
    refused = command("import-envelope", "-", "--session", "talk", stdin=other)
    assert refused.returncode == 2
    assert "has another document with this context_id, imported as ev-1" in refused.stderr
    assert "--replace" in refused.stderr
    assert len(talk.events()) == 1
    assert "Under the mat." in command("pack", "talk", "--dialect", "openai").stdout
    replaced = command("import-envelope", "-", "--session", "talk", "--replace", "--json", stdin=other)
    assert (replaced.returncode, json.loads(replaced.stdout)["added"]) == (0, True)
    shown = command("pack", "talk", "--dialect", "openai").stdout
    assert "Under my hat." in shown
    assert "Under the mat." not in shown
    assert "Where are the keys?" not in shown  # an item that only the former document has
    wrong = command("import-envelope", "in.json", "--replace")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_the_rules_that_a_document_breaks_are_named(command: Command, talk: Session, document: bytes) -> None:
    value = json.loads(document)
    value["created_at"], value["surfaces"], value["surface_refs"] = "yesterday", [], []
    del value["digest_form"], value["digests"]
    done = command("import-envelope", "-", "--session", "talk", stdin=json.dumps(value).encode())
    assert done.returncode == 0
    assert "rules: schema.time, " in done.stdout
    assert "`daypack conform FILE` shows where" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("; it has no items that turns could use")
    assert (
        "schema.time"
        in json.loads(command("import-envelope", "-", "--json", stdin=json.dumps(value).encode()).stdout)[
            "broken_rules"
        ]
    )
    assert len(talk.events()) == 1


def test_a_document_written_anew_by_another_runtime_still_verifies(command: Command, document: bytes) -> None:
    value = json.loads(document)
    shuffled = json.dumps(dict(reversed(value.items())), ensure_ascii=True, indent=7).encode()
    printed = json.loads(command("import-envelope", "-", "--json", stdin=shuffled).stdout)
    assert (printed["verified"], printed["warnings"]) == (printed["digests"], [])


def test_words_of_another_vocabulary_are_a_warning(command: Command, talk: Session, document: bytes) -> None:
    value = json.loads(document)
    value["scope"], value["item_refs"] = "galaxy\x1b[2J", [*value["item_refs"], "lost"]
    del value["digest_form"]
    Path("odd.json").write_text(json.dumps(value), encoding="utf-8")
    done = command("import-envelope", "odd.json", "--session", "talk")
    assert done.returncode == 0
    assert "scope 'galaxy" in done.stdout
    assert "1 referenced items are not in the document: lost" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(talk.events()) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value at line 1 column 1"),
        ("{}", "context_id must be a text"),
        ("[]", "expected a JSON object"),
        ("not json", "Expecting value"),
        ("[" * 5000, "nested deeper than 64 levels"),
    ],
)
def test_what_is_no_envelope_is_refused(command: Command, text: str, problem: str) -> None:
    done = command("import-envelope", "-", stdin=text.encode())
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


@pytest.mark.usefixtures("document")
def test_a_file_or_session_that_is_not_there_is_told(command: Command) -> None:
    assert "No such file" in command("import-envelope", "none.json").stderr
    done = command("import-envelope", "in.json", "--session", "none")
    assert done.returncode == 1
    assert "no such session" in done.stderr


def test_a_session_that_does_not_exist_is_reported_first_with_the_command_that_creates_it(
    command: Command, tmp_path: Path, talk: Session
) -> None:
    talk.prepare()
    document = tmp_path / "envelope.json"
    document.write_text(command("export", "talk").stdout)
    done = command("import-envelope", str(document), "--session", "fresh")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "or create it with `daypack session new fresh`" in done.stderr
