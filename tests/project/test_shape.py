"""The shape of the repository: folder and file sizes, names, docstrings, layers, public names, start-up."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import daypack

ROOT = Path(__file__).parents[2]
MAX_LINES = 450
MAX_FILES = 16
BANNED = {
    "util", "utils", "helper", "helpers", "manager", "base", "service", "handler", "processor", "factory", "engine",
    "impl", "v2",
}  # fmt: skip


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


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources("src", "tests", "bench", "demo", "tools")
    }
    assert {path: lines for path, lines in long.items() if lines > MAX_LINES} == {}


def test_no_name_holds_an_empty_word() -> None:
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


def test_every_module_has_a_docstring() -> None:
    silent = [
        str(path) for path in sources("src") if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_functions_take_at_most_six_parameters() -> None:
    wide: list[str] = []
    for path in sources("src"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                parameters = [parameter.arg for parameter in node.args.args + node.args.kwonlyargs]
                if len([name for name in parameters if name not in ("self", "cls")]) > 6:
                    wide.append(f"{path.name}:{node.name}")
    assert wide == []


def test_core_imports_stay_light() -> None:
    code = "import sys, daypack; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("pydantic", "asyncio", "splintr", "pathlib", "dataclasses", "tomllib", "argparse", "json.decoder"):
        assert f"'{heavy}'" not in loaded, heavy


def in_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_dir_and_completion_show_the_public_names_before_they_are_imported() -> None:
    assert in_python("import daypack; print(sorted(set(daypack.__all__) - set(dir(daypack))))") == "[]"
    complete = (
        "import daypack, rlcompleter; print(rlcompleter.Completer({'daypack': daypack}).complete('daypack.o', 0))"
    )
    assert in_python(complete).startswith("daypack.open_memory")


def test_every_public_name_can_be_imported_and_an_unknown_one_is_refused() -> None:
    assert in_python("from daypack import *; print(Memories, Session, errors, open_memory, open_session, protocol)")
    with pytest.raises(AttributeError, match="'daypack' has no attribute 'open_sesion'"):
        getattr(daypack, "open_sesion")  # noqa: B009 — the type checker knows that it is not there


def layers() -> list[set[str]]:
    """Return the layers of the import contract, low to high."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [contract] = [contract for contract in contracts if contract["type"] == "layers"]
    return [set(layer.split(" | ")) for layer in reversed(contract["layers"])]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_a_page_that_lists_the_layers_lists_those_of_the_contract(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    listed = re.findall(r"`errors` < [^.]*", text)
    assert [[set(re.findall(r"\w+", layer)) for layer in chain.split("<")] for chain in listed] == [layers()]


def test_no_folder_holds_too_many_modules() -> None:
    modules = Counter(path.parent for path in sources("src") if path.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > MAX_FILES}
    assert {folder: count for folder, count in crowded.items() if folder != "src/daypack/cli"} == {}
