"""The shape of the repository: file lengths, names, docstrings, start-up. `make check` runs linters and contracts."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_LINES = 450
MAX_FILES = 16
BANNED = {
    "util",
    "utils",
    "helper",
    "helpers",
    "manager",
    "base",
    "service",
    "handler",
    "processor",
    "factory",
    "engine",
    "impl",
    "v2",
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def names(path: Path) -> Iterator[str]:
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_no_file_holds_more_than_one_noun() -> None:
    long = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources("src", "tests", "bench", "demo", "tools")
    }
    assert {path: lines for path, lines in long.items() if lines > MAX_LINES} == {}


def test_no_name_says_nothing() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("src", "bench", "demo", "tools")
        for name in names(path)
        if words(name) & BANNED
    ]
    assert found == []


@pytest.mark.parametrize("name", ["string_utils", "BaseReader", "session_manager", "parse_v2", "HTTPHandler"])
def test_the_name_check_can_fail(name: str) -> None:
    assert words(name) & BANNED


def test_every_module_says_in_a_sentence_what_it_owns() -> None:
    silent = [
        str(path) for path in sources("src") if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_functions_take_at_most_six_parameters() -> None:
    wide: list[str] = []
    for path in sources("src"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = [one.arg for one in node.args.args + node.args.kwonlyargs if one.arg not in ("self", "cls")]
                if len(given) > 6:
                    wide.append(f"{path.name}:{node.name}")
    assert wide == []


def test_core_imports_stay_light() -> None:
    code = "import sys, daypack; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("pydantic", "asyncio", "splintr", "pathlib", "dataclasses", "tomllib", "argparse", "json.decoder"):
        assert f"'{heavy}'" not in loaded, heavy


def test_no_folder_is_a_heap() -> None:
    modules = Counter(path.parent for path in sources("src") if path.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > MAX_FILES}
    assert {folder: count for folder, count in crowded.items() if folder != "src/daypack/cli"} == {}
