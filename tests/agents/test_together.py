"""Sessions of one repository: at once, in a worktree, with a sub-agent, after /clear; nothing mixed or twice."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from coding_agents import Claude, Codex, Gemini, Machine, Part, Program, Story, eventually, installed, read_parts
from coding_agents.story import Reply
from model_endpoint import Call, Say


@pytest.fixture(scope="module")
def claude(machine: Machine) -> Claude:
    program = installed(Claude, machine)
    installed(Codex, machine)
    installed(Gemini, machine)
    machine.daypack("setup", "--yes")
    return program


@pytest.fixture(autouse=True)
def _no_hook_fails(machine: Machine) -> Iterator[None]:
    yield
    assert machine.failures() == ""


@pytest.fixture(scope="module")
def codex(claude: Claude) -> Codex:
    program = Codex(claude.machine)
    program.trust()
    return program


@pytest.fixture(scope="module")
def gemini(claude: Claude) -> Gemini:
    return Gemini(claude.machine)


def test_two_agents_at_once_share_the_memory_and_mix_nothing(
    claude: Claude, codex: Codex, machine: Machine, story: Story
) -> None:
    prompts = {
        claude: "We decided that module Alder uses port 4101.",
        codex: "We decided that module Birch uses port 4202.",
    }
    story.on(prompts[claude], "Alder it is.")
    story.on(prompts[codex], "Birch it is.")
    with ThreadPoolExecutor() as pool:
        asked = [(program, pool.submit(program.ask, prompt)) for program, prompt in prompts.items()]
        sessions = {program: future.result() for program, future in asked}
    said = {
        program: "\n".join(
            part.text for part in machine.wait_for(program.agent, session, "it is.") if part.role != "system"
        )
        for program, session in sessions.items()
    }
    assert "Birch" not in said[claude]
    assert "Alder" not in said[codex]
    for prompt in prompts.values():
        eventually(lambda prompt=prompt: [entry for entry in machine.entries() if prompt in entry])
        assert len([entry for entry in machine.entries() if prompt in entry]) == 1


def test_a_worktree_has_the_memory_of_its_repository_and_a_clone_has_its_own(
    claude: Claude, machine: Machine, story: Story
) -> None:
    tree = machine.root / "tree"
    clone = machine.root / "clone"
    machine.run("git", "worktree", "add", "--quiet", str(tree))
    machine.run("git", "clone", "--quiet", str(machine.project), str(clone))
    story.on("We decided that module Cedar uses port 4303.", "Cedar it is.")
    story.on("Which port does module Cedar use, in the repository?", "The one you named.")
    story.on("Which port does module Cedar use, in the clone?", "I do not know.")
    session = claude.ask("We decided that module Cedar uses port 4303.", cwd=tree)
    machine.wait_for(claude.agent, session, "Cedar it is.")
    eventually(lambda: [entry for entry in machine.entries() if "4303" in entry])
    first = len(machine.endpoint.requests)
    claude.ask("Which port does module Cedar use, in the repository?")
    claude.ask("Which port does module Cedar use, in the clone?", cwd=clone)
    repository, cloned = ("\n".join(part.text for part in read_parts(body)) for body in machine.endpoint.bodies[first:])
    assert "4303" in repository
    assert "4303" not in cloned


@pytest.mark.parametrize("kind", [Claude, Codex, Gemini], ids=lambda kind: kind.name)
def test_a_sub_agent_is_a_child_of_the_session_and_is_not_mixed_with_it(
    kind: type[Program], request: pytest.FixtureRequest, machine: Machine, story: Story
) -> None:
    program: Program = request.getfixturevalue(kind.name)
    asked, task = f"Delegate the question about {kind.name}.", f"Find out what the module {kind.name} does."
    story.on(asked, *delegate(program, task))
    done = (
        (Call("complete_task", {"result": {"response": "It schedules the nightly jobs."}}),) if kind is Gemini else ()
    )
    answer = Say("It schedules the nightly jobs.", calls=done)
    story.on(task, Say("I look.", calls=(program.shell("cat README.md"),)), answer)
    session = program.ask(asked)
    parent = machine.wait_for(program.agent, session, "It is done.")
    (child,) = (name for name in machine.sessions(program.agent) if name.startswith(f"{session}--"))
    inner = machine.wait_for(program.agent, child, "It schedules the nightly jobs.")
    assert [part.text for part in inner if part.role == "assistant" and not part.is_call] == [
        "I look.",
        "It schedules the nightly jobs.",
    ]
    assert next(part.text for part in parent if part.role == "assistant" and not part.is_call) == "I delegate."
    assert "I look." not in [part.text for part in parent]
    assert child.removeprefix(f"{session}--") in machine.daypack("child", session, "--agent", program.agent)
    assert [entry for entry in machine.entries() if task in entry or "I look." in entry] == []
    if kind is Claude:  # which records its requests
        assert len(json.loads(machine.daypack("turns", child, "--json"))) == 2
        machine.daypack("replay", child, "--all")


def delegate(program: Program, task: str) -> list[Reply]:
    """Return what a model says that has a sub-agent do something."""
    if isinstance(program, Claude):
        arguments = {"description": "Look", "prompt": task, "subagent_type": "general-purpose"}
        return [Say("I delegate.", calls=(Call("Agent", arguments),)), "I wait.", "It is done."]
    if isinstance(program, Gemini):
        arguments = {"agent_name": "generalist", "prompt": task}
        return [Say("I delegate.", calls=(Call("invoke_agent", arguments),)), "It is done."]
    tools = "multi_agent_v1"

    def wait(parts: Sequence[Part]) -> Say:
        started = json.loads(parts[-1].text)["agent_id"]
        return Say(calls=(Call("wait_agent", {"targets": [started], "timeout_ms": 20_000}, namespace=tools),))

    return [Say("I delegate.", calls=(Call("spawn_agent", {"message": task}, namespace=tools),)), wait, "It is done."]


def test_a_cleared_session_ends_and_the_next_is_another(claude: Claude, machine: Machine, story: Story) -> None:
    story.on("Module Elm is about to be removed.", "I keep that in mind.")
    session = claude.ask("Module Elm is about to be removed.")
    before = machine.wait_for(claude.agent, session, "I keep that in mind.")
    claude.clear(session)
    other = claude.ask("Module Elm is about to be removed.")
    machine.wait_for(claude.agent, other, "I keep that in mind.")
    assert other != session
    assert machine.recorded(claude.agent, session) == before


def test_a_forked_session_is_another_and_what_it_repeats_is_remembered_once(
    claude: Claude, machine: Machine, story: Story
) -> None:
    story.on("Module Gorse uses port 4804.", "Gorse it is.")
    story.on("Module Hazel uses port 4905.", "Hazel it is.")
    session = claude.ask("Module Gorse uses port 4804.")
    before = machine.wait_for(claude.agent, session, "Gorse it is.")
    fork = claude.fork("Module Hazel uses port 4905.", session)
    forked = machine.wait_for(claude.agent, fork, "Hazel it is.")
    assert forked[: len(before)] == before
    assert machine.recorded(claude.agent, session) == before
    eventually(lambda: "Module Hazel uses port 4905." in machine.entries())
    assert machine.entries().count("Module Gorse uses port 4804.") == 1
