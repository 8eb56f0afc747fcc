"""Hooks with sessions in a database: recorded there from two machines; a database that is down holds up no agent."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hooks.hook_process import Answered, HookProgram, event
from hooks.transcripts import ClaudeTranscript
from memory.project.repositories import new_repository
from postgres_server import needs_postgres

import daypack
from daypack.errors import StorageFailed
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.call import HookCall
from daypack.hooks.intake import take_in
from daypack.hooks.packing import packing
from daypack.hooks.packing.process import Answers
from daypack.session import Session

PORT = "The staging server listens on port 8443, and the certificate expires in March."
ANSWER = "I moved the staging server to port 8443 and renewed its certificate."
NOBODY = "postgresql://ada:s3cret@127.0.0.1:1/sessions"


class Machine:
    """A machine with a coding agent: its own home and transcripts, one database for all."""

    def __init__(self, root: Path, url: str) -> None:
        self.hook = HookProgram(str(root / "home"), DAYPACK_STORE_URL=url, DAYPACK_UID="ada")
        self.home = find_home(root / "home", "ada", url)
        self.folder = new_repository(root / "app")
        self.transcripts = root / "transcripts"

    def transcript(self, session: str) -> ClaudeTranscript:
        return ClaudeTranscript(self.transcripts / f"{session}.jsonl", session, str(self.folder))

    def send(self, name: str, transcript: ClaudeTranscript, **fields: object) -> Answered:
        """Run a hook, and wait for the process that it left behind."""
        place = {"session_id": transcript.session, "cwd": str(self.folder), "transcript_path": str(transcript.path)}
        answered = self.hook("claude", data=event(name, **(place | fields)))
        assert (answered.code, answered.errors) == (0, b"")
        assert take_in.wait_for(self.home, HookCall(host="claude", event="", session=transcript.session, cwd=""), 60)
        return answered

    def open(self, name: str) -> Session:
        store = self.home.database.url if self.home.database else ""
        return daypack.open_session(
            name, agent="claude-code", home=self.home.root, uid="ada", store=store, create=False
        )

    @property
    def log(self) -> list[str]:
        path = Path(self.home.folder) / "hook.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://ada:s3cret@127.0.0.1:{server.getsockname()[1]}/sessions"


def talk(transcript: ClaudeTranscript, said: str = PORT, answered: str = ANSWER) -> None:
    transcript.user(said)
    transcript.call("Bash", {"command": "systemctl reload nginx"}, "reloaded")
    transcript.assistant(answered)


@needs_postgres
def test_sessions_of_two_machines_are_recorded_in_one_database(tmp_path: Path, database_url: str) -> None:
    here, there = (Machine(tmp_path / name, database_url) for name in ("one", "two"))
    for machine, name in ((here, "s-1"), (there, "s-2")):
        transcript = machine.transcript(name)
        talk(transcript)
        machine.send("SessionStart", transcript, source="startup")
        machine.send("Stop", transcript)
        talk(transcript, "Now move the ferry schedule to Fridays.", "It is on Fridays now.")
        machine.send("SessionEnd", transcript)
        assert machine.log == []
    for machine in (here, there):
        assert machine.home.list("claude-code") == ["s-1", "s-2"]
        for name in ("s-1", "s-2"):
            with machine.open(name) as session:
                texts = [message.text for message in session.messages()]
                assert (texts[0], texts[-1], len(texts)) == (PORT, "It is on Fridays now.", 8)
        assert not Path(machine.home.folder, "agent").exists()


@needs_postgres
def test_a_machine_continues_the_session_of_another(tmp_path: Path, database_url: str) -> None:
    here, there = (Machine(tmp_path / name, database_url) for name in ("one", "two"))
    transcript = here.transcript("s-1")
    talk(transcript)
    here.send("Stop", transcript)
    moved = there.transcript("s-1")
    moved.path.write_bytes(transcript.path.read_bytes())
    there.send("Stop", moved)
    with here.open("s-1") as session:
        assert len(session.messages()) == 4
    assert here.log + there.log == []


@needs_postgres
def test_what_a_database_that_was_down_has_missed_is_stored_by_the_next_take_in(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, database_url)
    transcript = machine.transcript("s-1")
    talk(transcript)
    call = HookCall(
        host="claude", event="Stop", session="s-1", cwd=str(machine.folder), transcript=str(transcript.path)
    )
    down = find_home(machine.home.root, "ada", NOBODY)
    assert down.database
    down.database.wait_at_most(0.1)
    monkeypatch.setenv("DAYPACK_STORE_URL", NOBODY)
    with pytest.raises(StorageFailed):
        take_in.take_in(call, down, 1.0)
    talk(transcript, "Now move the ferry schedule to Fridays.", "It is on Fridays now.")
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    take_in.take_in(call, machine.home, 1.0)
    with machine.open("s-1") as session:
        assert len(session.messages()) == 8


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "Stop", "PostToolUse"])
def test_a_database_that_is_down_holds_up_no_agent(tmp_path: Path, silent: str, name: str) -> None:
    for url in (NOBODY, silent):
        hook = HookProgram(str(tmp_path / "home"), DAYPACK_STORE_URL=url)
        answered = hook("claude", data=event(name, cwd=str(tmp_path), source="startup", prompt="Which port is it?"))
        assert (answered.code, answered.output, answered.errors) == (0, b"", b"")
        assert not any("s3cret" in line or "no answer within 4 s" in line for line in answered.log)


def test_a_large_output_that_cannot_be_stored_stays_as_it_is(tmp_path: Path) -> None:
    hook = HookProgram(str(tmp_path / "home"), DAYPACK_STORE_URL=NOBODY)
    hook.folder.mkdir(parents=True)
    (hook.folder / "config.toml").write_text("[hooks]\nswap_output_tokens = 100\n")
    output = "the harbour and the lantern\n" * 2_000
    answered = hook("claude", data=event("PostToolUse", tool_name="Bash", tool_response={"stdout": output}))
    assert (answered.code, answered.output) == (0, b"")
    (line,) = answered.log
    assert "PostToolUse" in line
    assert "s3cret" not in line


def test_an_address_that_is_wrong_is_a_line_in_the_log_of_the_home(tmp_path: Path) -> None:
    hook = HookProgram(str(tmp_path / "home"), DAYPACK_STORE_URL="mysql://ada:s3cret@db/sessions")
    answered = hook("claude", data=event("UserPromptSubmit", prompt="Which port is it?"))
    assert (answered.code, answered.output) == (0, b"")
    (line,) = answered.log
    assert "is no address of a database" in line
    assert "s3cret" not in line


def test_opencode_is_not_asked_to_wait_again_for_a_database_that_did_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = find_home(tmp_path / "home", "ada", NOBODY)
    asked: list[object] = []

    class Down:
        def __init__(self, home: Home, database: str) -> None:
            self.place = home.sessions_place, database

        def pack(self, request: object) -> object:
            asked.append(request)
            raise StorageFailed("connection refused", place=home.sessions_place)

    monkeypatch.setattr(packing, "Packer", Down)
    monkeypatch.setenv("DAYPACK_HOME", home.root)
    answers = Answers(home)
    wanted: dict[str, object] = {"session": "s", "visible": [], "user": "u", "model": "m", "limit": 1}
    request = json.dumps({"n": 1, "do": "pack", "request": wanted}).encode()
    assert "error" in answers.answer(request)
    assert answers.answer(request) == {"n": 1, "result": None}
    assert len(asked) == 1
