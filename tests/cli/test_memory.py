"""`daypack memory`: everything a person does with memories."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_server import start_server

from daypack.history.home import find_home
from daypack.memory.search.lookup import WORDS
from daypack.memory.tools import open_memory
from daypack.search.lexical import Lexical

Command = Callable[..., subprocess.CompletedProcess[str]]

SAID = "Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker."
TOLD = "User stated the Q3 launch date moved to 17 Aug 2025 and asked Sam to update the tracker."


@pytest.fixture(autouse=True)
def _words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")


@pytest.fixture
def memory_id(command: Command) -> str:
    return command("memory", "new", "launch").stdout.strip()


def ids(text: str) -> list[str]:
    return re.findall(r"\b[0-9a-f]{32}\b", text)


def test_a_memory_is_made_listed_and_shown(command: Command) -> None:
    assert command("memory", "list").stderr == "local has no memories; create one with `daypack memory new TITLE`\n"
    made = command("memory", "new", "launch", "--type", "project", "--description", "of Q3")
    (memory_id,) = ids(made.stdout)
    head, line = command("memory", "list").stdout.splitlines()
    assert head.split() == ["memory", "type", "entries", "title"]
    assert line.split() == [memory_id, "project", "0", "launch"]
    shown = command("memory", "show", "launch").stdout
    assert [line.split(None, 1) for line in shown.splitlines()][:4] == [
        ["memory", memory_id],
        ["title", "launch"],
        ["type", "project"],
        ["description", "of Q3"],
    ]
    assert json.loads(command("memory", "list", "--json").stdout)[0]["memory_id"] == memory_id


def test_an_entry_is_added_and_found_with_the_parts_of_its_score(command: Command, memory_id: str) -> None:
    added = command("memory", "add", "launch", SAID, "--role", "user", "--tag", "date")
    assert added.stderr == f"added to launch; summary: {TOLD}\n"
    found = command("memory", "search", "launch", "when", "is", "the", "launch", "--explain")
    first, text, parts = found.stdout.splitlines()
    assert first.startswith(added.stdout.strip())
    assert text == f"  {SAID}"
    score = float(first.split()[1])
    assert abs(sum(float(one) for one in re.findall(r"\d\.\d{3}", parts)) - score) < 0.005
    assert command("memory", "search", "launch", "launch", "--tag", "other").returncode == 1
    assert command("memory", "search", memory_id[:8], "launch", "--role", "user").returncode == 0


@pytest.mark.requirement("S2-T9")
def test_a_search_that_finds_nothing_relevant_says_so(command: Command, memory_id: str) -> None:
    command("memory", "add", memory_id, "Sam bought a red bicycle.")
    answer = command("memory", "search", memory_id, "Which museum in Lisbon does Ingrid recommend?")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "nothing relevant" in answer.stderr


def test_a_search_shows_what_is_superseded(command: Command, memory_id: str) -> None:
    command("memory", "add", memory_id, "The staging port is 5432.")
    newer = command("memory", "add", memory_id, "The staging port is 5433 now.").stdout.strip()
    found = command("memory", "search", memory_id, "staging port").stdout
    assert found.endswith(f"The staging port is 5432.\n  superseded by {newer}\n")


def test_an_entry_comes_from_standard_input_and_its_key_makes_it_one(command: Command, memory_id: str) -> None:
    first = command("memory", "add", "launch", "--client-key", "k", stdin=SAID.encode())
    again = command("memory", "add", "launch", "--client-key", "k", stdin=SAID.encode())
    assert first.stdout == again.stdout
    assert again.stderr == "already in launch\n"
    other = command("memory", "add", "launch", "another text", "--client-key", "k")
    assert (other.returncode, other.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("add", "launch", "x", "--summary", "y" * 513), "513"),
        (("add", "launch", "x" * 9001), "9,001|9001"),
        (("new", "t" * 51), "51"),
        (("search", "nothing", "x"), "no such memory"),
        (("search", "launch", "x", "--since", "yesterday"), "yesterday"),
        (("search", "launch", "x", "-k", "101"), "101"),
        (("bind", "talk"), "no such session"),
    ],
)
def test_what_cannot_be_done_is_named(
    command: Command, memory_id: str, arguments: tuple[str, ...], problem: str
) -> None:
    done = command("memory", *arguments)
    assert done.returncode in (1, 2)
    assert re.search(problem, done.stderr)
    assert "Traceback" not in done.stderr


def test_two_memories_of_one_title_are_told_apart_by_their_ids(command: Command, memory_id: str) -> None:
    other = command("memory", "new", "launch").stdout.strip()
    refused = command("memory", "show", "launch")
    assert refused.returncode == 2
    assert set(ids(refused.stderr)) == {memory_id, other}
    assert command("memory", "show", other).returncode == 0


def test_a_memory_with_a_long_title_is_found_by_it(command: Command) -> None:
    title = "Everything that was said about the harbour"
    memory_id = command("memory", "new", title).stdout.strip()
    assert json.loads(command("memory", "show", title, "--json").stdout)["memory"]["memory_id"] == memory_id


def test_a_document_is_written_and_read(command: Command, memory_id: str, tmp_path: Path) -> None:
    assert command("memory", "context", "launch").stdout.startswith("This is default context")
    (tmp_path / "doc.md").write_text("- launch: 17 Aug 2025\n")
    assert command("memory", "context", "launch", "--put", str(tmp_path / "doc.md")).stderr == (
        "version 2, 22 characters\n"
    )
    assert command("memory", "context", "launch").stdout == "- launch: 17 Aug 2025\n"
    assert command("memory", "context", "launch", "--put", "-", stdin=b"x" * 5001).returncode == 2
    assert command("memory", "context", "launch", "--put", "-", stdin=b"\xff").returncode == 2
    assert command("memory", "context", "launch").stdout == "- launch: 17 Aug 2025\n"


def test_a_memory_moves_as_lines(command: Command, memory_id: str, tmp_path: Path) -> None:
    command("memory", "add", "launch", SAID)
    command("memory", "export", "launch", "out.jsonl")
    printed = command("memory", "export", "launch").stdout
    assert Path("out.jsonl").read_text() == printed
    copied = command("memory", "import", "out.jsonl", "--title", "copy")
    assert copied.stderr == "1 entry, 1 document\n"
    assert command("memory", "search", "copy", "launch").stdout.splitlines()[1] == f"  {SAID}"
    Path("cut.jsonl").write_text(printed[: len(printed) // 2])
    refused = command("memory", "import", "cut.jsonl", "--title", "cut")
    assert refused.returncode == 2
    assert "cut" not in command("memory", "list").stdout


def test_a_session_is_bound_captured_and_let_go(command: Command, memory_id: str) -> None:
    command("append", "talk", "The launch party is on 20 Aug 2025.")
    assert command("memory", "bind", "talk", "launch").stdout == f"talk is bound to {memory_id}\n"
    assert command("memory", "capture", "talk", "--end").stdout == "1 entry added\n"
    assert command("memory", "capture", "talk").stdout == "0 entries added\n"
    assert "20 Aug 2025" in command("memory", "context", "launch").stdout
    assert command("memory", "bind", "talk", "--off").stderr == "talk is no longer bound to a memory\n"
    assert command("memory", "capture", "talk").returncode == 1


def test_a_memory_is_erased_only_with_a_yes_and_then_for_good(command: Command, memory_id: str, home: str) -> None:
    command("memory", "add", "launch", SAID)
    asked = command("memory", "erase", "launch")
    assert "would be erased permanently; confirm with --yes" in asked.stderr
    assert command("memory", "show", "launch").returncode == 0
    assert command("memory", "erase", "launch", "--yes").returncode == 0
    assert command("memory", "show", memory_id).returncode == 1
    files = [Path(folder) / name for folder, _, names in os.walk(home) for name in names]
    assert not any(SAID[:20].encode() in file.read_bytes() for file in files)


def test_a_memory_is_hidden_and_comes_back(command: Command, memory_id: str) -> None:
    entry = command("memory", "add", "launch", SAID).stdout.strip()
    command("memory", "erase", "launch", "--hide", "--yes")
    assert command("memory", "show", memory_id).returncode == 1
    assert command("memory", "erase", memory_id, "--restore").stdout == f"{memory_id} is visible again\n"
    assert command("memory", "erase", "launch", "--entry", entry, "--yes").returncode == 0
    assert command("memory", "list").stdout.splitlines()[1].split()[2] == "0"


def test_what_an_entry_says_does_not_reach_the_terminal_as_a_command(command: Command, memory_id: str) -> None:
    command("memory", "add", "launch", "launch \x1b[31mred", "--author", "a\x1b]0;x\x07")
    shown = command("memory", "search", "launch", "red").stdout + command("memory", "show", "launch").stdout
    assert "\x1b" not in shown


def test_an_entry_cannot_be_hidden_and_must_be_there(command: Command, memory_id: str) -> None:
    entry = command("memory", "add", "launch", SAID).stdout.strip()
    assert command("memory", "erase", "launch", "--entry", entry, "--hide", "--yes").returncode == 2
    assert command("memory", "show", "launch").returncode == 0
    assert command("memory", "erase", "launch", "--entry", "nonsense").returncode == 1
    assert command("memory", "erase", "launch", "--entry", "0" * 31 + "9").returncode == 1


def test_importing_what_is_here_says_what_was_added(command: Command, memory_id: str) -> None:
    command("memory", "add", "launch", SAID)
    command("memory", "export", "launch", "out.jsonl")
    again = command("memory", "import", "out.jsonl")
    assert again.stdout.strip() == memory_id
    assert "already exists" in again.stderr
    assert again.stderr.endswith("0 entries, 0 documents\n")


def test_a_long_entry_is_shown_around_the_match_and_whole_on_request(command: Command, memory_id: str) -> None:
    long = "\n".join([*(f"Line {number} is filler." for number in range(80)), "The heron exports invoices.", "End."])
    command("memory", "add", "launch", long, "--in", "monday")
    command("memory", "context", "launch", "--put", "-", stdin=b"# Memory\n\nThe heron exports invoices.\n")
    found = command("memory", "search", "launch", "heron", "invoices")
    head, text = found.stdout.splitlines()
    assert head.endswith("monday")
    assert "The heron exports invoices." in text
    assert len(text) < 320
    assert "--full" in found.stderr
    full = command("memory", "search", "launch", "heron", "invoices", "--full").stdout
    assert "Line 0 is filler." in full
    assert "best matching context document" in full


def test_an_imported_memory_is_indexed(command: Command, home: str, memory_id: str) -> None:
    for number in range(3):
        command("memory", "add", "launch", f"{number}: {SAID}")
    command("memory", "export", "launch", "out.jsonl")
    copy = command("memory", "import", "out.jsonl", "--title", "copy").stdout.strip()
    assert Lexical(os.path.join(find_home(home).memory_indexes, copy, WORDS)).newest == 3


def test_text_may_stand_behind_options(command: Command, memory_id: str) -> None:
    assert command("memory", "add", "launch", "--role", "user", SAID).returncode == 0
    assert command("memory", "search", "launch", "when", "-k", "1", "is", "the", "launch").returncode == 0


def test_an_entry_is_erased_by_the_start_of_its_id(command: Command) -> None:
    memory_id = command("memory", "new", "Harbour").stdout.strip()
    entry_id = command("memory", "add", memory_id[:6], "The crane is red.").stdout.strip()
    assert "no such entry" in command("memory", "erase", memory_id[:6], "--entry", entry_id[:3], "--yes").stderr
    erased = command("memory", "erase", memory_id[:6], "--entry", entry_id[:6], "--yes")
    assert (erased.returncode, erased.stderr) == (0, f"entry {entry_id} was erased\n")
    assert "did you mean Harbour?" in command("memory", "show", "Harbuor").stderr


def test_show_says_how_many_older_entries_it_does_not_show(command: Command) -> None:
    memory_id = command("memory", "new", "launch").stdout.strip()
    for number in range(10):
        command("memory", "add", "launch", f"Step {number} is done.")
    assert command("memory", "show", "launch").stderr == ""
    for number in (10, 11):
        command("memory", "add", "launch", f"Step {number} is done.")
    said = command("memory", "show", "launch").stderr
    assert said == f"… 2 older entries not shown; `daypack memory export {memory_id[:8]}` writes all\n"


def test_memories_on_a_server_are_listed(command: Command, home: str, memory_id: str) -> None:
    with start_server(home) as server:
        listing = command("memory", "list", "--url", server.url).stdout
        assert listing.splitlines()[1].split() == [memory_id, "chat", "0", "launch"]
        listed = json.loads(command("memory", "list", "--url", server.url, "--json").stdout)
        assert [one["memory_id"] for one in listed] == [memory_id]


def test_with_a_default_memory_it_need_not_be_named(
    command: Command, memory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("memory", "new", "other")
    monkeypatch.setenv("DAYPACK_MEMORY", "launch")
    assert command("memory", "add", SAID).returncode == 0
    assert command("memory", "add", stdin=b"The boat of Ada is blue.").returncode == 0
    assert command("memory", "add", "other", "Maria is the new project manager.").returncode == 0
    assert SAID in command("memory", "search", "when is the launch").stdout
    assert "Maria" in command("memory", "search", "other", "project", "manager").stdout
    assert command("memory", "show").stdout.splitlines()[0].split() == ["memory", memory_id]
    assert "title       other" in command("memory", "show", "other").stdout
    assert "default context" in command("memory", "context").stdout
    assert SAID in command("memory", "export").stdout
    command("append", "work", "hello")
    assert command("memory", "bind", "work").stdout == f"work is bound to {memory_id}\n"


def test_a_memory_named_by_the_option_is_not_among_the_arguments(command: Command, memory_id: str, home: str) -> None:
    assert command("memory", "add", "--memory", "launch", SAID).returncode == 0
    assert SAID in command("memory", "search", "--memory", memory_id[:8], "when", "is", "the", "launch").stdout
    assert "title       launch" in command("memory", "show", "--memory", "launch").stdout
    assert command("memory", "export", "--memory", "launch", "out.jsonl").returncode == 0
    assert SAID in Path("out.jsonl").read_text()
    for twice in (("show", "launch"), ("add", "launch", "text"), ("export", "launch", "out.jsonl")):
        refused = command("memory", *twice, "--memory", "launch")
        assert (refused.returncode, "two memories named" in refused.stderr) == (2, True)
    with start_server(home) as server:
        shown = command("memory", "show", "--memory", "launch", "--url", server.url)
        assert shown.stdout.splitlines()[0].split() == ["memory", memory_id]
    with start_server(home, "--memory", "launch") as server:
        assert "title       launch" in command("memory", "show", "--url", server.url).stdout


def test_without_a_default_a_missing_memory_is_told_with_the_ways_to_set_one(command: Command, memory_id: str) -> None:
    for action in ("show", "context", "export", "add"):
        refused = command("memory", action, "--user", "eve")  # a project has a memory of the local user only
        assert refused.returncode == 2
        assert "no memory named" in refused.stderr
        assert "DAYPACK_MEMORY" in refused.stderr
    assert "no query" in command("memory", "search", "launch", "--user", "eve").stderr
    assert command("memory", "erase", "--yes").returncode == 2


def test_a_document_with_what_is_no_character_is_refused(command: Command, memory_id: str, tmp_path: Path) -> None:
    for char, named in (("\0", "U+0000 (NUL)"), ("\uffff", "U+FFFF (not a character)")):
        (tmp_path / "doc.md").write_text(f"# A{char}")
        refused = command("memory", "context", memory_id, "--put", str(tmp_path / "doc.md"))
        assert refused.returncode == 2
        assert f"content has {named} at position 3" in refused.stderr
    assert "default context" in command("memory", "context", memory_id).stdout


@pytest.mark.requirement("S2-S6")
def test_capturing_a_message_that_ends_the_session_writes_the_document(command: Command, memory_id: str) -> None:
    command("append", "work", "Maria is the new project manager. <END_SESSION>")
    command("memory", "bind", "work", memory_id)
    assert command("memory", "capture", "work").stdout == "1 entry added\n"
    assert "- Maria is the new project manager" in command("memory", "context", memory_id).stdout


def test_a_default_memory_that_does_not_exist_is_named_with_its_setting(
    home: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        command("memory", "new", "boat")
    config = Path(find_home(home).config)
    config.write_text('[memory]\ndefault = "boat"\n')
    done = command("memory", "add", "The keel is red.")
    assert done.returncode == 2
    assert f"2 memories have this title [boat, the default memory from {config}]" in done.stderr
    monkeypatch.setenv("DAYPACK_MEMORY", "nonsuch")
    done = command("memory", "add", "The keel is red.")
    assert done.returncode == 1
    assert "no such memory [nonsuch, the default memory from DAYPACK_MEMORY]" in done.stderr


def test_an_entry_says_which_memory_it_is_in_and_a_text_that_is_also_a_title_is_mentioned(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("memory", "new", "garden")
    command("memory", "new", "boat")
    monkeypatch.setenv("DAYPACK_MEMORY", "garden")
    added = command("memory", "add", "boat")
    assert "added to garden; " in added.stderr
    assert "a memory is called 'boat' too: `daypack memory add MEMORY TEXT` adds to it" in added.stderr
    assert "is called" not in command("memory", "add", "The roses are white.").stderr
    titles = [line.split()[3:] for line in command("memory", "list").stdout.splitlines()]
    assert titles == [["title"], ["garden", "(default)"], ["boat"]]


def test_a_title_that_is_taken_is_mentioned(command: Command) -> None:
    assert command("memory", "new", "boat").stderr == ""
    assert command("memory", "new", "boat").stderr == "2 memories have the title 'boat'; name them by their ids\n"


def test_a_text_or_query_that_was_read_as_a_memory_is_explained(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("memory", "new", "garden", "--user", "eve")
    done = command("memory", "add", "Freya lies in Kiel.", "--user", "eve")
    assert done.returncode == 1
    assert "→ a text alone needs a default memory: pass --memory, or set DAYPACK_MEMORY" in done.stderr
    assert "the first argument is the memory" in command("memory", "search", "when", "tomatoes", "--user", "eve").stderr
    monkeypatch.setenv("DAYPACK_MEMORY", "garden")
    done = command("memory", "search", "when", "tomatoes", "--user", "eve")
    assert "→ quote a query of several words, or pass --memory" in done.stderr


def test_a_session_is_bound_to_a_memory_on_a_server(command: Command, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    with open_memory(home=there) as memories:
        memory_id = memories.create_memory("launch").memory_id
    command("append", "work", "hello")
    with start_server(there) as server:
        assert command("memory", "bind", "work", "launch").returncode == 1
        done = command("memory", "bind", "work", "launch", "--url", server.url, "--json")
        assert done.returncode == 0, done.stderr
        bound = json.loads(done.stdout)
        assert (bound["memory_id"], bound["url"]) == (memory_id, server.url)
        assert command("memory", "capture", "work").stdout == "1 entry added\n"


def test_a_server_that_requires_tokens_says_why(command: Command) -> None:
    for options, reason in (
        (("--require-token",), "--require-token was given, and no token exists"),
        (("--host", "0.0.0.0"), "other machines could reach this server, and no token exists"),
    ):
        done = command("serve", "--port", "0", *options)
        assert done.returncode == 1
        assert reason in done.stderr


def test_a_fact_beside_a_match_is_not_found_with_it(command: Command) -> None:
    facts = ("Lives in Hamburg", "The staging server listens on port 8091", "Prefers tabs over spaces", "Has a dog")
    for fact in facts:
        assert command("memory", "add", fact).returncode == 0
    found = command("memory", "search", "staging port", "--json")
    result = json.loads(found.stdout)
    assert [hit["raw_entry"] for hit in result["entries"]] == [facts[1]]
    assert (result["count"], "score_parts" in result["entries"][0]) == (1, False)
    shown = command("memory", "search", "staging port").stdout
    assert facts[1] in shown
    assert "Hamburg" not in shown


def test_in_a_session_the_answer_after_a_match_is_found_with_it(command: Command) -> None:
    for text in ("Which port has the staging server?", "It is 8091.", "Fine."):
        assert command("memory", "add", text, "--in", "talk").returncode == 0
    assert "It is 8091." in command("memory", "search", "staging server port").stdout
