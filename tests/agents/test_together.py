"""Sessions of one repository: at once, in a worktree, with a sub-agent, after /clear; nothing mixed or twice."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from coding_agents import Claude, Codex, Machine, Story, eventually, installed, read_parts
from model_endpoint import Call, Say


@pytest.fixture(scope="module")
def claude(machine: Machine) -> Claude:
    program = installed(Claude, machine)
    installed(Codex, machine)
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


def test_a_sub_agent_is_a_child_of_the_session_and_is_remembered_once(
    claude: Claude, machine: Machine, story: Story
) -> None:
    task = {"description": "Look", "prompt": "Find out what module Douglas does.", "subagent_type": "general-purpose"}
    story.on("Delegate the question about the fir.", Say("I delegate.", calls=(Call("Agent", task),)), "Done.", "Done.")
    story.on(
        task["prompt"], Say("I look.", calls=(claude.shell("cat README.md"),)), "Douglas schedules the nightly jobs."
    )
    session = claude.ask("Delegate the question about the fir.")
    parent = machine.wait_for(claude.agent, session, "Done.")
    children = eventually(
        lambda: [name for name in machine.sessions(claude.agent) if name.startswith(session) and name != session]
    )
    (child,) = children
    inner = machine.wait_for(claude.agent, child, "Douglas schedules the nightly jobs.")
    assert [part.tool for part in inner if part.is_call] == ["Bash"]
    assert [part.tool for part in parent if part.is_call] == ["Agent"]
    assert child.removeprefix(f"{session}--") in machine.daypack("child", session, "--agent", claude.agent)
    assert len(json.loads(machine.daypack("turns", child, "--json"))) == 2
    machine.daypack("replay", child, "--all")


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
