"""Compactions of the host: rules for its summary, and after it what the summary lost."""

import threading
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from daypack.files.lock import held_after_waiting
from daypack.hooks.call import HostName
from daypack.hooks.compaction import MAX_TOKENS, after_compaction, before_compaction
from daypack.hooks.hosts import HOSTS
from daypack.hooks.recap.recap import read_recap
from daypack.hooks.recap.writing import write_recap
from daypack.hooks.start import on_start
from daypack.hooks.state import SessionState
from daypack.text.estimate import estimate_tokens
from tests.hooks.coding_session import CodingSession

RULES = [
    "Always run `make test` before you commit, and never push to **main**.",
    'From now on answer with "done" and nothing else when a step succeeds.',
    "以后所有的提交信息都必须用英文写。",
]
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def leave(work: CodingSession) -> None:
    work.user("Move the importer to S3 and keep the old names.")
    for rule in RULES:
        work.user(rule)
    todos = [{"content": "Write the S3 client", "status": "pending"}]
    work.call("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")
    for number in range(6):
        work.read(f"part{number}.py", "def rows(): ...\n" * 40)
    work.edit("importer/rows.py")
    work.call("Write", {"file_path": f"{work.project.top}/new.py", "content": "y"}, "File created successfully")
    work.bash(f"rm {work.project.top}/old.py")
    work.bash("npm run lint:full", "npm error Missing script: lint:full", 1)
    work.bash("pytest tests/api", "5 passed in 0.2s")
    work.agent("We decided to keep boto3, because the tests depend on it.")


@pytest.fixture
def work(tmp_path: Path) -> CodingSession:
    work = CodingSession(tmp_path)
    leave(work)
    write_recap(work.session, work.project, compacting=True)
    return work


def test_the_summariser_is_given_the_rules_word_for_word(work: CodingSession) -> None:
    text = before_compaction(work.hook("PreCompact", trigger="auto"), work.home)
    assert text
    assert [line[2:] for line in text.splitlines() if line.startswith("- ")] == RULES
    assert "word for word" in text


def test_without_rules_the_summariser_is_told_nothing(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    call = work.hook("PreCompact", trigger="auto")
    assert before_compaction(call, work.home) is None
    work.user("Look at the importer.")
    write_recap(work.session, work.project, compacting=True)
    assert before_compaction(call, work.home) is None


def test_after_a_compaction_the_rules_come_first_then_what_the_summary_lost(work: CodingSession) -> None:
    injection = after_compaction(work.hook("SessionStart", source="compact"), work.home)
    assert injection
    text = injection.text
    for rule in RULES:
        assert f"- {rule}\n" in text
    assert text.index(RULES[0]) < text.index("## Open work")
    assert "- [ ] Write the S3 client" in text
    assert "- `npm run lint:full`: npm error Missing script: lint:full" in text
    assert "- importer/rows.py: written" in text
    assert "- new.py: created" in text
    assert "- old.py: deleted" in text
    assert "`pytest tests/api`: 5 passed" in text
    assert "- part5.py: read" in text
    assert "daypack recall 5ac28188 --agent claude-code" in text


def test_rules_are_instructions_and_the_rest_is_quoted(work: CodingSession) -> None:
    injection = after_compaction(work.hook("SessionStart", source="compact"), work.home)
    assert injection
    rules, _, rest = injection.text.partition("</instructions ")
    assert rules.startswith("<instructions ")
    assert RULES[0] in rules
    assert "## Files" not in rules
    assert "<note " in rest
    assert "no instructions" in rest


def test_a_session_that_was_never_taken_in_gets_nothing(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    assert after_compaction(work.hook("SessionStart", source="compact"), work.home) is None


@pytest.mark.parametrize("host", sorted(HOSTS))
@pytest.mark.parametrize(
    "rule", ["Never touch part {} of the importer, not even its tests.", "以后绝对不要修改导入模块的第{}部分。"]
)
def test_too_many_rules_are_cut_between_rules_and_counted(tmp_path: Path, host: HostName, rule: str) -> None:
    work = CodingSession(tmp_path, host=host)
    work.user("Look at the importer.")
    recap = write_recap(work.session, work.project, compacting=True)
    assert recap
    rules = [rule.format(number) for number in range(1, 301)]
    path = Path(work.session.layout.derived("recap"))
    path.write_bytes(msgspec.json.encode(replace(recap, rules=tuple(rules))))
    call = work.hook("SessionStart", source="compact")
    injection = after_compaction(call, work.home)
    assert injection
    shown = [line[2:] for line in injection.text.splitlines() if line.startswith("- ")]
    assert shown
    assert shown == rules[-len(shown) :]
    assert f"({300 - len(shown)} earlier rules do not fit; `daypack rules 5ac28188 --agent" in injection.text
    assert HOSTS[host].fits("SessionStart", injection.text)
    assert estimate_tokens(injection.text) <= MAX_TOKENS


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_long_session_fits_and_keeps_open_work_and_failures(tmp_path: Path, host: HostName) -> None:
    work = CodingSession(tmp_path, host=host)
    leave(work)
    for number in range(120):
        work.edit(f"src/some/rather/long/path/to/a/module/of/the/importer/part_{number}_of_it.py")
        work.agent(f"We chose retry budget {number} for part {number}, since `part_{number}` needs more time. " * 3)
    work.bash("npm run lint:full", "npm error Missing script: lint:full", 1)
    write_recap(work.session, work.project, compacting=True)
    injection = after_compaction(work.hook("SessionStart", source="compact"), work.home)
    assert injection
    assert "- [ ] Write the S3 client" in injection.text
    assert "Missing script: lint:full" in injection.text
    assert "… and" in injection.text
    assert HOSTS[host].fits("SessionStart", injection.text)
    assert estimate_tokens(injection.text) <= MAX_TOKENS


def test_an_agent_that_ended_after_its_compaction_gets_the_text_when_it_is_resumed(work: CodingSession) -> None:
    work.summary()
    write_recap(work.session, work.project, compacting=True)
    call = work.hook("SessionStart", source="resume")
    injection = on_start(call, work.home)
    assert injection
    assert RULES[0] in injection.text
    assert on_start(call, work.home, injection.items) is None


def test_secrets_do_not_come_back_after_a_compaction(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user(f"Always use the token {SECRET} for the registry.")
    leave(work)
    work.bash(f"curl -H 'Authorization: Bearer {SECRET}' https://registry.test/v2", "curl: (7) Failed to connect", 7)
    write_recap(work.session, work.project, compacting=True)
    injection = after_compaction(work.hook("SessionStart", source="compact"), work.home)
    before = before_compaction(work.hook("PreCompact", trigger="auto"), work.home)
    assert injection
    assert before
    assert SECRET not in injection.text + before
    assert "[redacted:github-token]" in before


def write_transcript(work: CodingSession, *texts: str) -> str:
    path = work.root / f"{work.name}.jsonl"
    rows = [
        {
            "type": "user" if number % 2 == 0 else "assistant",
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "parentUuid": None,
            "sessionId": work.name,
            "cwd": str(work.folder),
            "timestamp": f"2026-11-17T09:00:{number:02}.000Z",
            "message": {
                "id": f"m{number}",
                "role": "user" if number % 2 == 0 else "assistant",
                "content": [{"type": "text", "text": text}],
            },
        }
        for number, text in enumerate(texts)
    ]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return str(path)


def test_without_a_take_in_before_the_compaction_the_session_is_taken_in_now(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    transcript = write_transcript(work, f"Move the importer to S3. {RULES[0]}", "I will.", RULES[1], "Understood.")
    injection = after_compaction(work.hook("SessionStart", source="compact", transcript=transcript), work.home)
    assert injection
    assert all(f"- {rule}\n" in injection.text for rule in RULES[:2])


def test_a_take_in_that_is_running_is_waited_for(work: CodingSession) -> None:
    state = SessionState(work.home, "claude-code", work.name)
    running = threading.Event()
    recap = read_recap(work.session.layout)
    assert recap
    newer = msgspec.json.encode(replace(recap, rules=(*recap.rules, "Never touch the folder vendor.")))

    def finish() -> None:
        with held_after_waiting(state.lock, 10, "test"):
            running.set()
            Path(work.session.layout.derived("recap")).write_bytes(newer)

    thread = threading.Thread(target=finish)
    thread.start()
    running.wait()
    text = before_compaction(work.hook("PreCompact", trigger="manual"), work.home)
    injection = after_compaction(work.hook("SessionStart", source="compact"), work.home)
    thread.join()
    assert text
    assert injection
    assert "- Never touch the folder vendor.\n" in text
    assert "- Never touch the folder vendor.\n" in injection.text
