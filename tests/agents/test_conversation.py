"""A project with daypack: two turns with tools, a compaction, a resume, another session."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from coding_agents import Claude, Codex, Gemini, Machine, Part, Story, installed, offered_tools, read_parts
from coding_agents.programs import LOOK_AGAIN, LOOKED
from coding_agents.story import is_summary_call
from model_endpoint import ModelEndpoint, Say

from daypack.serve.toolset import NAMES

RULE = "Never call time.sleep in this project, always use retry_with_backoff with 7 attempts."
FIRST = f"Please look at the project first. {RULE}"
SECOND = "Write retry.py, and note where the staging database is."
THIRD = "Which function waits between two attempts?"
OTHER_DAY = "On which host does the staging database run?"
AGAIN = "And which port has the staging database?"
DOCUMENT = "# Project\n\nRetries are written with Quartzkeeper, the scheduler of this project."
FOUND = "The staging database runs on the host db-staging-17.internal, and its port is 6543."


@dataclass
class Told:
    """What was asked, and the requests that each step made."""

    machine: Machine
    program: Claude | Codex | Gemini
    session: str = ""
    other_session: str = ""
    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])

    def step(self, name: str, since: int) -> int:
        self.bodies[name] = self.machine.endpoint.bodies[since:]
        return len(self.machine.endpoint.requests)

    def recorded(self, session: str) -> list[Part]:
        return self.machine.recorded(self.program.agent, session)

    def wait_for(self, session: str, text: str) -> None:
        """Wait until the last answer of a turn was taken in."""
        self.machine.wait_for(self.program.agent, session, text)


@pytest.fixture(scope="module", params=[Claude, Codex, Gemini], ids=lambda kind: kind.name)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    story = Story(summary="<summary>The project was looked at, and retry.py was written.</summary>")
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp(request.param.name), endpoint)
        told = Told(machine, installed(request.param, machine))
        _tell(told, story)
        yield told


def _tell(told: Told, story: Story) -> None:
    program = told.program
    note = program.memory_tool("put_context", {"content": DOCUMENT})
    write = program.shell("printf 'def retry_with_backoff(): ...\\n' > retry.py")
    story.on(
        FIRST, Say("I look.", calls=(program.shell("cat README.md"),)), "Retries are in retry.py, says the readme."
    )
    story.on(SECOND, Say("I write it.", calls=(write,)), Say(calls=(note,)), FOUND)
    story.on(LOOK_AGAIN, Say("Once more.", calls=(program.shell("ls"),)), LOOKED)
    story.on(THIRD, "It is retry_with_backoff.")
    story.on(OTHER_DAY, "I would have to look.")
    story.on(AGAIN, "The same.")

    told.machine.daypack("setup", "--yes")
    if isinstance(program, Codex):
        program.trust()
    told.session = program.ask(FIRST)
    end = told.step("first", 0)
    told.wait_for(told.session, "says the readme")
    program.ask(SECOND, told.session)
    end = told.step("second", end)
    told.wait_for(told.session, FOUND)
    program.compact(told.session, then=THIRD)
    end = told.step("third", end)
    told.wait_for(told.session, "It is retry_with_backoff.")
    told.other_session = program.ask(OTHER_DAY)
    end = told.step("other day", end)
    told.wait_for(told.other_session, "I would have to look.")
    program.ask(AGAIN, told.other_session)
    told.step("again", end)
    told.wait_for(told.other_session, "The same.")


def injected(body: dict[str, Any]) -> str:
    """Return what the system says in a request, or a hook, that has something of daypack."""
    parts = [part for part in read_parts(body) if part.role == "system" or part.text.startswith("<hook_context>")]
    return "\n".join(part.text for part in parts if 'name="daypack:' in part.text)


def test_the_nine_tools_are_in_the_first_request(told: Told) -> None:
    offered = offered_tools(told.bodies["first"][0])
    ours = [name for name in offered if "daypack" in name]
    assert sorted(re.split(r"__|\.|^mcp_daypack_", name)[-1] for name in ours) == sorted(NAMES)


def test_a_project_without_a_past_gets_nothing(told: Told) -> None:
    first = read_parts(told.bodies["first"][0])
    assert 'name="daypack:' not in "\n".join(part.text for part in first)


def test_the_document_of_the_memory_is_in_the_first_request_of_the_next_session(told: Told) -> None:
    assert "Quartzkeeper" in injected(told.bodies["other day"][0])


def test_what_an_earlier_session_said_about_a_prompt_comes_with_it(told: Told) -> None:
    assert "db-staging-17.internal" in injected(told.bodies["other day"][0])


def test_nothing_is_injected_again_while_it_is_in_the_window(told: Told) -> None:
    window = "\n".join(part.text for part in read_parts(told.bodies["again"][0]))
    assert window.count("db-staging-17.internal") == 1
    assert window.count("Quartzkeeper") == 1


def test_the_rules_are_there_word_for_word_after_a_compaction(told: Told) -> None:
    asked = next(body for body in told.bodies["third"] if any(part.text == THIRD for part in read_parts(body)))
    assert RULE in injected(asked)


@pytest.mark.parametrize("told", [Gemini], ids=["gemini"], indirect=True)
def test_gemini_is_told_about_a_compaction_once(told: Told) -> None:
    asked = [body for body in told.bodies["third"] if not is_summary_call(read_parts(body))]
    assert [RULE in injected(body) for body in asked] == [False, False, True]


def test_claude_code_is_asked_to_keep_the_rules_in_its_summary_and_others_take_no_such_words(told: Told) -> None:
    summary = next(body for body in told.bodies["third"] if is_summary_call(read_parts(body)))
    asked = next(part.text for part in read_parts(summary) if part.role == "user" and is_summary_call([part]))
    assert (RULE in asked) == isinstance(told.program, Claude)


def test_everything_said_is_in_the_session_once(told: Told) -> None:
    recorded = told.recorded(told.session)
    said = [
        *_said(told.bodies["second"][-1]),
        Part("assistant", FOUND),
        Part("user", THIRD),
        Part("assistant", "It is retry_with_backoff."),
    ]
    assert len(said) > 10
    assert {part: recorded.count(part) for part in said} == dict.fromkeys(said, 1)


def _said(body: dict[str, Any]) -> list[Part]:
    """Return what people, the model and its tools said in a request, without what the program adds."""
    parts = [part for part in read_parts(body) if part.role != "system"]
    return [part for part in parts if not part.text.startswith("<")]


def test_no_hook_failed(told: Told) -> None:
    assert told.machine.failures() == ""


def test_the_memory_has_what_was_said_and_nothing_that_was_injected(told: Told) -> None:
    entries = told.machine.entries()
    assert [entry for entry in entries if RULE in entry] == [FIRST]
    assert [entry for entry in entries if "db-staging-17.internal" in entry] == [FOUND]
    assert [entry for entry in entries if "Quartzkeeper" in entry] == []
    assert len(set(entries)) == len(entries)


@pytest.mark.parametrize("told", [Claude], ids=["claude"], indirect=True)
def test_every_request_that_claude_code_made_is_rebuilt_as_it_was_sent(told: Told) -> None:
    for session in (told.session, told.other_session):
        sent = [
            request.body
            for request in told.machine.endpoint.requests
            if request.headers["x-claude-code-session-id"] == session
            and not is_summary_call(read_parts(request.body))  # it does not record these
        ]
        listed = json.loads(told.machine.daypack("turns", session, "--json"))
        events = [call["event"] for call in listed if call["kind"] == "observed"]
        rebuilt = [
            json.loads(told.machine.daypack("replay", session, event, "--dialect", "anthropic")) for event in events
        ]
        assert len(sent) > 1
        told.machine.daypack("replay", session, "--all")
        assert [_comparable(body) for body in rebuilt] == [_comparable(body) for body in sent]


def _comparable(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what Claude Code records nowhere, with every content as a list of blocks.

    A printed request is redacted, so that the token in the answer of one of our tools is masked in both.
    """
    unrecorded = ("metadata", "stream", "betas")
    body = json.loads(re.sub(r'(\\"token\\":\\")[^"\\]+', r"\1masked", json.dumps(body)))
    messages = [
        {**message, "content": [{"type": "text", "text": content}] if isinstance(content, str) else content}
        for message in body["messages"]
        for content in (message["content"],)
    ]
    system = [block for block in body["system"] if not block["text"].startswith("x-anthropic-billing-header")]
    rest = {name: value for name, value in body.items() if name not in unrecorded}
    return {**rest, "messages": messages, "system": system}
