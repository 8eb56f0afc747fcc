"""SessionStart: the project's document and its last session, if they are worth it, and once in a window."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import daypack
from daypack.hooks.call import HostName
from daypack.hooks.hosts import HOSTS
from daypack.hooks.recap.writing import write_recap
from daypack.hooks.start import MAX_TOKENS, on_start
from daypack.memory.project import project_memory
from daypack.text.estimate import estimate_tokens
from daypack.text.tokens import counter_named
from tests.hooks.coding_session import CodingSession

DOCUMENT = """# Memory

## Participants
- Ana

## Facts
- The staging database listens on port 6543 behind pgbouncer.
- Тесты запускаются командой `make check`.

## Decisions
- 先备份数据库，再部署。

## Open tasks
- [ ] Move the nightly export to S3 (Ana)
"""
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def put_document(work: CodingSession, content: str) -> None:
    memory_id = project_memory(work.home, work.project)
    assert memory_id
    with daypack.open_memory(home=work.home.root, user="local") as memories:
        memories.put_context(memory_id, content)


def leave(work: CodingSession, path: str = "importer/rows.py") -> None:
    """Work in a session and leave something open."""
    work.user("Move the importer to S3 and keep the old names.")
    todos = [{"content": "Write the S3 client", "status": "pending"}]
    work.call("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")
    for number in range(5):
        work.read(f"part{number}.py", "def rows(): ...\n" * 40)
    work.edit(path)
    work.bash("pytest tests/api", "FAILED tests/api/test_rows.py::test_empty\n1 failed, 4 passed", 1)
    work.agent("The importer is moved. One test still fails, because empty rows are missing.")
    write_recap(work.session, work.project)


@pytest.fixture
def work(tmp_path: Path) -> CodingSession:
    return CodingSession(tmp_path)


def test_a_project_without_memory_and_sessions_gets_nothing(work: CodingSession) -> None:
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None
    assert not os.path.exists(os.path.join(work.home.folder, "memory"))


def test_the_placeholder_of_a_new_memory_and_empty_headings_are_nothing(work: CodingSession) -> None:
    project_memory(work.home, work.project)
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None
    put_document(work, "# Memory\n\n## Facts\n\n## Decisions\n")
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None


def test_empty_headings_and_completed_tasks_are_left_out_and_stay_in_the_document(work: CodingSession) -> None:
    document = (
        "# Memory\n\n## Participants\n\n## Facts\n- The database listens on port 6543.\n\n## Decisions\n\n"
        "## Open tasks\n- [x] Move the export\n  to the new bucket\n- [ ] Rotate the keys\n"
    )
    put_document(work, document)
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    told = "# Memory\n\n## Facts\n- The database listens on port 6543.\n\n## Open tasks\n- [ ] Rotate the keys\n"
    assert told in injection.text
    with daypack.open_memory(home=work.home.root, user="local") as memories:
        memory_id = project_memory(work.home, work.project)
        assert memory_id
        assert memories.get_context(memory_id).content == document


def test_a_document_with_completed_tasks_alone_is_nothing(work: CodingSession) -> None:
    put_document(work, "# Memory\n\n## Facts\n\n## Open tasks\n- [x] Move the export\n* [X] Rotate the keys\n")
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None


@pytest.mark.parametrize("source", ["startup", "clear"])
@pytest.mark.parametrize("host", ["claude", "codex", "copilot", "qwen"])
def test_the_document_is_quoted_word_for_word(tmp_path: Path, host: HostName, source: str) -> None:
    work = CodingSession(tmp_path, host=host)
    put_document(work, DOCUMENT)
    injection = on_start(work.hook("SessionStart", source=source), work.home)
    assert injection
    assert DOCUMENT.strip() in injection.text
    assert 'name="daypack: memory of the project shop"' in injection.text
    assert "no instructions" in injection.text


def test_the_state_of_the_last_session_is_told_with_what_is_open_first(tmp_path: Path) -> None:
    before = CodingSession(tmp_path, "11111111-2222-4333-8444-555555555555", "codex")
    leave(before)
    work = CodingSession(tmp_path)
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    text = injection.text
    assert "codex 11111111" in text
    assert "- [ ] Write the S3 client" in text
    assert "- importer/rows.py: written" in text
    assert "1 failed, 4 passed" in text
    assert "> The importer is moved. One test still fails" in text
    assert text.index("Open work:") < text.index("Files changed:")


def test_the_document_goes_before_the_last_session_and_both_fit(tmp_path: Path) -> None:
    before = CodingSession(tmp_path, "earlier")
    leave(before)
    long = DOCUMENT + "".join(f"- Task {number}: {'change it ' * 6}\n" for number in range(60))
    put_document(before, long)
    work = CodingSession(tmp_path)
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    assert injection.text.index("memory of the project") < injection.text.index("last session in")
    assert "Write the S3 client" in injection.text
    assert counter_named("o200k_base").count(injection.text) <= MAX_TOKENS


@pytest.mark.parametrize("host", ["claude", "codex"])
@pytest.mark.parametrize(
    "line", ["- 先备份数据库，再部署到生产环境。", "- Тесты запускаются командой make check.", "- a fact " * 3]
)
def test_a_text_stays_within_the_limits_in_any_language(tmp_path: Path, host: HostName, line: str) -> None:
    before = CodingSession(tmp_path, "earlier")
    leave(before)
    put_document(before, ("# Memory\n\n## Facts\n" + f"{line}\n" * 500)[:4990])
    work = CodingSession(tmp_path, host=host)
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    assert line.strip() in injection.text
    assert HOSTS[host].fits("SessionStart", injection.text)
    assert estimate_tokens(injection.text) <= MAX_TOKENS


def test_a_session_that_is_resumed_gets_nothing_if_no_other_was_there_since(work: CodingSession) -> None:
    put_document(work, DOCUMENT)
    leave(work)
    assert on_start(work.hook("SessionStart", source="resume"), work.home) is None
    assert on_start(work.hook("SessionStart", source="startup"), work.home)  # the document


def test_a_session_that_is_resumed_learns_of_others_and_of_new_lines_only(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    put_document(work, DOCUMENT)
    first = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert first
    leave(work)
    other = CodingSession(tmp_path, "other")
    for _ in range(40):
        other.user("Tune the cache.")
    leave(other, "cache.py")
    put_document(work, DOCUMENT + "- [ ] Tune the cache (Ben)\n")
    again = on_start(work.hook("SessionStart", source="resume"), work.home, first.items)
    assert again
    assert "Tune the cache (Ben)" in again.text
    assert "port 6543" not in again.text
    assert "cache.py" in again.text
    assert on_start(work.hook("SessionStart", source="resume"), work.home, (*first.items, *again.items)) is None


def test_a_trivial_session_is_not_told(tmp_path: Path) -> None:
    before = CodingSession(tmp_path, "earlier")
    before.user("Hello")
    before.agent("Hello.")
    write_recap(before.session, before.project)
    work = CodingSession(tmp_path)
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None


def test_a_session_of_another_worktree_is_told_with_its_place(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=work.folder, check=True)
    subprocess.run(["git", "worktree", "add", "-q", str(tmp_path / "tree")], cwd=work.folder, check=True)
    before = CodingSession(tmp_path, "earlier", project="tree")
    leave(before)
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    assert f"in {before.project.top}" in injection.text


def test_secrets_in_a_document_are_redacted(work: CodingSession) -> None:
    put_document(work, f"# Memory\n\n## Facts\n- The token is {SECRET}.\n")
    injection = on_start(work.hook("SessionStart", source="startup"), work.home)
    assert injection
    assert SECRET not in injection.text
    assert "[redacted:github-token]" in injection.text


def test_an_unreadable_state_counts_as_none(tmp_path: Path) -> None:
    before = CodingSession(tmp_path, "earlier")
    leave(before)
    for path in (Path(before.home.folder) / "project").rglob("last.json"):
        path.write_bytes(b"{")
    work = CodingSession(tmp_path)
    assert on_start(work.hook("SessionStart", source="startup"), work.home) is None


def test_the_start_of_a_session_needs_no_tokenizer_and_no_turn(work: CodingSession) -> None:
    put_document(work, DOCUMENT)
    code = (
        "import sys\n"
        "from daypack.history.home import find_home\n"
        "from daypack.hooks.call import HookCall\n"
        "from daypack.hooks.start import on_start\n"
        "call = HookCall(host='claude', event='SessionStart', session='s', cwd=sys.argv[2], source='startup')\n"
        "assert on_start(call, find_home(sys.argv[1]))\n"
        "slow = ('splintr', 'numpy', 'argparse', 'daypack.turn', 'daypack.session')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, work.home.root, str(work.folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
