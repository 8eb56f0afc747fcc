"""`daypack hook` from standard input to standard output: the texts of a whole session of an agent."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daypack.hooks.call import HostName
from daypack.hooks.recap.writing import write_recap
from tests.hooks.coding_session import CodingSession

FACT = "The staging database listens on port 6543 behind pgbouncer, because 5432 is taken by the old replica."
RULE = "Always run `make test` before you commit, and never push to **main**."
QUESTION = "Which port does the staging database behind pgbouncer listen on?"


def hook(work: CodingSession, event: str, **fields: Any) -> str:
    """Run the program and return the text that the agent gets."""
    given = {"hook_event_name": event, "session_id": work.name, "cwd": str(work.folder), **fields}
    ran = subprocess.run(
        [sys.executable, "-m", "daypack", "hook", work.host],
        input=json.dumps(given).encode(),
        capture_output=True,
        check=True,
        env={
            "DAYPACK_HOME": work.home.root,
            "DAYPACK_UID": work.home.uid,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": _sources(),
        },
    )
    assert not ran.stderr
    log = Path(work.home.folder) / "hook.log"
    assert not log.exists(), log.read_text(encoding="utf-8")
    if not ran.stdout or event == "PreCompact":
        return ran.stdout.decode()
    answer = json.loads(ran.stdout)
    return answer.get("additionalContext") or answer["hookSpecificOutput"]["additionalContext"]


def _sources() -> str:
    return ":".join(sys.path)


@pytest.mark.parametrize("host", ["claude", "copilot"])
def test_an_agent_gets_the_texts_of_its_events_and_each_only_once(tmp_path: Path, host: HostName) -> None:
    work = CodingSession(tmp_path, host=host)
    assert hook(work, "SessionStart", source="startup") == ""
    work.user(f"{FACT} {RULE}")
    work.read("part.py", "def rows(): ...\n" * 60)
    work.agent("I will keep that in mind.")
    work.index()
    write_recap(work.session, work.project, compacting=True)
    assert hook(work, "UserPromptSubmit", prompt=QUESTION) == ""
    if host == "claude":
        assert f"- {RULE}\n" in hook(work, "PreCompact", trigger="manual")
    work.summary()
    write_recap(work.session, work.project, compacting=True)
    after = hook(work, "SessionStart", source="compact")
    assert f"- {RULE}\n" in after
    assert FACT in hook(work, "UserPromptSubmit", prompt=QUESTION)
    assert hook(work, "UserPromptSubmit", prompt=QUESTION) == ""
    assert hook(work, "SessionStart", source="resume") == ""
    hook(work, "SessionStart", source="compact")
    assert FACT in hook(work, "UserPromptSubmit", prompt=QUESTION)
