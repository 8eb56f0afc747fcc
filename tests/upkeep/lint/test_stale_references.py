"""What is told of and does not exist is found by a list of what does."""

import pytest

from daypack.errors import BadInput
from daypack.text.statements.passages import Document, Role
from daypack.upkeep.lint.stale_references import Declared, find_stale, read_declared


def stale(text: str, declared: Declared, role: Role = "instruction") -> list[tuple[str, int, int]]:
    return [(one.name, one.first, one.last) for one in find_stale([Document("TOOLS.md", text, role)], declared)]


def test_declarations_are_names_under_two_headings() -> None:
    text = "# a comment\n[tools]\n- `read_file`\nshell\n\n[layers]\nWorking memory\n"
    assert read_declared(text) == Declared(("read_file", "shell"), ("Working memory",))


@pytest.mark.parametrize(
    ("text", "problem"), [("[tolls]\nx\n", "unknown section"), ("x\n[tools]\n", "outside of a section")]
)
def test_a_declaration_that_cannot_be_read_names_its_line(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as error:
        read_declared(text, "d.txt")
    assert error.value.place == "d.txt, line 1"


def test_a_tool_that_is_a_heading_among_tools_is_stale_with_its_lines() -> None:
    text = "# Tools\n\n## shell\n\nRuns.\n\n## fax_out\n\nFaxes.\nSlowly.\n\n## Good manners\n\nPlease.\n"
    assert stale(text, Declared(tools=("shell",))) == [("fax_out", 7, 10)]


def test_a_tool_that_is_an_item_among_tools_is_stale() -> None:
    text = "- `shell(command)`: runs\n- `fax_out(number)`: faxes\n- Note: be careful\n"
    assert stale(text, Declared(tools=("shell",))) == [("fax_out(number)", 2, 2)]


def test_a_list_without_a_declared_name_is_another_list() -> None:
    text = "# Pens\n\n- red: for errors\n- blue: for notes\n"
    assert stale(text, Declared(tools=("shell",), layers=("Working memory",))) == []


def test_layers_are_known_with_and_without_their_brackets_and_the_word_memory() -> None:
    text = "## Memory layers\n- **Working** (CONTEXT.md): now\n- Long-term memory: later\n- Dream log: gone\n"
    assert stale(text, Declared(layers=("Working memory", "Long-term (MEMORY.md)"))) == [("Dream log", 4, 4)]


def test_memories_are_no_place_where_tools_are_declared() -> None:
    assert stale("- shell: runs\n- fax_out: faxes\n", Declared(tools=("shell",)), "memory") == []


@pytest.mark.requirement("S1-D5.1")
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("- Send bills with fax_out on Mondays.", "fax_out"),
        ("- Call `beam(place)` when you are late.", "beam"),
        ("- The `teleport` tool needs a licence.", "teleport"),
        ("- Use `open_door` when it rings.", "open_door"),
        ("- Call ring_bell(times) at noon.", "ring_bell"),
        ("- New insights go to the Dream layer.", "Dream"),
        ("- Dream log entries are read at dawn.", "Dream log"),
    ],
)
def test_stale_names_are_found_under_any_heading_and_in_any_file(line: str, name: str) -> None:
    tools = "# T\n\n- `shell`: runs\n- `fax_out`: faxes\n\n## Where things are\n\n- State: now\n- Dream log: gone\n"
    declared = Declared(("shell",), ("State",))
    agents = Document("AGENTS.md", f"# A\n\n## Good manners\n\n- Be kind.\n{line}\n")
    found = find_stale([agents, Document("TOOLS.md", tools)], declared)
    assert [(one.name, one.first) for one in found if one.source == "AGENTS.md"] == [(name, 6)]
    assert [one.name for one in found if one.source == "TOOLS.md"] == ["fax_out", "Dream log"]


def test_a_line_about_a_declared_tool_too_is_reported_and_for_a_person_to_decide() -> None:
    text = "- `shell`: runs\n- `fax_out`: faxes\n\n## Habits\n\n- Use shell and fax_out in turn.\n"
    found = find_stale([Document("TOOLS.md", text)], Declared(tools=("shell",)))
    assert [(one.first, one.mixed) for one in found] == [(2, False), (6, True)]
