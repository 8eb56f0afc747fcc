"""opencode with daypack: calls are packed past the budget, its own history is whole, no failure of daypack stops it."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from coding_agents import Machine, OpenCode, Story, eventually, installed, offered_tools, read_parts
from coding_agents.opencode_server import OpenCodeServer
from coding_agents.story import is_summary_call, is_title_call
from model_endpoint import ModelEndpoint, Say

from daypack.serve.toolset import NAMES

CONTEXT_TOKENS = 17_000
STEPS = 7
DOCUMENT = "# Project\n\n## Stable facts\n\n- Jobs are started by Quartzkeeper, the scheduler of this project.\n"
RULE = "Never call time.sleep in this project, always use retry_with_backoff with 7 attempts."
LATER, LAST = "Which port has module Maple2?", "Which port has module Maple1?"
TAKEN_BACK, INSTEAD = "Use the port 9999 from now on.", "Use the port 8888 from now on."


def question(number: int) -> str:
    return f"Step {number}: look at module Maple{number}." + (f" {RULE}" if number == 0 else "")


@dataclass
class Told:
    """What was asked of a server, and the requests that each step made; those for titles are apart."""

    machine: Machine
    program: OpenCode
    session: str = ""
    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    titles: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    kept: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # opencode's own messages
    processes: int = 0

    def step(self, name: str, since: int) -> None:
        bodies = self.machine.endpoint.bodies[since:]
        self.titles += [body for body in bodies if is_title_call(read_parts(body))]
        self.bodies[name] = [body for body in bodies if not is_title_call(read_parts(body))]

    @property
    def packed(self) -> list[dict[str, Any]]:
        """The requests that had something in place of older messages."""
        return [body for bodies in self.bodies.values() for body in bodies if "what is not shown" in json.dumps(body)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    story = Story(other="I answer.", summary="## Goal\nLook at the modules.")
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp("opencode"), endpoint)
        installed(OpenCode, machine)
        told = Told(machine, OpenCode(machine, CONTEXT_TOKENS))
        machine.daypack("setup", "--yes", "--agent", "opencode")
        machine.run("daypack", "memory", "context", "--put", "-", stdin=DOCUMENT)
        with OpenCodeServer(told.program) as server:
            _tell(told, server, story)
        yield told


def _tell(told: Told, server: OpenCodeServer, story: Story) -> None:
    requests = told.machine.endpoint.requests

    def ask(name: str, prompt: str, *replies: Say | str) -> None:
        story.on(prompt, *(replies or ("I answer.",)))
        since = len(requests)
        told.session = server.ask(prompt, told.session)
        told.step(name, since)

    for number in range(STEPS):
        print_it = f"for i in $(seq 1 110); do echo line $i of module Maple{number}; done"
        look = Say(f"I look at module Maple{number}.", calls=(told.program.shell(print_it),))
        ask(f"step {number}", question(number), look, f"The port of module Maple{number} is {4500 + number}.")
    ask("later", LATER)
    told.kept = server.messages(told.session)
    told.processes = len(server.children())
    (process,) = server.children()
    os.kill(int(process.name), signal.SIGKILL)
    ask("killed", LAST)
    ask("taken back", TAKEN_BACK)
    users = [message["info"]["id"] for message in server.messages(told.session) if message["info"]["role"] == "user"]
    server.call("POST", f"/session/{told.session}/revert", {"messageID": users[-1]})
    ask("instead", INSTEAD)
    since = len(requests)
    server.call("POST", f"/session/{told.session}/summarize", {"providerID": "scripted", "modelID": "model"})
    told.step("compaction", since)
    ask("compacted", "And what now?")
    told.machine.wait_for("opencode", told.session, "And what now?")


def texts(body: dict[str, Any], role: str = "") -> list[str]:
    return [part.text for part in read_parts(body) if not role or part.role == role]


def test_a_short_conversation_goes_out_as_it_is(told: Told) -> None:
    first, second = told.bodies["step 0"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    unpacked = [body for bodies in told.bodies.values() for body in bodies if body not in told.packed]
    assert len(unpacked) > 4
    assert not any("swapped out" in text for body in unpacked for text in texts(body))


def test_the_nine_tools_are_offered(told: Told) -> None:
    ours = [name.removeprefix("daypack_") for name in offered_tools(told.bodies["step 0"][0]) if "daypack" in name]
    assert sorted(ours) == sorted(NAMES)


def test_title_calls_have_nothing_of_daypack(told: Told) -> None:
    assert told.titles
    assert not any('name="daypack:' in text for body in told.titles for text in texts(body))


def test_title_calls_are_those_of_an_opencode_without_daypack(
    told: Told, tmp_path_factory: pytest.TempPathFactory
) -> None:
    story = Story(other="I answer.")
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp("without"), endpoint)
        with OpenCodeServer(OpenCode(machine, CONTEXT_TOKENS)) as server:
            server.ask(question(0))
        titles = [body for body in endpoint.bodies if is_title_call(read_parts(body))]
    assert titles[0]["messages"] == told.titles[0]["messages"]


def test_a_long_conversation_is_packed_and_stays_within_the_limit(told: Told) -> None:
    assert len(told.packed) > 6
    sizes = [len(json.dumps(body)) for bodies in told.bodies.values() for body in bodies]
    whole = sum(len(json.dumps(message)) for message in told.kept)
    assert max(sizes) < whole + 40_000
    assert "swapped out" in json.dumps(told.packed[-1])


def test_a_packed_call_ends_with_what_is_new(told: Told) -> None:
    for number in range(STEPS):
        asked, answered = told.bodies[f"step {number}"]
        assert question(number) in "\n".join(texts(asked, "user"))
        assert texts(answered)[-1].startswith("line 1 of module")
    assert LATER in "\n".join(texts(told.bodies["later"][0], "user")[-2:])


def test_every_call_travels_with_its_result(told: Told) -> None:
    for bodies in told.bodies.values():
        for body in bodies:
            messages = body["messages"]
            for at, message in enumerate(messages):
                ids = [call["id"] for call in message.get("tool_calls") or ()]
                after = [result.get("tool_call_id") for result in messages[at + 1 : at + 1 + len(ids)]]
                assert after == ids
            results = [message for message in messages if message["role"] == "tool"]
            assert len(results) == sum(len(message.get("tool_calls") or ()) for message in messages)


def test_a_call_only_appends_to_the_one_before_while_an_epoch_lasts(told: Told) -> None:
    steps = [body["messages"] for number in range(STEPS) for body in told.bodies[f"step {number}"]]
    breaks = [before for before, after in pairwise(steps) if after[: len(before)] != before]
    assert 0 < len(breaks) <= 4
    assert len(steps) == 2 * STEPS


def test_rules_and_what_was_asked_for_come_back_when_their_messages_left(told: Told) -> None:
    last = "\n".join(texts(told.packed[-1]))
    assert RULE in last
    assert "4502" in "\n".join(texts(told.bodies["later"][0]))


def test_opencode_has_everything_as_it_was_said(told: Told) -> None:
    outputs = [part["state"]["output"] for message in told.kept for part in message["parts"] if part["type"] == "tool"]
    assert len(outputs) >= STEPS  # an excerpt may repeat a question that the scripted model then answers again
    assert {output.count("\n") for output in outputs} == {110}
    assert "daypack:" not in json.dumps(told.kept)


def test_the_memory_of_the_project_is_injected_once_and_not_captured(told: Told) -> None:
    for body in told.bodies["step 0"]:
        assert json.dumps(body).count("Quartzkeeper") == 1
    assert not any("Quartzkeeper" in entry for entry in told.machine.entries())
    recorded = told.machine.recorded("opencode", told.session)
    assert not any("Quartzkeeper" in part.text or 'name="daypack:' in part.text for part in recorded)


def test_everything_said_is_recorded_once(told: Told) -> None:
    recorded = [part.text for part in told.machine.recorded("opencode", told.session) if not part.is_call]
    said = [*map(question, range(STEPS)), LATER, LAST, TAKEN_BACK, INSTEAD, "And what now?"]
    assert [recorded.count(text) for text in said] == [1] * len(said)


def test_a_process_that_is_killed_is_started_again(told: Told) -> None:
    assert told.processes == 1
    assert "what is not shown" in json.dumps(told.bodies["killed"][0])


def test_what_was_taken_back_is_not_sent_again(told: Told) -> None:
    assert TAKEN_BACK in json.dumps(told.bodies["taken back"][0])
    for body in told.bodies["instead"]:
        assert INSTEAD in json.dumps(body)
        assert TAKEN_BACK not in json.dumps(body)
        assert "what is not shown" in json.dumps(body)


def test_the_summary_of_opencode_is_asked_to_keep_the_rules_and_its_call_is_left_alone(told: Told) -> None:
    (summary,) = (body for body in told.bodies["compaction"] if is_summary_call(read_parts(body)))
    asked = "\n".join(texts(summary))
    assert RULE in asked.partition("</conversation>")[2]
    assert "what is not shown" not in asked
    assert RULE in json.dumps(told.bodies["compacted"][0])


def test_no_hook_failed(told: Told) -> None:
    assert told.machine.failures() == ""


def test_no_process_outlives_opencode(told: Told) -> None:
    def gone() -> bool:
        home = str(told.machine.home).encode()
        for process in (path for path in os.listdir("/proc") if path.isdecimal()):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as command, open(f"/proc/{process}/environ", "rb") as own:
                    if b"--serve" in command.read() and home in own.read():
                        return False
            except OSError:
                continue
        return True

    assert eventually(gone)


HANGING = "#!/bin/sh\nexec sleep 60\n"
BROKEN = "#!/bin/sh\necho 'Traceback (most recent call last):'\nexit 1\n"


@pytest.mark.parametrize("daypack", [HANGING, BROKEN, None], ids=["hanging", "broken", "absent"])
def test_without_daypack_opencode_sends_its_own_messages(told: Told, daypack: str | None) -> None:
    machine = told.machine
    working = (machine.bin / "daypack").read_text()
    machine.put_daypack(daypack) if daypack else machine.remove_daypack()
    log = next(machine.daypack_home.glob("home/*/hook.log"), None)
    before = log.stat().st_size if log else 0
    since = len(machine.endpoint.requests)
    try:
        with OpenCodeServer(told.program, {"DAYPACK_PATIENCE_MS": "300"}) as server:
            server.ask("Say something.")
    finally:
        machine.put_daypack(working)
    bodies = [body for body in machine.endpoint.bodies[since:] if not is_title_call(read_parts(body))]
    assert [[message["role"] for message in body["messages"]] for body in bodies] == [["system", "user"]]
    assert texts(bodies[0], "user") == ["Say something."]
    (log,) = machine.daypack_home.glob("home/*/hook.log")
    lines = log.read_text()[before:].splitlines()
    assert lines
    assert all(" opencode texts ses_" in line for line in lines[:1])
    log.unlink()
