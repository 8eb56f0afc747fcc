"""`daypack lint` tells what prompt files repeat, and mends what it may."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from daypack.session import open_session

Command = Callable[..., subprocess.CompletedProcess[str]]
SHOP = Path(__file__).resolve().parents[1] / "upkeep" / "lint" / "workspace" / "shop"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHOP, tmp_path / "shop"))


def tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.requirement("T11", "S1-P1")
def test_the_map_the_history_the_stale_and_the_costs_are_printed(command: Command, shop: Path) -> None:
    before = tree(shop)
    done = command("lint", str(shop), "--declares", str(shop / "declares.txt"))
    assert done.returncode == 1
    for line in (
        "Assumptions are forbidden exact AGENTS.md L7, MEMORY.md L5",
        "Memory triple, stale (TOOLS.md) SOUL.md L95-99, TOOLS.md L87-97, identity L3",
        "TOOLS.md L90 no layer Observations",
        "tokens per turn can be saved",
    ):
        assert line in " ".join(done.stdout.split())
    assert tree(shop) == before


def test_the_folder_one_stands_in_is_the_default(command: Command) -> None:
    Path("AGENTS.md").write_text("- Never deploy on a Friday.\n")
    assert json.loads(command("lint", "--json").stdout)["clean"] is True
    Path("MEMORY.md").write_text("- Never deploy on a Friday.\n")
    done = command("lint", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["clean"]) == (1, False)
    assert found["duplicates"] == [
        {
            "concept": "Never deploy on a Friday",
            "class": "exact",
            "places": [{"source": "AGENTS.md", "spans": [[1, 1]]}, {"source": "MEMORY.md", "spans": [[1, 1]]}],
        }
    ]
    assert found["tokens"]["saved"] > 0


@pytest.mark.requirement("S1-I3", "S1-L1.1", "S1-D3.1", "S1-D4", "S1-V4")
def test_fix_rewrites_memory_keeps_its_former_text_and_writes_a_patch(command: Command, shop: Path) -> None:
    before = tree(shop)
    done = command("lint", str(shop), "--declares", str(shop / "declares.txt"), "--fix", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    after = tree(shop)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"MEMORY.md", "daypack-lint.patch"}
    assert Path(found["written"]["backup"]).read_bytes() == before["MEMORY.md"]
    assert found["written"]["diff"].startswith("--- a/MEMORY.md\n+++ b/MEMORY.md\n")
    subprocess.run(["patch", "-p1", "-s", "-i", found["patch"]], cwd=shop, check=True)
    (shop / "CONTEXT.md").unlink()
    again = json.loads(command("lint", str(shop), "--declares", str(shop / "declares.txt"), "--json").stdout)
    assert (again["clean"], again["duplicates"], again["history"]) == (True, [], [])


def test_the_patch_of_a_mended_workspace_is_not_written(command: Command) -> None:
    Path("AGENTS.md").write_text("- Never deploy on a Friday.\n")
    done = command("lint", "--fix")
    assert (done.returncode, "is unchanged" in done.stderr) == (0, True)
    assert [path.name for path in Path().iterdir()] == ["AGENTS.md"]


def test_a_session_brings_its_workspace_its_blocks_and_its_state(command: Command, home: str, shop: Path) -> None:
    with open_session("work", home=home, workspace=str(shop), model="gpt-4o") as session:
        session.switch("voice", on=True)
        state = Path(session.history.layout.derived("context_doc"))
        state.parent.mkdir(exist_ok=True)
        state.write_text("# Context\n\n## Task\nSail.\n\n## Decisions\n\n## Facts\n\n## Pending\n\n## Errors\n")
    found = json.loads(command("lint", "--session", "work", "--json").stdout)
    assert found["workspace"] == str(shop)
    costs = {one["component"]: one for one in found["tokens"]["components"]}
    assert "voice" in costs
    assert "provenance" not in costs
    assert costs["CONTEXT.md"]["before"] == costs["CONTEXT.md"]["after"] < 40


def test_other_texts_of_the_prompt_are_looked_at(command: Command, tmp_path: Path) -> None:
    Path("AGENTS.md").write_text("# A\n\n- Ask before you delete a branch.\n")
    builder = tmp_path / "builder.rs"
    builder.write_text('let rules = [\n    "Ask before you delete a branch.",\n];\n')
    found = json.loads(command("lint", "--with", str(builder), "--json").stdout)
    assert [[place["source"] for place in row["places"]] for row in found["duplicates"]] == [
        ["AGENTS.md", "builder.rs"]
    ]
    assert found["duplicates"][0]["places"][1]["spans"] == [[2, 2]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nowhere",), "no such folder"),
        (("--with", "nowhere"), "no such file"),
        (("--declares", "nowhere"), "no such file"),
        (("--session", "nowhere"), "no such session"),
    ],
)
def test_what_is_not_there_is_told(command: Command, arguments: tuple[str, ...], problem: str) -> None:
    done = command("lint", *arguments)
    assert done.returncode != 0
    assert problem in done.stderr
    assert done.stdout == ""


def test_text_that_is_not_utf8_is_told(command: Command) -> None:
    Path("AGENTS.md").write_bytes(b"\xff\xfe")
    done = command("lint")
    assert (done.returncode, "is not UTF-8" in done.stderr) == (2, True)
