"""`daypack audit`: the report on a memory store."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Command
from importers.stores.conftest import RECORDED, build, digest

SECRET = "ghp_" + "0aB9dE7fG1hJ3kL5mN8pQ2rS4tU6vW0xY1zA"


@pytest.fixture
def command(bare_command: Command) -> Command:
    return bare_command


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An export of mem0 with a fault of every class."""
    path = tmp_path / "memories.json"
    texts = [
        ("Prefers tea over coffee", "2026-01-02T10:00:00+00:00"),
        ("prefers tea over coffee!", "2026-01-03T10:00:00+00:00"),
        ("Ada really loves playing the violin", "2026-01-03T10:00:00+00:00"),
        ("Ada loves playing violin", "2026-01-04T10:00:00+00:00"),
        ("The staging port is 5432", "2026-01-05T10:00:00+00:00"),
        ("The staging port is 5433 now", "2026-02-05T10:00:00+00:00"),
        ("Will call the bank tomorrow", "2026-01-05T10:00:00+00:00"),
        ("He moved into the flat above the bakery", "2026-01-06T10:00:00+00:00"),
        ("Relevant memories:\n- Prefers tea over coffee", "2026-01-06T10:00:00+00:00"),
        (f"The deploy token is {SECRET}", "2026-01-07T10:00:00+00:00"),
        ("Hello!", "2026-01-07T10:00:00+00:00"),
        ("", "2026-01-07T10:00:00+00:00"),
    ]
    results = [
        {"id": f"m{number}", "memory": text, "user_id": "ada", "created_at": at}
        for number, (text, at) in enumerate(texts)
    ]
    path.write_text(json.dumps({"results": results}))
    return path


def test_every_class_is_counted_with_examples_and_ids(command: Command, store: Path) -> None:
    done = command("audit", str(store), "--today", "2026-03-01")
    assert done.returncode == 0, done.stderr
    assert "mem0 at" in done.stdout
    assert "12 memories" in done.stdout
    kinds = ("exact duplicate", "near duplicate", "contradiction", "stale date", "dangling pronoun", "recalled text")
    for kind in (*kinds, "secret", "junk", "empty"):
        [line] = [line for line in done.stdout.splitlines() if line.startswith(kind)]
        assert "8.3%" in line
    assert "m5 2026-02-05: The staging port is 5433 now" in done.stdout
    assert "'tomorrow' was 2026-01-06" in done.stdout
    assert "an import keeps   7 of 12 memories" in done.stdout


def test_a_secret_is_never_printed(command: Command, store: Path) -> None:
    for options in ((), ("--json",)):
        done = command("audit", str(store), *options)
        assert SECRET not in done.stdout + done.stderr
        assert "[redacted:github-token]" in done.stdout


def test_the_json_has_the_report(command: Command, store: Path) -> None:
    answer = json.loads(command("audit", str(store), "--json", "--examples", "1", "--today", "2026-01-05").stdout)
    assert answer["system"] == "mem0"
    rows = {row["kind"]: row for row in answer["report"]["rows"]}
    assert "stale date" not in rows
    assert rows["contradiction"]["examples"][0]["other_id"] == "m5"
    assert all(len(row["examples"]) <= 1 for row in rows.values())
    assert answer["report"]["kept"] == 7


def test_the_actions_of_the_log_hint_to_its_command(command: Command) -> None:
    for action in ("list", "verify", "cut"):
        done = command("audit", action)
        assert done.returncode == 2
        assert f"daypack audit-log {action}" in done.stderr


def test_what_is_no_store_is_refused(command: Command, tmp_path: Path, store: Path) -> None:
    done = command("audit", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "no such file or folder" in done.stderr
    assert command("audit", str(store), "--today", "soon").returncode == 2
    (tmp_path / "x").write_bytes(b"\x00")
    done = command("audit", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "--as" in done.stderr


def test_texts_of_a_store_cannot_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "memories.json"
    text = "He said \x1b[2J\x1b]0;title\x07 and left the room again"
    path.write_text(json.dumps([{"id": "\x1b[1m", "memory": text, "user_id": "ada"}]))
    done = command("audit", str(path))
    assert "dangling pronoun" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_a_store_without_faults_says_so(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "memories.json"
    path.write_text(json.dumps([{"id": "1", "memory": "Ada plays the violin", "user_id": "ada"}]))
    done = command("audit", str(path))
    assert "nothing found" in done.stdout
    assert "1 of 1 memory" in done.stdout


def _note(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\ntitle: {name}\npermalink: {name}\n---\n{text}\n")


def _mem0(folder: Path) -> Path:
    build(folder / "history.db", "mem0/history.sql")
    build(folder / "qdrant" / "collection" / "mem0" / "storage.sqlite", "mem0/points.sql")
    return folder


def _mem0_export(folder: Path) -> Path:
    """What `get_all` returns of messages: each memory has a role."""
    texts = ["Sails on Sundays", "sails on sundays.", "Hello!", "Has a boat in Kiel", "The boat is long. " * 2_000]
    memories = [{"id": f"m{n}", "memory": text, "user_id": "ada", "role": "user"} for n, text in enumerate(texts)]
    (folder / "export.json").write_text(json.dumps(memories))
    return folder / "export.json"


def _mem0_history(folder: Path) -> Path:
    return build(folder / "history.db", "mem0/history.sql")


def _letta_server(folder: Path) -> Path:
    return build(folder / "sqlite.db", "letta.sql")


def _claude_mem(folder: Path) -> Path:
    return build(folder / "claude-mem.db", "claude-mem.sql")


def _letta(folder: Path) -> Path:
    """An agent file of an older version, which also has messages."""
    blocks = [{"label": "human", "value": "Ada sails"}, {"label": "persona", "value": "A cook.\n\n" * 3_000}]
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (folder / "cook.json").write_text(json.dumps({"name": "cook", "core_memory": blocks, "messages": messages}))
    return folder / "cook.json"


def _mcp(folder: Path) -> Path:
    shutil.copyfile(RECORDED / "mcp-memory.jsonl", folder / "memory.jsonl")
    return folder / "memory.jsonl"


def _notes(folder: Path) -> Path:
    _note(
        folder, "tea", "- [method] Steep it for two minutes\n- [method] steep it for two minutes!\n\nGreen tea is best."
    )
    _note(folder / "deep", "coffee", "- [method] Steep it for two minutes\n- requires [[Water]]")
    return folder


def _document(folder: Path) -> Path:
    (folder / "CONTEXT.md").write_text("# Boat\n\n- It is 34 feet long\n- It is 34 feet long\n- It lies in Kiel\n")
    return folder / "CONTEXT.md"


@pytest.mark.parametrize(
    ("system", "make"),
    [
        ("mem0", _mem0),
        ("mem0", _mem0_export),
        ("mem0", _mem0_history),
        ("letta", _letta_server),
        ("letta", _letta),
        ("claude-mem", _claude_mem),
        ("mcp-memory", _mcp),
        ("basic-memory", _notes),
        ("daypack", _document),
    ],
)
def test_the_printed_command_imports_what_the_audit_says(
    command: Command, tmp_path: Path, system: str, make: Callable[[Path], Path]
) -> None:
    folder = tmp_path / "a store"
    folder.mkdir()
    path = make(folder)
    before = digest(folder)
    audited = json.loads(command("audit", str(path), "--json").stdout)
    assert audited["system"] == system
    words = shlex.split(audited["import"])
    assert words == ["daypack", "import", system, str(path)]
    assert f"→ {audited['import']}" in command("audit", str(path)).stderr
    done = command(*words[1:], "--json")
    assert done.returncode == 0, done.stderr
    [brought] = json.loads(done.stdout)["stores"]
    assert (brought["kept"], brought["stored"]) == (audited["report"]["kept"], audited["report"]["memories"])
    listed = json.loads(command("memory", "list", "--json").stdout)
    assert sum(memory["stats"]["entries"] for memory in listed) == brought["new_entries"] >= brought["kept"] > 0
    again = command("import", str(path), "--json")  # without the name of the system
    assert json.loads(again.stdout)["stores"] == [
        {**brought, "new_entries": 0, "memories": [{**memory, "new_entries": 0} for memory in brought["memories"]]}
    ]
    assert digest(folder) == before


def test_the_memories_of_the_home_are_not_imported_into_themselves(command: Command, home: str) -> None:
    memory = json.loads(command("memory", "new", "Tea party", "--json").stdout)["memory_id"]
    command("memory", "add", memory, "The cake is green")
    audited = json.loads(command("audit", home, "--json").stdout)
    assert (audited["report"]["memories"], audited["import"]) == (1, "")
    done = command("import", "daypack", home)
    assert done.returncode == 2
    assert "in this home already" in done.stderr
