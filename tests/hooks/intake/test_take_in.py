"""Taking in the session of a coding agent, with the real program and its detached process."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hooks.hook_process import HookProgram, event
from hooks.transcripts import ClaudeTranscript, codex_rows, copilot_rows, gemini_rows, qwen_rows
from memory.project.repositories import git, new_repository

import daypack
from daypack.files.lock import held_without_waiting
from daypack.history.home import find_home
from daypack.hooks.call import HookCall, HostName, Injection
from daypack.hooks.intake import take_in
from daypack.hooks.state import SessionState
from daypack.memory.project import find_project, project_memory
from daypack.session import Session

PORT = "The staging server listens on port 8443, and the certificate expires in March."
ANSWER = "I moved the staging server to port 8443 and renewed its certificate."


class Project:
    """A repository and the sessions of Claude Code in it."""

    def __init__(self, hook: HookProgram, folder: Path, transcripts: Path) -> None:
        self.hook = hook
        self.folder = folder
        self._transcripts = transcripts
        self.home = find_home(hook.home)

    def transcript(self, session: str) -> ClaudeTranscript:
        return ClaudeTranscript(self._transcripts / f"{session}.jsonl", session, str(self.folder))

    def send(self, name: str, transcript: ClaudeTranscript, **fields: object) -> None:
        """Run a hook of Claude Code, and wait for the detached process."""
        self.start(name, transcript, **fields)
        self.wait(transcript.session)

    def start(self, name: str, transcript: ClaudeTranscript, **fields: object) -> None:
        place = {"session_id": transcript.session, "cwd": str(self.folder), "transcript_path": str(transcript.path)}
        answered = self.hook("claude", data=event(name, **(place | fields)))
        assert (answered.code, answered.output, answered.errors) == (0, b"", b"")

    def wait(self, session: str) -> None:
        assert take_in.wait_for(self.home, HookCall(host="claude", event="", session=session, cwd=""), 60)

    def session(self, name: str) -> Session:
        return daypack.open_session(name, agent="claude-code", home=self.hook.home, create=False)

    def entries(self) -> list[str]:
        """Return the entries of the project's memory, oldest first."""
        memory = project_memory(self.home, find_project(str(self.folder)), create=False)
        if memory is None:
            return []
        with daypack.open_memory(home=self.hook.home) as memories:
            return [entry.raw_entry for entry in reversed(memories.list_entries(memory, limit=100).entries)]


@pytest.fixture
def project(hook: HookProgram, tmp_path: Path) -> Project:
    return Project(hook, new_repository(tmp_path / "app"), tmp_path / "transcripts")


def talk(transcript: ClaudeTranscript, said: str = PORT, answered: str = ANSWER) -> None:
    transcript.user(said)
    transcript.assistant("Let me look at the configuration first.", ("Bash", {"command": "cat nginx.conf"}))
    transcript.call("Bash", {"command": "systemctl reload nginx"}, "reloaded")
    transcript.assistant(answered)


def test_a_session_is_stored_captured_and_summed_up_after_its_turn(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("Stop", transcript)
    with project.session("s-1") as session:
        assert session.messages()[0].text == PORT
        assert session.meta["memory"]["memory_id"] == project_memory(project.home, find_project(str(project.folder)))
        assert (session.path / "context" / "recap.json").exists()
        assert session.search_history("certificate")
    assert project.entries() == [PORT, ANSWER]
    assert project.hook.log == []


def test_what_the_agent_says_between_its_calls_is_not_captured(project: Project) -> None:
    transcript = project.transcript("s-1")
    transcript.user("ok, thanks!")
    transcript.user(
        "<local-command-stdout>Compacted PreCompact [daypack hook] completed: Keep it.</local-command-stdout>"
    )
    transcript.user("<task-notification>The agent a1 has finished its search for ports.</task-notification>")
    talk(transcript)
    project.send("Stop", transcript)
    assert project.entries() == [PORT, ANSWER]


def test_short_commands_and_words_that_were_said_before_are_not_captured(project: Project) -> None:
    transcript = project.transcript("s-1")
    for said in ("commit", "Commit!", "run tests", "use Postgres", "restart web2", "先备份数据库。", PORT):
        transcript.user(said)
    kept = ["use Postgres", "restart web2", "先备份数据库。", PORT]
    talk(transcript)
    project.send("Stop", transcript)
    assert project.entries() == [*kept, ANSWER]
    transcript.user("use  postgres")
    talk(transcript, PORT.upper(), "The port is as before.")
    project.send("Stop", transcript)
    assert project.entries() == [*kept, ANSWER, "The port is as before."]


def test_taking_in_again_adds_only_what_is_new(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    for name in ("Stop", "SessionEnd", "Stop"):
        project.send(name, transcript)
    with project.session("s-1") as session:
        stored = len(session.messages())
    talk(transcript, "On the next day the ferry schedule moved to Fridays.", "I changed the schedule to Fridays.")
    project.send("SessionEnd", transcript)
    assert len(project.entries()) == 4
    with project.session("s-1") as session:
        assert len(session.messages()) == 2 * stored


def test_the_document_is_written_when_the_session_ends(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("Stop", transcript)
    memory = project_memory(project.home, find_project(str(project.folder))) or ""
    with daypack.open_memory(home=project.hook.home) as memories:
        first = memories.get_context(memory)
        project.send("SessionEnd", transcript)
        last = memories.get_context(memory)
    assert last.version > first.version
    assert "8443" in last.content


def test_sub_agents_are_children_and_are_not_captured(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    child = transcript.sub_agent("a1")
    child.user("Find every place that mentions the tide tables.")
    child.assistant("The tide tables are mentioned in harbour.py and in the docs.")
    project.send("SubagentStop", transcript, agent_transcript_path=str(child.path))
    with project.session("s-1") as session:
        assert [one.name for one in session.children] == ["a1"]
        assert "tide" not in " ".join(message.text for message in session.messages())
    assert project.entries() == [PORT, ANSWER]


def test_a_session_without_a_transcript_leaves_nothing_and_is_no_failure(project: Project) -> None:
    project.send("Stop", project.transcript("s-1"))
    assert project.home.list("claude-code") == []
    assert project.hook.log == []


def test_the_process_survives_the_end_of_the_agent(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    place = {"session_id": "s-1", "cwd": str(project.folder), "transcript_path": str(transcript.path)}
    # The agent: a shell that runs the hook and is then killed with its whole group.
    script = f"{sys.executable} -P -m daypack hook claude; echo done; sleep 600"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=project.hook.environment(),
        start_new_session=True,
    ) as agent:
        assert agent.stdin
        assert agent.stdout
        agent.stdin.write(str(event("SessionEnd", **place)).replace("'", '"').encode())
        agent.stdin.close()
        assert agent.stdout.readline() == b"done\n"
        os.killpg(agent.pid, signal.SIGKILL)
    project.wait("s-1")
    assert project.entries() == [PORT, ANSWER]


def test_requests_that_come_while_one_is_done_are_done_by_one_more(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    state = SessionState(project.home, "claude-code", "s-1")
    with held_without_waiting(state.lock):
        for name in ("Stop", "Stop", "SessionEnd"):
            project.start(name, transcript)
        while True:  # until one of the three waits, the others have ended or will end
            with held_without_waiting(state.next_lock) as free:
                if not free:
                    break
            time.sleep(0.01)
        assert state.has_requests()
        assert project.home.list("claude-code") == []
    project.wait("s-1")
    assert project.entries() == [PORT, ANSWER]


def test_two_sessions_of_one_repository_at_once_share_a_memory_and_nothing_else(project: Project) -> None:
    words = {"s-1": "The ferry leaves from pier four.", "s-2": "The harbour crane is out of service."}
    transcripts = {name: project.transcript(name) for name in words}
    for name, transcript in transcripts.items():
        talk(transcript, words[name], f"I noted for {name}: {words[name]}")
        (project.folder / name).mkdir()
    for _ in range(2):
        for transcript in transcripts.values():
            project.start("Stop", transcript, cwd=str(project.folder / transcript.session))
        for transcript in transcripts.values():
            project.start("SessionEnd", transcript)
    for name in words:
        project.wait(name)
    for name, other in (("s-1", "s-2"), ("s-2", "s-1")):
        with project.session(name) as session:
            text = " ".join(message.text for message in session.messages())
            assert text.count(words[name]) == 2
            assert words[other] not in text
    assert sorted(project.entries()) == sorted([*words.values(), *(f"I noted for {n}: {w}" for n, w in words.items())])
    assert project.hook.log == []


def test_worktrees_share_a_memory_and_clones_do_not(project: Project, hook: HookProgram, tmp_path: Path) -> None:
    worktree, clone = tmp_path / "tree", tmp_path / "clone"
    git(project.folder, "worktree", "add", "--quiet", str(worktree))
    git(tmp_path, "clone", "--quiet", str(project.folder), str(clone))
    for name, folder in (("s-1", project.folder), ("s-2", worktree), ("s-3", clone)):
        place = Project(hook, folder, tmp_path / "transcripts")
        transcript = place.transcript(name)
        talk(transcript, f"In {name} the harbour master asked for a tide table.", "Fine.")
        place.send("SessionEnd", transcript)
    assert [entry[3:6] for entry in project.entries()] == ["s-1", "s-2"]
    assert [entry[3:6] for entry in Project(hook, clone, tmp_path).entries()] == ["s-3"]


def test_a_project_whose_memory_is_off_is_recorded_without_one(project: Project) -> None:
    (project.folder / ".daypack.toml").write_text("memory = false\n")
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("SessionEnd", transcript)
    with project.session("s-1") as session:
        assert session.meta.get("memory") is None
        assert len(session.messages()) == 5
    assert project.hook.log == []


def test_a_step_that_fails_is_logged_and_the_others_are_done(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    (project.folder / ".daypack.toml").write_text("memory = [\n")
    project.send("Stop", transcript)
    with project.session("s-1") as session:
        assert session.search_history("certificate")
        assert (session.path / "context" / "recap.json").exists()
    assert [line.split(" ")[2] for line in project.hook.log] == ["Stop:project"]


def test_an_unreadable_transcript_is_logged(project: Project) -> None:
    transcript = project.transcript("s-1")
    transcript.path.write_bytes(b"\xff\xfe no transcript\n")
    project.send("Stop", transcript)
    assert [line.split(" ")[2] for line in project.hook.log] == ["Stop:import"]


def test_a_memory_that_was_erased_is_not_missed(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("Stop", transcript)
    with closing(sqlite3.connect(project.hook.folder / "memory" / "store.sqlite")) as store:
        store.execute("DELETE FROM memories")
        store.commit()
    talk(transcript)
    project.send("Stop", transcript)
    with project.session("s-1") as session:
        assert len(session.messages()) == 10
    assert project.hook.log == []


NOTE = '<note id="1f3a9c02" name="memory">\nThe lighthouse keeper lives in Cuxhaven.\n</note 1f3a9c02>'


def inject(project: Project, host: HostName, session: str) -> None:
    call = HookCall(host=host, event="UserPromptSubmit", session=session, cwd="/")
    SessionState(project.home, call.agent, session).record(call, Injection(NOTE, ("entry:1",)))


def test_a_session_is_as_old_as_its_newest_message_whatever_hooks_added(project: Project) -> None:
    transcript = project.transcript("s-1")
    inject(project, "claude", "s-1")
    talk(transcript)
    project.send("Stop", transcript)
    with project.session("s-1") as session:
        newest = session.messages()[-1].ts
        assert (session.path / "updated_at").read_text()[:19] == newest[:19]


def test_what_hooks_injected_is_an_event_once_and_is_not_captured(project: Project) -> None:
    transcript = project.transcript("s-1")
    inject(project, "claude", "s-1")
    transcript.injected(NOTE)
    talk(transcript, f"{PORT}\n\n{NOTE}", f"{ANSWER}\n\n{NOTE}")
    for name in ("Stop", "SessionEnd"):
        project.send(name, transcript)
    with project.session("s-1") as session:
        events = [one.data for one in session.events() if one.type == "hook.injected"]
    assert [(one["event"], one["items"], one["chars"]) for one in events] == [
        ("UserPromptSubmit", ["entry:1"], len(NOTE))
    ]
    assert project.entries() == [PORT, ANSWER]


def rows_of(host: HostName, session: str, cwd: str) -> str:
    """Return a transcript in which what a hook injected comes back where the host puts it, and in its answer."""
    answer = f"{ANSWER}\n\n{NOTE}"
    if host == "codex":
        rows = (("developer", NOTE), ("user", PORT), ("developer", NOTE), ("assistant", answer))
        return codex_rows(session, cwd, *rows)
    make = {"copilot": copilot_rows, "qwen": qwen_rows, "gemini": gemini_rows}[host]
    return make(session, cwd, PORT, NOTE, answer)


@pytest.mark.parametrize("host", ["codex", "copilot", "qwen", "gemini"])
def test_what_was_injected_into_other_agents_is_not_captured(project: Project, tmp_path: Path, host: HostName) -> None:
    session = "01a1ec02-02de-7ab3-90ba-116ce06a033c"
    paths = {
        "codex": tmp_path / f"rollout-2026-11-17T10-00-00-{session}.jsonl",
        "copilot": tmp_path / ".copilot" / "session-state" / session / "events.jsonl",
        "qwen": tmp_path / "chats" / f"{session}.jsonl",
        "gemini": tmp_path / "tmp" / "shop" / "chats" / f"session-1-{session[:8]}.jsonl",
    }
    path = paths[host]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows_of(host, session, str(project.folder)))
    inject(project, host, session)
    place = {"session_id": session, "cwd": str(project.folder)}
    if host != "copilot":  # which does not say at its end where the transcript is
        place["transcript_path"] = str(path)
    project.hook(host, data=event("SessionEnd", **place), HOME=str(tmp_path))
    assert take_in.wait_for(project.home, HookCall(host=host, event="", session=session, cwd=""), 60)
    assert project.entries() == [PORT, ANSWER]
    assert project.hook.log == []


def test_a_locked_memory_delays_neither_prompts_nor_the_other_steps(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("Stop", transcript)
    talk(transcript, "The ferry leaves from pier four.", "I noted the pier of the ferry.")
    with closing(sqlite3.connect(project.hook.folder / "memory" / "store.sqlite", isolation_level=None)) as store:
        store.execute("BEGIN EXCLUSIVE")
        place = {"session_id": "s-2", "cwd": str(project.folder)}
        for name in ("SessionStart", "UserPromptSubmit"):
            answered = project.hook("claude", data=event(name, **place, source="startup", prompt="Which pier?"))
            assert (answered.code, answered.errors) == (0, b"")
        project.start("Stop", transcript)
        while True:  # until the messages are stored: the memory is waited for after that
            with project.session("s-1") as session:
                if len(session.messages()) == 10:
                    break
            time.sleep(0.05)
        store.execute("ROLLBACK")
    project.wait("s-1")
    assert len(project.entries()) == 4


def test_a_session_that_adds_nothing_to_the_document_leaves_its_version(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("SessionEnd", transcript)
    memory = project_memory(project.home, find_project(str(project.folder))) or ""
    with daypack.open_memory(home=project.hook.home) as memories:
        before = memories.get_context(memory).version
        for name in ("Stop", "SessionEnd", "SessionEnd"):
            project.send(name, transcript)
        assert memories.get_context(memory).version == before


def test_entries_that_others_added_are_found_by_later_hooks(project: Project) -> None:
    transcript = project.transcript("s-1")
    talk(transcript)
    project.send("Stop", transcript)
    memory = project_memory(project.home, find_project(str(project.folder))) or ""
    with daypack.open_memory(home=project.hook.home) as memories:
        memories.add_entry(memory, raw_entry="The lighthouse keeper of Cuxhaven is called Hinrich Petersen.")
    project.send("Stop", transcript)
    question = "What is the lighthouse keeper of Cuxhaven called?"
    place = {"session_id": "s-2", "cwd": str(project.folder)}
    answered = project.hook("claude", data=event("UserPromptSubmit", **place, prompt=question))
    assert b"Hinrich Petersen" in answered.output
