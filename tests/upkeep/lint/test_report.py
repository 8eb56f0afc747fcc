"""What can go from a workspace's prompt texts, what that saves, and that the result repeats nothing."""

import subprocess
from pathlib import Path

import pytest
from upkeep.lint.workspaces import DECLARED, WORKSPACES, copy, report, texts

import daypack
from daypack.derived.template import problems
from daypack.history.layout import Home
from daypack.text.statements.passages import Document
from daypack.text.tokens import counter_for
from daypack.upkeep.lint.duplicates import find_duplicates
from daypack.upkeep.lint.prompt_texts import BLOCKS, injected, read_workspace
from daypack.upkeep.lint.report import Report, examine
from daypack.upkeep.reflect.reflector import Reflector


@pytest.fixture(scope="module")
def found() -> Report:
    return report(WORKSPACES / "shop")


def fixed(folder: Path, home: str) -> Report:
    """Do what --fix does, and apply the patch as a person would."""
    before = report(folder)
    Reflector(str(folder), Home(home, "1")).rewrite(*before.texts["MEMORY.md"])
    subprocess.run(["git", "apply", "-"], cwd=folder, input=before.patch().encode(), check=True)
    return before


@pytest.mark.requirement("S1-I3")
def test_one_look_says_what_leaves_each_file(found: Report) -> None:
    lines = {(removal.source, removal.first, removal.last) for removal in found.removals}
    assert {("MEMORY.md", 5, 5), ("TOOLS.md", 90, 90), ("AGENTS.md", 55, 81)} <= lines
    assert {name for name, _ in found.texts.items()} == {"AGENTS.md", "SOUL.md", "TOOLS.md", "MEMORY.md", "CONTEXT.md"}


@pytest.mark.requirement("S1-D3.1", "S1-D3.2", "S1-D3.3", "S1-D3.4", "S1-D4", "S1-V4", "S1-L1.2", "S1-L1.3")
def test_the_memory_keeps_its_facts_and_loses_what_agents_has_and_what_sessions_did(found: Report) -> None:
    before, after = found.texts["MEMORY.md"]
    assert after.split("\n") == [before.split("\n")[0], *before.split("\n")[5:20], ""]
    for gone in ("forbidden", "SAVE TOKENS", "spawn", "claude-", "glm-", "2026-02", "thinking", "Session", "[ ]"):
        assert gone in before
        assert gone not in after
    assert examine([Document("MEMORY.md", after, "memory")], counter_for(None)).history == ()


@pytest.mark.requirement("S1-D5.1", "S1-D5.2")
def test_layers_that_nobody_has_are_stale(found: Report) -> None:
    assert [(reference.name, reference.first, reference.last) for reference in found.stale] == [
        ("Observations", 90, 90),
        ("Semantic retrieval", 91, 92),
    ]
    assert not {"Observations", "Semantic"} & set(found.texts["TOOLS.md"][1].replace("*", " ").split())


@pytest.mark.requirement("S1-D5.3")
def test_examples_of_many_lines_become_one(found: Report) -> None:
    assert len(found.examples) == 6
    after = found.texts["TOOLS.md"][1]
    assert "```" not in after
    assert 'Example: `read_file(path="stock/parts.csv", start=1, stop=3)`' in after


@pytest.mark.parametrize(
    ("component", "before", "after"),
    [
        ("AGENTS.md", 510, 350),
        ("SOUL.md", 625, 625),
        ("USER.md", 275, 275),
        ("TOOLS.md", 625, 350),
        ("MEMORY.md", 400, 200),
        ("CONTEXT.md", 600, 200),
    ],
)
@pytest.mark.requirement("S1-B2", "S1-B3", "S1-B4", "S1-B5", "S1-B6", "S1-B7")
def test_each_part_costs_about_what_it_should(found: Report, component: str, before: int, after: int) -> None:
    cost = next(one for one in found.costs if one.component == component)
    assert (cost.before, cost.after) == (pytest.approx(before, rel=0.06), pytest.approx(after, rel=0.06))


@pytest.mark.requirement("S1-B8")
def test_about_a_thousand_tokens_are_saved_in_each_turn(home: str, tmp_path: Path) -> None:
    folder = copy("shop", tmp_path / "a-workspace-of-the-usual-length")
    with daypack.open_session("work", home=home) as session:
        state = Path(session.history.layout.derived("context_doc"))
        state.parent.mkdir(exist_ok=True)
        state.write_text((folder / "CONTEXT.md").read_text())
        own = injected(str(folder), session.history.layout, "claude-opus-4-1-20250805", {})
    found = examine(read_workspace(str(folder)) + own, counter_for(None), declared=DECLARED, unused=BLOCKS)
    assert found.before == pytest.approx(3155, rel=0.04)
    assert found.after == pytest.approx(2100, rel=0.04)
    assert found.before - found.after == pytest.approx(1055, rel=0.02)


@pytest.mark.requirement("S1-B9")
def test_the_state_passes_the_check_of_the_template_and_loses_no_fact(found: Report) -> None:
    before, after = found.texts["CONTEXT.md"]
    assert problems(before)
    assert not problems(after)
    assert "thinking" not in after
    assert after in before + "\n" or set(after.split("\n")) <= set(before.split("\n"))
    assert "HTD 5M of 610 mm" in after


@pytest.mark.requirement("S1-V5", "S1-I4", "S1-D6", "S1-D2.1", "S1-D2.2")
@pytest.mark.parametrize("switch", [None, "provenance", "voice"])
def test_the_prompt_of_a_mended_workspace_repeats_nothing(home: str, tmp_path: Path, switch: str | None) -> None:
    folder = copy("shop", tmp_path / "shop")
    fixed(folder, home)
    with daypack.open_session("work", home=home, workspace=str(folder), model="gpt-4o") as session:
        for name in filter(None, ("identity", switch)):
            session.switch(name, on=True)
        session.append("user", "How long is the belt?")
        items = session.prepare().parts.epoch.prefix
    prompt = [Document(one.title or one.id, one.text, "instruction", by_line=one.id == "identity") for one in items]
    assert {"identity", "AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md"} <= {one.name for one in prompt}
    assert (switch is None) or switch in {one.name for one in prompt}
    assert find_duplicates(prompt) == ()
    assert sum("could not check" in one.text for one in prompt) == (switch == "provenance")
    assert sum("aloud" in one.text for one in prompt) == (switch == "voice")


@pytest.mark.requirement("X38")
def test_one_file_explains_memory_and_the_identity_only_points(home: str, tmp_path: Path) -> None:
    folder = copy("shop", tmp_path / "shop")
    fixed(folder, home)
    explaining = [one.name for one in texts(folder) if "word for word" in one.text]
    assert explaining == ["TOOLS.md"]


@pytest.mark.parametrize("name", ["shop", "bakery", "greenhouse", "assistant"])
def test_a_mended_workspace_has_nothing_more_to_remove(name: str, home: str, tmp_path: Path) -> None:
    folder = copy(name, tmp_path / name)
    before = fixed(folder, home)
    again = report(folder)
    assert again.history == again.stale == again.examples == ()
    assert "MEMORY.md" not in again.texts
    assert again.after <= before.after


@pytest.mark.parametrize("name", ["shop", "bakery", "greenhouse", "assistant"])
def test_every_line_that_stays_is_as_it_was(name: str) -> None:
    for file, (before, after) in report(WORKSPACES / name).texts.items():
        shortened = {line for line in after.split("\n") if "`" in line}
        if file != "CONTEXT.md":
            assert set(after.split("\n")) - shortened <= set(before.split("\n"))


def test_what_only_memory_knows_stays() -> None:
    agents = "# A\n\n## Models\n\nUse haiku for summaries, sonnet for code and opus for plans.\n"
    kept = [
        "- Haiku for summaries, sonnet for code, opus for plans: 30 euros a month at most.",
        "- Never use sonnet for code.",
        "- Opus is down on Sundays.",
    ]
    memory = "# M\n" + "\n".join([*kept, "- Haiku for summaries, sonnet for code, opus for plans."]) + "\n"
    found = examine([Document("AGENTS.md", agents), Document("MEMORY.md", memory, "memory")], counter_for(None))
    assert found.texts["MEMORY.md"][1].split("\n") == ["# M", *kept, ""]


def test_a_sentence_that_agents_has_leaves_a_line_that_says_more() -> None:
    agents = Document("AGENTS.md", "- Never deploy on a Friday.\n")
    memory = Document(
        "MEMORY.md", "- Never deploy on a Friday. Anna holds the key to the rack.\n- Tea at four.\n", "memory"
    )
    after = examine([agents, memory], counter_for(None)).texts["MEMORY.md"][1]
    assert after == "- Anna holds the key to the rack.\n- Tea at four.\n"


def test_texts_in_order_are_clean() -> None:
    found = examine(
        [Document("AGENTS.md", "- Ask first.\n"), Document("MEMORY.md", "- Tea at four.\n", "memory")],
        counter_for(None),
    )
    assert found.clean
    assert (found.texts, found.patch(), found.before - found.after) == ({}, "", 0)
