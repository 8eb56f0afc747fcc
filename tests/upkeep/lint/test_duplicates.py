"""The duplication map finds what prompt texts repeat, with class and lines, and little else."""

from itertools import permutations
from pathlib import Path

import pytest
from upkeep.lint.workspaces import WORKSPACES, report, table, texts

from daypack.text.statements.passages import Document, Role
from daypack.upkeep.lint.duplicates import find_duplicates

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def shop() -> dict[str, tuple[str, str]]:
    return table(report(WORKSPACES / "shop"))


@pytest.mark.requirement("T11", "S1-P1")
def test_the_map_has_the_eight_rows_and_no_other(shop: dict[str, tuple[str, str]]) -> None:
    assert {where: kind for where, (kind, _) in shop.items()} == {
        "AGENTS.md L7; MEMORY.md L5": "exact",
        "AGENTS.md L18-53; MEMORY.md L2,L3": "near",
        "AGENTS.md L50; MEMORY.md L3": "exact",
        "AGENTS.md L11; SOUL.md L28-66": "cross-reference",
        "SOUL.md L9-11; identity L2; voice L1": "triple",
        "AGENTS.md L55-81; provenance L1-2": "near",
        "SOUL.md L95-99; TOOLS.md L87-97; identity L3": "triple, stale",
        "AGENTS.md L42-47; MEMORY.md L102-109": "near",
    }


@pytest.mark.requirement("S1-P1")
def test_a_row_is_named_by_the_heading_or_the_words_it_is_about(shop: dict[str, tuple[str, str]]) -> None:
    names = {concept for _, concept in shop.values()}
    assert {"Assumptions are forbidden", "Model hierarchy", "Narration", "Verification protocol"} <= names


@pytest.mark.requirement("S1-P1.1")
def test_the_assumption_rule_is_exact(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L7; MEMORY.md L5"] == ("exact", "Assumptions are forbidden")


@pytest.mark.requirement("S1-P1.2")
def test_the_model_hierarchy_is_near(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L18-53; MEMORY.md L2,L3"] == ("near", "Model hierarchy")


@pytest.mark.requirement("S1-P1.3")
def test_the_rule_to_pass_a_model_is_exact_although_its_section_is_near(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L50; MEMORY.md L3"] == ("exact", "Always pass model to spawn")


@pytest.mark.requirement("S1-P1.4")
def test_the_line_that_points_to_the_narration_rules_is_a_cross_reference(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L11; SOUL.md L28-66"] == ("cross-reference", "Narration")


@pytest.mark.requirement("S1-P1.5")
def test_conciseness_and_voice_are_a_triple(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["SOUL.md L9-11; identity L2; voice L1"][0] == "triple"


@pytest.mark.requirement("S1-P1.6")
def test_the_verification_protocol_is_near_the_provenance_block(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L55-81; provenance L1-2"] == ("near", "Verification protocol")


@pytest.mark.requirement("S1-P1.7")
def test_the_memory_architecture_is_a_triple_with_a_stale_file() -> None:
    found = [row for row in report(WORKSPACES / "shop").duplicates if row.kind == "triple, stale"]
    assert [row.stale for row in found] == [("TOOLS.md",)]


@pytest.mark.requirement("S1-P1.8")
def test_the_notes_on_a_provider_are_near(shop: dict[str, tuple[str, str]]) -> None:
    assert shop["AGENTS.md L42-47; MEMORY.md L102-109"] == ("near", "ZhiPu")


@pytest.mark.requirement("S1-P1.9")
def test_other_words_in_another_order_give_the_same_classes() -> None:
    assert {where: kind for where, (kind, _) in table(report(WORKSPACES / "bakery")).items()} == {
        "AGENTS.md L5; MEMORY.md L2": "exact",
        "AGENTS.md L7; SOUL.md L10-20": "cross-reference",
        "AGENTS.md L9-26; MEMORY.md L3,L4": "near",
        "AGENTS.md L20-26; MEMORY.md L7,L8,L9": "near",
        "AGENTS.md L26; MEMORY.md L4": "exact",
        "AGENTS.md L28-34; provenance L1-2": "near",
        "SOUL.md L7-8; identity L2; voice L1": "triple",
        "SOUL.md L22-26; TOOLS.md L22-27; identity L3": "triple, stale",
        "TOOLS.md L18-20": "stale",
    }
    found = {where: kind for where, (kind, _) in table(report(WORKSPACES / "greenhouse")).items()}
    assert sorted(found.values()) == [
        *("cross-reference", "exact", "exact", "near", "near", "near", "stale", "triple", "triple, stale"),
    ]
    assert {where: kind for where, (kind, _) in table(report(WORKSPACES / "assistant")).items()} == {
        "AGENTS.md L7; MEMORY.md L5": "exact",
        "AGENTS.md L18-52; MEMORY.md L2,L3": "near",
        "AGENTS.md L49; MEMORY.md L3": "exact",
        "AGENTS.md L11; SOUL.md L11-25": "cross-reference",
        "SOUL.md L7,L9; identity L2; voice L1": "triple",
        "AGENTS.md L54-81; provenance L1-2": "near",
        "SOUL.md L27-32; TOOLS.md L22-31; identity L3": "triple, stale",
        "AGENTS.md L40-45; MEMORY.md L12-16": "near",
    }
    assert found["AGENTS.md L9-23; MEMORY.md L5,L6"] == "near"
    assert found["AGENTS.md L18-21; MEMORY.md L7"] == "near"
    assert found["AGENTS.md L25-29; provenance L1-2"] == "near"


def test_files_of_workspaces_that_have_nothing_to_do_with_each_other_share_nothing() -> None:
    names = ("shop", "bakery", "greenhouse")
    for first, second, third in permutations(names):
        mixed = [
            Document("AGENTS.md", (WORKSPACES / first / "AGENTS.md").read_text()),
            Document("USER.md", (WORKSPACES / second / "USER.md").read_text()),
            Document("MEMORY.md", (WORKSPACES / third / "MEMORY.md").read_text(), "memory"),
        ]
        assert find_duplicates(mixed) == ()


def test_documents_about_other_things_repeat_no_rule_of_the_workspace() -> None:
    pages = [
        Document(name, (ROOT / name).read_text()) for name in ("docs/errors.md", "docs/glossary.md", "CONTRIBUTING.md")
    ]
    rules = [one for one in texts(WORKSPACES / "shop") if one.name in ("SOUL.md", "USER.md", "MEMORY.md")]
    own = {page.name for page in pages}
    for row in find_duplicates([*pages, *rules]):
        assert {place.source for place in row.places} <= own


def mapped(*given: tuple[str, Role, str]) -> list[tuple[str, str]]:
    rows = find_duplicates([Document(name, text, role) for name, role, text in given])
    return [(row.kind, "; ".join(map(str, row.places))) for row in rows]


@pytest.mark.parametrize(
    "again",
    [
        "- NEVER deploy on a Friday!",
        "* **Never deploy on a Friday**",
        "1. `Never` deploy on a Friday",
        "Never deploy on a Friday: nobody is there to help.",
    ],
)
def test_case_marks_and_bullets_make_no_difference(again: str) -> None:
    agents = "# Rules\n\nBe kind.\n\n- Never deploy on a Friday.\n"
    assert mapped(("AGENTS.md", "instruction", agents), ("MEMORY.md", "memory", again)) == [
        ("exact", "AGENTS.md L5; MEMORY.md L1")
    ]


def test_the_same_words_in_three_files_are_a_triple() -> None:
    line = "- Never deploy on a Friday."
    found = mapped(("AGENTS.md", "instruction", line), ("SOUL.md", "instruction", line), ("MEMORY.md", "memory", line))
    assert found == [("triple", "AGENTS.md L1; SOUL.md L1; MEMORY.md L1")]


def test_facts_about_the_same_thing_are_no_copies() -> None:
    user = "- Gripper 3: a hand for the strawberry farm, due in May.\n- Two lathes, a mill, a laser cutter.\n"
    memory = "- The strawberry farm pays for Gripper 3 in three parts.\n- The mill's spindle runs clockwise only.\n"
    assert mapped(("USER.md", "instruction", user), ("MEMORY.md", "memory", memory)) == []


def test_a_line_that_names_file_and_section_is_a_cross_reference() -> None:
    agents = "# A\n\n- Ask first.\n- Tone: see SOUL.md.\n"
    soul = "# S\n\n## Tone of voice\n\nWarm.\n\nNo slang.\n"
    found = mapped(("AGENTS.md", "instruction", agents), ("SOUL.md", "instruction", soul))
    assert found == [("cross-reference", "AGENTS.md L4; SOUL.md L3-7")]


def test_titles_and_code_are_not_rules() -> None:
    one = "## Ask first:\n\n**Good examples**\n\n```\nrun the whole test suite now\n```\n"
    other = "**Good examples**\n\nrun the whole test suite now\n"
    assert mapped(("AGENTS.md", "instruction", one), ("SOUL.md", "instruction", other)) == []


def test_chinese_rules_are_found_too() -> None:
    line = "- 每次提交之前必须运行全部测试。\n"
    found = mapped(("AGENTS.md", "instruction", f"# 规则\n\n{line}"), ("MEMORY.md", "memory", line))
    assert found == [("exact", "AGENTS.md L3; MEMORY.md L1")]


def test_a_pointer_of_ours_is_no_copy_of_what_it_points_to() -> None:
    soul = "## Memory\n\n- Long-term memory: MEMORY.md, facts that stay.\n- History: every message.\n"
    identity = Document("identity", "Long-term memory: MEMORY.md below.", "injected", by_line=True)
    assert find_duplicates([Document("SOUL.md", soul), identity]) == ()


def test_empty_texts_have_no_rows() -> None:
    assert find_duplicates([]) == ()
    assert find_duplicates([Document("AGENTS.md", ""), Document("SOUL.md", "\n\n#\n- \n")]) == ()
