"""The recap of a session: what later hooks need, computed without a model and without a change of the messages."""

import os
import time
from pathlib import Path

import pytest

from daypack.hooks.recap.last_session import read_last
from daypack.hooks.recap.recap import Recap, read_recap
from daypack.hooks.recap.writing import write_recap
from daypack.upkeep.archive import Guard, archive, delete
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request
from tests.hooks.coding_session import CodingSession

RULES = [
    "Always run `make test` before you commit, and never push to **main**.",
    'From now on answer with "done" and nothing else when a step succeeds.',
]
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def work(tmp_path: Path) -> CodingSession:
    return CodingSession(tmp_path)


def write(work: CodingSession, *, compacting: bool = True) -> Recap:
    recap = write_recap(work.session, work.project, compacting=compacting)
    assert recap is not None
    assert recap == read_recap(work.session.layout)
    return recap


def long_talk(work: CodingSession, turns: int = 4) -> None:
    """Talk enough that a document is shorter than what it is made from."""
    for number in range(turns):
        work.user(f"Please look at part {number} of the importer and say what it does with empty rows.")
        work.read(f"importer/part{number}.py", "def rows(): ...\n" * 30)
        work.agent(f"Part {number} skips empty rows, because `rows()` returns nothing for them. " * 3)


def test_an_empty_session_has_no_recap(work: CodingSession) -> None:
    assert write_recap(work.session, work.project) is None
    assert read_recap(work.session.layout) is None


def test_rules_are_kept_word_for_word_in_the_order_given(work: CodingSession) -> None:
    work.user(f"We move the importer to S3. {RULES[0]}")
    work.agent("Understood.")
    work.user(RULES[1])
    assert write(work).rules == tuple(RULES)


@pytest.mark.parametrize(
    "rule",
    [
        "Bitte schreibe alle Commit-Nachrichten immer auf Englisch.",
        "以后所有的提交信息都必须用英文写。",
        "これからは必ずテストを実行してからコミットしてください。",
    ],
)
def test_rules_of_other_languages_are_kept_too(work: CodingSession, rule: str) -> None:
    work.user(rule)
    assert write(work).rules == (rule,)


def test_a_dropped_rule_is_not_in_the_recap(work: CodingSession) -> None:
    work.user(RULES[0])
    work.session.drop_rule(work.session.rules()[0].id)
    assert write(work).rules == ()


def test_files_are_listed_with_what_happened_to_them_changed_ones_first(work: CodingSession) -> None:
    long_talk(work)
    work.edit("importer/rows.py")
    work.edit("importer/rows.py", "x = 2", "x = 3")
    work.call("Write", {"file_path": f"{work.project.top}/new.py", "content": "y"}, "File created successfully")
    work.read("docs/guide.md")
    work.bash(f"ls {work.project.top}/docs")
    files = {note.path: note.summary.partition(";")[0] for note in write(work).files}
    assert list(files)[:2] == ["new.py", "importer/rows.py"]
    assert files["importer/rows.py"] == "written 2x"
    assert files["docs/guide.md"] == "read"
    assert not any(summary == "listed" for summary in files.values())


def test_the_newest_run_of_a_suite_counts_and_failures_stay_until_they_are_mended(work: CodingSession) -> None:
    long_talk(work)
    work.bash("pytest tests/api", "FAILED tests/api/test_rows.py::test_empty - KeyError: 'rows'\n1 failed, 4 passed", 1)
    work.bash("npm run lint:full", "npm error Missing script: lint:full", 1)
    recap = write(work)
    assert recap.tests[0].startswith("`pytest tests/api`: 1 failed, 4 passed")
    assert any("npm run lint:full" in line and "Missing script" in line for line in recap.failed)
    work.edit("importer/rows.py")
    work.bash("pytest tests/api", "5 passed in 0.2s")
    recap = write(work)
    assert recap.tests[0].startswith("`pytest tests/api`: 5 passed")
    assert not any("pytest" in line for line in recap.failed)


def test_a_test_that_failed_is_dropped_once_a_wider_run_passed(work: CodingSession) -> None:
    long_talk(work)
    work.bash("go test -run TestRows ./rows", "--- FAIL: TestRows (0.00s)\nFAIL\tshop/rows\t0.1s", 1)
    work.bash("go test -run TestKeys ./keys", "--- FAIL: TestKeys (0.00s)\nFAIL\tshop/keys\t0.1s", 1)
    work.bash("go test ./rows", "ok  \tshop/rows\t0.1s")
    tests = write(work).tests
    assert [line.partition("`:")[0] for line in tests] == ["`go test ./rows", "`go test -run TestKeys ./keys"]
    work.bash("go test ./...", "ok  \tshop/rows\t0.1s\nok  \tshop/keys\t0.1s")
    assert not any("TestKeys" in line for line in write(work).tests)


def test_open_work_and_the_task_are_in_the_recap_and_in_the_document(work: CodingSession) -> None:
    work.user("Move the nightly export to S3 and keep the old names.")
    todos = [
        {"content": "Write the S3 client", "status": "completed"},
        {"content": "Move the export", "status": "pending"},
    ]
    work.call("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")
    long_talk(work)
    recap = write(work)
    assert recap.pending == ("Move the export",)
    assert "- [ ] Move the export" in recap.document
    assert recap.document.startswith("# Context\n")


def test_nothing_is_lost_before_the_host_compacts_and_everything_before_its_newest_summary_after(
    work: CodingSession,
) -> None:
    long_talk(work)
    assert write(work).lost == 0
    first = work.summary()
    work.user("Go on with the importer.")
    assert write(work).lost == first - 1
    work.agent("The importer is moved.")
    assert write(work).lost == first - 1
    second = work.summary()
    assert write(work).lost == second - 1


def test_a_compaction_in_the_transcript_says_what_was_lost_and_what_was_kept(work: CodingSession) -> None:
    long_talk(work)
    last = work.agent("Done.")
    write(work)
    work.session.append_event("import.compacted", {"id": "c1", "through": last, "kept": [last - 1, last]})
    recap = write(work)
    assert (recap.lost, recap.kept) == (last, (last - 1, last))
    work.user("Go on.")
    assert write(work).lost == last
    work.session.append_event("import.compacted", {"id": "c2", "through": last + 1, "kept": []})
    recap = write(work)
    assert (recap.lost, recap.kept) == (last + 1, ())


def test_a_recap_is_written_again_only_if_something_is_new(work: CodingSession) -> None:
    long_talk(work)
    write(work)
    path = work.session.layout.derived("recap")
    before = os.stat(path)
    write(work)
    write(work, compacting=False)
    assert os.stat(path).st_ino == before.st_ino
    work.user("And now?")
    write(work)
    assert os.stat(path).st_ino != before.st_ino


def test_a_damaged_recap_counts_as_missing_and_is_replaced(work: CodingSession) -> None:
    long_talk(work)
    recap = write(work)
    Path(work.session.layout.derived("recap")).write_bytes(b'{"through": "x"')
    assert read_recap(work.session.layout) is None
    assert write(work) == recap


def test_messages_stay_as_they_are_and_no_compaction_is_recorded(work: CodingSession) -> None:
    long_talk(work)
    before = Path(work.session.layout.messages).read_bytes()
    write(work)
    assert Path(work.session.layout.messages).read_bytes() == before
    assert work.session.compactions == ()


def test_secrets_are_redacted(work: CodingSession) -> None:
    work.user(f"Always use the token {SECRET} for the registry. Deploy the shop.")
    long_talk(work)
    work.bash(f"curl -H 'Authorization: Bearer {SECRET}' https://registry.test/v2", "curl: (7) Failed to connect", 7)
    work.agent(f"I used {SECRET} and it failed.")
    write(work)
    for path in (work.session.layout.derived("recap"), *(Path(work.home.folder) / "project").rglob("last.json")):
        assert SECRET not in Path(path).read_text(encoding="utf-8")


def test_the_state_of_the_project_s_last_sessions_is_kept_newest_first(tmp_path: Path) -> None:
    first = CodingSession(tmp_path, "first")
    long_talk(first)
    first.edit("a.py")
    write(first)
    second = CodingSession(tmp_path, "second", "codex")
    long_talk(second, 5)
    second.edit("b.py")
    write(second)
    last = read_last(first.home, first.project)
    assert [(state.agent, state.session) for state in last] == [("codex", "second"), ("claude-code", "first")]
    assert [note.path for note in last[0].files] == ["b.py"]
    for number in range(2):
        other = CodingSession(tmp_path, f"other-{number}")
        long_talk(other)
        other.edit("c.py")
        write(other)
    assert len(read_last(first.home, first.project)) == 3


def test_a_session_in_which_nothing_happened_is_no_last_session(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("Hello")
    work.agent("Hello, what shall I do?")
    write(work)
    assert read_last(work.home, work.project) == ()


def test_sessions_of_another_project_are_not_mixed(tmp_path: Path) -> None:
    shop, site = CodingSession(tmp_path, "one"), CodingSession(tmp_path, "two", project="site")
    for work in (shop, site):
        long_talk(work)
        work.edit("a.py")
        write(work)
    assert [state.session for state in read_last(shop.home, shop.project)] == ["one"]
    assert [state.session for state in read_last(site.home, site.project)] == ["two"]


def test_what_is_erased_from_a_session_is_in_no_recap_and_in_no_state_of_a_last_session(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("The code name of the launch is Bluebird-7.")
    long_talk(work)
    work.edit("a.py")
    work.agent("I wrote Bluebird-7 into a.py.")
    write(work)
    work.session.close()

    def holding() -> list[str]:
        files = (path for path in Path(work.home.root).rglob("*") if path.is_file())
        return [path.name for path in files if b"Bluebird-7" in path.read_bytes()]

    assert {"recap.json", "last.json"} <= set(holding())
    apply(work.home, Request(literal="Bluebird-7", agent="claude-code", session=work.name))
    assert holding() == []


def test_a_deleted_session_is_no_last_session_any_more(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    long_talk(work)
    work.edit("a.py")
    write(work)
    work.session.close()
    guard = Guard(time.time(), force=True)
    archive(work.home, "claude-code", work.name, guard)
    delete(work.home, "claude-code", work.name, guard)
    assert read_last(work.home, work.project) == ()
