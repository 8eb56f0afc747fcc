"""The examples are run as their users run them: as programs, with real clients, against a model that checks them."""

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from docs.example_runs import ROOT
from model_endpoint import TOO_LONG, Call, ModelEndpoint, Request, Say
from turn.snapshot_replies import block, section

import daypack

EXAMPLES = sorted(path.name for path in ROOT.glob("examples/*.py"))
MAX_LINES = 60


class Program:
    """Runs examples in one home, in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = str(home / "daypack")
        self.folder = home / "project"
        self.folder.mkdir()

    def start(self, endpoint: ModelEndpoint, name: str, *arguments: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, **endpoint.environment, "DAYPACK_HOME": self.home, "MODEL": "scripted"}
        return subprocess.Popen(
            (sys.executable, "-W", "error", str(ROOT / "examples" / name), *arguments),
            cwd=self.folder,
            env={**environment, "DAYPACK_EMBEDDING_MODEL": "none"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background ignores Ctrl-C, and so would the program.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )

    def run(self, endpoint: ModelEndpoint, name: str, *arguments: str, typed: str = "") -> str:
        with self.start(endpoint, name, *arguments) as process:
            printed, errors = process.communicate(typed, timeout=120)
        assert process.returncode == 0, errors
        return printed

    def session(self, name: str, agent: str) -> daypack.Session:
        return daypack.open_session(name, agent=agent, home=self.home, create=False)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert text.count("\n") < MAX_LINES
    docstring = text.split('"""')[1]
    assert f"python examples/{name}" in docstring or f"examples/{name}" in docstring
    assert f"[{name}]({name})" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


def test_the_chat_streams_and_continues_where_it_was(program: Program) -> None:
    with ModelEndpoint("Hello, Ada.", "You are Ada.") as endpoint:
        assert program.run(endpoint, "chat.py", "work", typed="\nI am Ada.\n") == "> > Hello, Ada.\n> \n"
        printed = program.run(endpoint, "chat.py", "work", typed="Who am I?\n")
        assert printed == "user: I am Ada.\nassistant: Hello, Ada.\n> You are Ada.\n> \n"
        roles = [message["role"] for message in endpoint.bodies[1]["messages"]]
        assert roles == ["system", "user", "assistant", "user"]


def test_ctrl_c_stops_a_reply_of_the_chat_and_keeps_what_came(program: Program) -> None:
    with ModelEndpoint(Say("One, two, three.", pause_after=2), "Three.") as endpoint:
        with program.start(endpoint, "chat.py") as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("Count.\n")
            process.stdin.flush()
            assert process.stdout.read(len("> One, two, ")) == "> One, two, "
            process.send_signal(signal.SIGINT)
            assert process.stdout.read(len("[stopped]") + 1).strip() == "[stopped]"
            endpoint.resume()
            process.stdin.write("Go on.\n")
            process.stdin.close()
            printed = process.stdout.read()  # `communicate` would miss what is buffered here
        assert (process.returncode, printed.split()) == (0, [">", "Three.", ">"])
        said = endpoint.bodies[1]["messages"]
        assert [message["role"] for message in said][-2:] == ["assistant", "user"]
        assert said[-2]["content"].startswith("One, two,")


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def test_ctrl_c_at_the_prompt_leaves_the_chat(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", interrupt)  # a signal might come before the program reads
    monkeypatch.setattr(sys, "argv", ["chat.py"])
    monkeypatch.setenv("DAYPACK_HOME", program.home)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    runpy.run_path(str(ROOT / "examples" / "chat.py"), run_name="__main__")
    assert capsys.readouterr().out == "\n"


def test_ctrl_c_stops_the_chat_while_it_waits_for_the_model(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=interrupt)))
    chat = runpy.run_path(str(ROOT / "examples" / "chat.py"))
    with daypack.open_session("chat", home=program.home, workspace="") as session:
        chat["answer"](client, session, "Hi.")
        assert capsys.readouterr().out == " [stopped]\n"
        assert [message.role for message in session.tail(2)] == ["user"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("coding_agent.py", ()),
        ("coding_agent.py", (" ",)),
        ("remembers.py", ()),
        ("worker.py", ()),
        ("worker.py", ("x",)),
    ],
)
def test_an_example_without_what_it_needs_prints_its_usage(
    name: str, arguments: tuple[str, ...], program: Program
) -> None:
    with ModelEndpoint() as endpoint, program.start(endpoint, name, *arguments) as process:
        printed, errors = process.communicate(timeout=120)
        assert (process.returncode, printed, endpoint.requests) == (1, "", [])
        assert f"examples/{name} " in errors
        assert "Traceback" not in errors


def test_empty_lines_are_no_questions(program: Program) -> None:
    with ModelEndpoint("Yes.", "Two.") as endpoint:
        assert program.run(endpoint, "remembers.py", "monday", typed="\n  \nOne?\n") == "Yes.\n"
        assert program.run(endpoint, "many_sessions.py", typed="\nada:\nbob: Two?\n") == "bob: Two.\n"


def test_the_coding_agent_uses_its_tools_and_survives_a_full_window(program: Program) -> None:
    (program.folder / "build.sh").write_text("exit 3\n")
    (program.folder / "AGENTS.md").write_text("Use sh.\n")
    steps = (
        Say("I look.", calls=(Call("read_file", {"path": "build.sh"}), Call("read_file", {"path": "gone"}))),
        Say(calls=(Call("run", {"command": "sh build.sh"}),)),
        Say(calls=(Call("search_history", {"query": "build.sh"}),)),
        "It ends with 3.",
    )
    with ModelEndpoint(*steps, "Still 3.") as endpoint:
        printed = program.run(endpoint, "coding_agent.py", "Why does it fail?", typed="y\n")
        assert printed.split("\n")[0] == "I look."
        assert printed.endswith("It ends with 3.\n")
        results = [
            part["content"]
            for message in endpoint.bodies[3]["messages"]
            for part in message["content"]
            if isinstance(message["content"], list) and part["type"] == "tool_result"
        ]
        assert [result.split(":")[0].strip() for result in results[:3]] == [
            "exit 3",
            "FileNotFoundError",
            "exit code 3",
        ]
        assert "Use sh." in str(endpoint.bodies[0]["system"])
        assert {tool["name"] for tool in endpoint.bodies[0]["tools"]} >= {"read_file", "run", "recall"}
        assert "Still 3." in program.run(endpoint, "coding_agent.py", "Again?")


def test_the_coding_agent_runs_no_command_without_consent_and_compacts_when_told(program: Program) -> None:
    calls = (Call("run", {"command": "touch made"}), Call("run", {"cmd": "x"}))
    with ModelEndpoint(Say("A plan. " * 400, calls=calls), "I may not.", TOO_LONG, "Done.") as endpoint:
        assert program.run(endpoint, "coding_agent.py", "Make it.", typed="n\n").endswith("I may not.\n")
        assert program.run(endpoint, "coding_agent.py", "Then stop.") == "Done.\n"
        assert not (program.folder / "made").exists()
        assert "refused" in str(endpoint.bodies[1])
        assert "KeyError" in str(endpoint.bodies[1])
        assert len(str(endpoint.bodies[3])) < len(str(endpoint.bodies[2]))


def test_many_sessions_run_at_once_and_keep_their_order(program: Program) -> None:
    def answer(request: Request) -> Say:
        if len(endpoint.requests) == 2:  # the first two run at once: neither is answered before both have come
            endpoint.resume()
        question: str = request.body["messages"][-1]["content"]
        return Say(f"To {question!r} after {len(request.body['messages']) - 1}.", pause_after=0)

    with ModelEndpoint(answer=answer) as endpoint:
        printed = program.run(endpoint, "many_sessions.py", typed="ada: One?\nbob: Two?\nada: Three?\n")
        assert printed.split("\n") == [
            "ada: To 'One?' after 0.",
            "bob: To 'Two?' after 0.",
            "ada: To 'Three?' after 2.",
            "",
        ]


def test_the_assistant_remembers_in_another_session_and_never_shows_its_notes(program: Program) -> None:
    notes = section(None, core=[block(content="The sister of Ada is Grace.")])
    with ModelEndpoint(f"I will remember.{notes}", "Your sister.") as endpoint:
        printed = program.run(endpoint, "remembers.py", "monday", typed="My sister is called Grace.\n")
        assert printed == "I will remember.\nnoted: The sister of Ada is Grace.\n"
        assert program.run(endpoint, "remembers.py", "tuesday", typed="Who is Grace?\n") == "Your sister.\n"
        monday, tuesday = (str(body["messages"]) for body in endpoint.bodies)
        assert "<<<CONTEXT>>>" in monday  # the protocol asks for the notes
        assert "My sister is called Grace." in tuesday  # of the memory: it is another session


def read_pages(pages: int) -> Callable[[Request], Say]:
    """A model that reads all pages of a job, two at a time, then says what it has read."""

    def answer(request: Request) -> Say:
        done = sum(item.get("type") == "function_call_output" for item in request.body["input"])
        if done < pages:
            return Say(calls=(Call("read_page", {"page": done + 1}), Call("read_page", {"page": done + 2})))
        return Say(f"{done} pages.")

    return answer


@pytest.mark.requirement("S4-SR1")
def test_a_killed_worker_continues_where_it_was(program: Program) -> None:
    jobs = program.folder / "jobs"
    jobs.mkdir()
    (jobs / "one.txt").write_text("x" * 30_000)
    answer = read_pages(4)
    killed: list[subprocess.Popen[str]] = []

    def kill_at_the_second(request: Request) -> Say:
        if len(endpoint.requests) == 2:  # the worker waits for its second reply
            os.kill(killed[0].pid, signal.SIGKILL)
        return answer(request)

    with ModelEndpoint(answer=kill_at_the_second) as endpoint:
        with program.start(endpoint, "worker.py", "jobs") as process:
            killed.append(process)
            process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        assert not (jobs / "one.summary").exists()
        program.run(endpoint, "worker.py", "jobs")
        program.run(endpoint, "worker.py", "jobs")  # there is nothing left to do
        assert (jobs / "one.summary").read_text() == "4 pages."
        assert len(endpoint.requests) == 4
    with program.session("one", "worker") as session:
        assert [message.role for message in session.messages()].count("user") == 1
        assert session.state == "done"


def test_workers_share_the_jobs_and_leave_alone_what_another_has(program: Program) -> None:
    jobs = program.folder / "jobs"
    jobs.mkdir()
    for name in ("one", "two", "three"):
        (jobs / f"{name}.txt").write_text("x" * 100)
    with ModelEndpoint(answer=read_pages(2)) as endpoint:
        running = [program.start(endpoint, "worker.py", "jobs") for _ in range(3)]
        for process in running:
            with process:
                _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        assert sorted(path.name for path in jobs.glob("*.summary")) == ["one.summary", "three.summary", "two.summary"]
        assert len(endpoint.requests) == 2 * 3
