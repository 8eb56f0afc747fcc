"""Docstrings, comments, messages and docs are in plain technical English; a few phrases must not come back."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "daypack"
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))

# Each phrase has a plain word in its place: report, list, show; is, appears; continue; the rest, remaining; after;
# hint; the user, the caller, another process; no process, nothing; said, stated.
DIALECT = re.compile(
    r"""\b(?:
      tells?\ (?:of|about|apart|that|what|which|why|how|whether) | told | telling
    | stands?(?!\ for\b|-|ard|alone) | stood | standing(?!\ rules?)
    | (?:goes|go|going|went)\ on
    | whoever | whom | whose\? | nobody | somebody(?:'s)?
    | what\ is\ left\ of | ways?\ (?:out|back) | order\ of\ right | all\ the\ same
    | behind(?!\ (?:a|one|the)\ (?:proxy|gate|port|lock|API)\b)
    | (?:is|are)\ said(?:\ by)?
    | (?:for|of|by|as|with|to|than|from)\ one\ (?:that|of|who|which)
    | no\ (?:more|longer)\ than\ one\ says
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
VAGUE_NAMES = {"one", "many", "told", "said"}

# Words of other people: cue phrases that are looked for in conversations.
QUOTED = {
    *("derived/rules/english.py", "derived/rules/headers.py", "memory/document/patterns.py"),
    *("text/clean.py", "text/cues/phrases.py", "text/english.py"),
}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and the strings of several words in a source file."""
    code = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 2:
            yield node.lineno, node.value


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Markdown page outside fenced blocks and code spans."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`", "`", line)


def vague(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the loop variables and parameters whose name says nothing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets = [target for target in ast.walk(node.target) if isinstance(target, ast.Name)]
            yield from ((target.lineno, target.id) for target in targets if target.id in VAGUE_NAMES)
        elif isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
            yield node.lineno, node.arg


def findings(path: Path) -> list[str]:
    if path.suffix == ".md":
        name = path.relative_to(ROOT).as_posix()
        lines, names = list(prose(path.read_text(encoding="utf-8"))), []
    else:
        name = path.relative_to(SOURCE).as_posix()
        lines, names = ([] if name in QUOTED else list(texts(path))), list(vague(path))
    found = [f"{name}:{line}: {match[0]!r}" for line, text in lines for match in DIALECT.finditer(text)]
    return found + [f"{name}:{line}: the name {word!r}" for line, word in names]


def pages() -> list[Path]:
    return [*PAGES, *sorted(SOURCE.rglob("*.py"))]


def test_prose_and_names_are_plain() -> None:
    assert [finding for path in pages() for finding in findings(path)] == []


@pytest.mark.parametrize(
    "phrase",
    [
        "Damage is told, never hidden",
        "In it stand, in this order of right",
        "the epoch of ev-2 goes on",
        "Whoever finds nobody at work works for all",
        "what is left of the window",
        "notes behind the tail",
    ],
)
def test_the_check_finds_the_phrases_it_is_there_for(phrase: str) -> None:
    assert DIALECT.search(phrase)


@pytest.mark.parametrize(
    "phrase", ["a stub stands for the output", "standard input", "behind a proxy", "Tell the user"]
)
def test_plain_sentences_pass(phrase: str) -> None:
    assert not DIALECT.search(phrase)


if __name__ == "__main__":  # python tests/project/test_plain_english.py [PATH-PREFIX …]: list findings
    import sys

    for path in pages():
        for finding in findings(path):
            if not sys.argv[1:] or finding.startswith(tuple(sys.argv[1:])):
                print(finding)
