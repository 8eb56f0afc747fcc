"""The requirements manifest: every id with its sentence and status, and the tests that are marked with it.

One table of a section's file, here s4.toml:

    [S4-F8]
    text = "A session has `meta.json`, its settings and counters."
    status = "pending"
    reason = "comes with history"
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard, cast

FOLDER = Path(__file__).resolve().parent
TESTS = FOLDER.parent

SECTIONS = {
    "S0": "hybrid protocol",
    "S1": "CONTEXT.md and compaction",
    "S2": "memory",
    "S3": "envelope model",
    "S4": "sessions, packs, upkeep",
    "X": "contradictions resolved",
    "G": "gaps filled",
    "T": "acceptance tests",
}
STATUSES = ("covered", "pending", "deferred")


class ManifestError(Exception):
    """A manifest file or a requirement mark that cannot be read; the text names the place."""


class Requirement(NamedTuple):
    """One requirement; `reason` says why it is not covered, and is None when it is."""

    id: str
    section: str
    text: str
    status: str
    reason: str | None


def path_of(section: str, folder: Path = FOLDER) -> Path:
    """Return the file that holds the requirements of `section`."""
    return folder / f"{section.lower()}.toml"


def load(folder: Path = FOLDER) -> dict[str, Requirement]:
    """Read all sections, in the order of their files."""
    found: dict[str, Requirement] = {}
    for section in SECTIONS:
        path = path_of(section, folder)
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ManifestError(f"{path.name}: {error}") from error
        for name, table in tables.items():
            found[name] = _requirement(path, section, name, table)
    return found


def _requirement(path: Path, section: str, name: str, table: object) -> Requirement:
    if section_of(name) != section:
        raise ManifestError(f"{path.name}: [{name}] does not belong to section {section}")
    # A dotted id without quotes is read as a table in a table: the nested dict is refused here.
    fields = cast("dict[str, Any]", table) if isinstance(table, dict) else {}
    wrong = [key for key, value in fields.items() if not isinstance(value, str)]
    if wrong or not {"text", "status"} <= fields.keys() <= {"text", "status", "reason"}:
        raise ManifestError(f"{path.name}: [{name}] needs the strings text, status and, unless covered, reason")
    return Requirement(name, section, fields["text"], fields["status"], fields.get("reason"))


def section_of(name: str) -> str:
    """Return the section an id belongs to: `S0` of `S0-R8.1`, `X` of `X12`."""
    return name.partition("-")[0] if "-" in name else name[:1]


def cover(ids: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Set these ids to covered, drop their reasons, touch no other byte; return the ids that changed."""
    requirements = load(folder)
    wanted = list(dict.fromkeys(ids))
    if unknown := [name for name in wanted if name not in requirements]:
        raise ManifestError(f"not in the manifest: {', '.join(unknown)}")
    changed = [name for name in wanted if requirements[name].status != "covered"]
    for section in SECTIONS:
        mine = {name for name in changed if requirements[name].section == section}
        if mine:
            path = path_of(section, folder)
            path.write_bytes(_covered(path.read_bytes().decode(), mine).encode())
    return changed


def _covered(toml: str, ids: set[str]) -> str:
    lines: list[str] = []
    inside = False
    for line in toml.splitlines(keepends=True):
        if header := re.fullmatch(r'\["?([^"\]]+)"?\]\s*', line):
            inside = header[1] in ids
        if inside and line.startswith("status = "):
            lines.append(re.sub(r'"\w*"', '"covered"', line, count=1))
        elif not (inside and line.startswith("reason = ")):
            lines.append(line)
    return "".join(lines)


def marked(tests: Path = TESTS) -> dict[str, list[str]]:
    """Map each id to the tests marked with it, read from the sources so that it holds for any subset run."""
    found: dict[str, set[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        for test, ids in _Scan(path, path.relative_to(tests.parent).as_posix()).tests():
            for name in ids:
                found.setdefault(name, set()).add(test)
    return {name: sorted(found[name]) for name in sorted(found)}


class _Scan:
    """The tests of one file with their requirement marks: own ones, of the class, of the module."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        self.read: set[ast.AST] = set()

    def tests(self) -> list[tuple[str, list[str]]]:
        """Return each test with its ids; refuse a mark that cannot be read or that no test is under."""
        tests = self._tests(self.tree, self.name, collected=True)
        for node in ast.walk(self.tree):
            if _is_mark(node) and node not in self.read:
                self._refuse(node, "put a requirement mark, as a call, on a test, a test class or in pytestmark")
        return tests

    def _tests(self, scope: ast.Module | ast.ClassDef, prefix: str, *, collected: bool) -> list[tuple[str, list[str]]]:
        statements = list(_statements(scope))
        marks = scope.decorator_list[:] if isinstance(scope, ast.ClassDef) else []
        marks += [mark for statement in statements for mark in _pytestmark(statement)]
        shared = self._ids(marks)
        tests: list[tuple[str, list[str]]] = []
        for node in statements:
            if isinstance(node, ast.ClassDef):
                test_class = collected and node.name.startswith("Test")
                tests += self._tests(node, f"{prefix}::{node.name}", collected=test_class)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = self._ids(node.decorator_list)
                if collected and node.name.startswith("test"):
                    tests.append((f"{prefix}::{node.name}", own))
                elif own:
                    self._refuse(node, f"{node.name} has a requirement mark but pytest does not collect it")
        if shared and not tests:
            self._refuse(marks[0], "a requirement mark with no test under it")
        return [(name, own + shared) for name, own in tests]

    def _ids(self, marks: list[ast.expr]) -> list[str]:
        found: list[str] = []
        for mark in marks:
            if isinstance(mark, ast.Call) and _is_mark(mark.func):
                self.read.add(mark.func)
                if mark.keywords or not mark.args:
                    self._refuse(mark, "a requirement mark takes one or more ids and nothing else")
                found += [self._id(argument) for argument in mark.args]
        return found

    def _id(self, argument: ast.expr) -> str:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            self._refuse(argument, f"a requirement id is a string literal, not {ast.unparse(argument)}")
        return argument.value

    def _refuse(self, node: ast.expr | ast.stmt, why: str) -> NoReturn:
        raise ManifestError(f"{self.name}:{node.lineno}: {why}")


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a scope, also those under if, try and with, but not those of inner scopes."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            yield from _statements(node)


def _pytestmark(statement: ast.stmt) -> list[ast.expr]:
    """Return the marks that a statement assigns to `pytestmark`, if it does."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name("pytestmark")], value=value)
            | ast.AnnAssign(target=ast.Name("pytestmark"), value=ast.expr() as value)
        ):
            return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        case _:
            return []


def _is_mark(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Tell whether a node is `pytest.mark.requirement` or `mark.requirement`, not yet called."""
    match node:
        case ast.Attribute(ast.Attribute(attr="mark") | ast.Name("mark"), "requirement"):
            return True
        case _:
            return False
