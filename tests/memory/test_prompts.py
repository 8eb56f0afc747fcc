"""The prompts of memories: whose they are, and which part of them counts."""

from pathlib import Path

import pytest

from daypack.errors import BadConfig, BadInput
from daypack.memory.prompts import NAMES, TYPES, assemble, list_prompts, load_prompts, read_prompt
from daypack.types.memory import PLACEHOLDER

TOOLS = {
    *("create_memory", "get_memory", "add_entry", "list_entries", "get_context", "put_context"),
    *("await_consistency", "get_user", "search_memories"),
}


def write(folder: Path, name: str, text: str, kind: str = "chat") -> str:
    (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / kind / f"{name}.md").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.requirement("S2-P1", "S2-P2", "S2-P2.1", "S2-P2.2", "S2-P2.3")
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_has_its_three_prompts_in_its_folder(kind: str) -> None:
    import daypack.prompts

    folder = Path(daypack.prompts.__file__ or "").parent / "default" / kind
    assert sorted(one.name for one in folder.iterdir()) == [f"{name}.md" for name in sorted(NAMES)]
    loaded = load_prompts(kind)
    assert loaded.memory_type == kind
    for name in NAMES:
        assert getattr(loaded, name) == (folder / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", TYPES)
def test_the_prompts_name_the_caps_the_order_and_only_tools_that_exist(kind: str) -> None:
    loaded = load_prompts(kind)
    assert all(cap in loaded.context_prompt for cap in ("5000", "4800", "10 nodes", PLACEHOLDER.partition(".")[0]))
    assert all(
        f"`## {name}`" in loaded.context_prompt
        for name in ("Participants", "Facts", "Timeline", "Decisions", "Open tasks")
    )
    assert "512" in loaded.summary_prompt
    assert "client_key" in loaded.entry_capture_prompt
    text = "\n".join((loaded.context_prompt, loaded.entry_capture_prompt, loaded.summary_prompt))
    labels = {line.removeprefix("### TOOL: ") for line in text.split("\n") if line.startswith("### TOOL:")}
    assert labels <= TOOLS
    assert {"add_entry", "get_context", "put_context", "list_entries", "await_consistency"} <= labels


@pytest.mark.requirement("S2-P1")
@pytest.mark.parametrize("kind", ["diary", "../chat", "", "a/b", "..", "chat\n", "x" * 100])
def test_a_type_without_prompts_has_those_of_chat(kind: str) -> None:
    assert load_prompts(kind) == load_prompts("chat")


def test_a_users_own_prompt_goes_first_and_the_others_stay(tmp_path: Path) -> None:
    folder = write(tmp_path, "summary_prompt", "Mine.\n", "task")
    loaded = load_prompts("task", folder)
    assert loaded.summary_prompt == "Mine.\n"
    assert loaded.context_prompt == load_prompts("task").context_prompt
    assert load_prompts("chat", folder) == load_prompts("chat")


def test_a_user_may_have_types_of_his_own(tmp_path: Path) -> None:
    folder = write(tmp_path, "summary_prompt", "Mine.\n", "diary")
    loaded = load_prompts("diary", folder)
    assert (loaded.memory_type, loaded.summary_prompt) == ("diary", "Mine.\n")
    assert loaded.context_prompt == load_prompts("chat").context_prompt
    listed = list(list_prompts(folder))
    assert listed == [(kind, name) for kind in (*TYPES, "diary") for name in NAMES]
    assert list(list_prompts(str(tmp_path / "nowhere"))) == listed[:-3]


def test_a_prompt_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no prompt 'other'"):
        read_prompt("chat", "other")
    folder = write(tmp_path, "summary_prompt", " \n")
    with pytest.raises(BadConfig, match="is empty"):
        read_prompt("chat", "summary_prompt", folder)
    (tmp_path / "chat" / "summary_prompt.md").write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig, match="UTF-8"):
        read_prompt("chat", "summary_prompt", folder)


TEXT = """Before.

### TOOL: add_entry
Add.
#### Detail
More.

### TOOL: put_context
Put.
```
### TOOL: add_entry
not a label
```

## After
Outside.

### TOOL: add_entry_twice
Other.
"""


@pytest.mark.requirement("S2-TS")
def test_of_the_blocks_for_tools_only_that_of_the_tool_remains() -> None:
    assert assemble(TEXT, "add_entry") == (
        "Before.\n\n### TOOL: add_entry\nAdd.\n#### Detail\nMore.\n\n## After\nOutside.\n"
    )
    put = assemble(TEXT, "put_context")
    assert "not a label" in put
    assert "Add.\n" not in put
    assert "Other." not in put
    assert assemble(TEXT, "get_user") == "Before.\n\n## After\nOutside.\n"
    assert assemble(TEXT, "ADD_ENTRY") == assemble(TEXT, "get_user")


@pytest.mark.requirement("S2-TS")
def test_several_prompts_become_one_text() -> None:
    assert assemble(["A.\n### TOOL: x\nX.\n", "### TOOL: y\nY.", "B."], "x") == "A.\n### TOOL: x\nX.\n\nB.\n"


@pytest.mark.requirement("S2-TS")
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_the_prompts_of_a_type_for_one_tool_have_no_other_blocks(tool: str) -> None:
    text = load_prompts("project").for_tool(tool)
    labels = {line for line in text.split("\n") if line.startswith("### TOOL:")}
    assert labels <= {f"### TOOL: {tool}"}
    assert "# The summary of one entry" in text
