"""The documentation is kept true: its examples are run, and what it must name is looked for in it."""

import argparse
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import cast

import msgspec
import pytest
from docs.example_runs import ROOT, SCRIPTS, Examples, TypedExamples, fences, playing, read, run_page

from daypack import Session, errors
from daypack.cli.main import COMMANDS, MODULES, run
from daypack.config import OF_SESSIONS, STORE_VARIABLES
from daypack.files.jsonl import check
from daypack.types.history import Event, Message
from tools import window

PACKAGE = ROOT / "src" / "daypack"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md"))
)


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def flowing(text: str) -> str:
    """Return a text with every run of white space as one space, so that it does not matter where lines were broken."""
    return " ".join(text.split())


@pytest.mark.parametrize("page", SCRIPTS)
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, tmp_path: Path) -> None:
    with playing(page, tmp_path / "ada") as examples:
        assert run_page(page, examples)


def test_a_transcript_is_compared_command_by_command(tmp_path: Path) -> None:
    examples = Examples(tmp_path / "ada")
    assert examples.shell("$ echo one\none\n$ echo two >&2; false\n$ echo $?\n1\n$ cd /\n") == [
        ("echo one", "one\n", "one\n"),
        ("echo two >&2; false", "", "two\n"),
        ("echo $?", "1\n", "1\n"),
        ("cd /", "", ""),
    ]
    assert examples.folder == Path("/")


def test_python_examples_can_build_on_each_other(tmp_path: Path) -> None:
    examples = TypedExamples(tmp_path / "ada")
    assert examples.python("x = 1\nprint(x)\n") == "1\n"
    assert examples.python("y = x + 1\n") == ""
    assert examples.python("print(x + y)") == "3\n"
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        examples.python("1 / 0")
    examples.close()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("for x in range(2):\n    print(x)\nprint()\n", "SyntaxError"),  # a prompt needs an empty line after a body
        ("def f():\n    x = 1\n\n    return x\n", "IndentationError"),  # an empty line ends a body
        ("print(\n", "the prompt waits for more"),
        ("list(range(1_000))\n", "the prompt echoes 4,890 characters"),
    ],
)
def test_an_example_that_cannot_be_typed_at_a_prompt_fails(code: str, problem: str, tmp_path: Path) -> None:
    examples = TypedExamples(tmp_path / "ada")
    with pytest.raises(AssertionError, match=problem):
        examples.python(code)
    examples.close()


def test_the_example_lines_of_the_format_are_lines_of_a_log() -> None:
    lines = [
        line for block in fences(read("docs/format.md")) if block.language == "jsonl" for line in block.text.split("\n")
    ]
    for line in filter(None, lines):
        assert check(line.encode()) == ("sealed" if '"crc"' in line else "unsealed"), line
        msgspec.json.decode(line, type=Message if '"role"' in line else Event)
    assert len(lines) > 5


def test_the_first_screen_of_the_readme_has_a_picture_the_two_commands_and_a_client_call() -> None:
    top = "\n".join(read("README.md").split("\n")[:40])
    commands = [block.text.strip() for block in fences(top) if block.language in ("sh", "bash", "shell", "console")]
    assert commands == ["make serve\nmake test"]
    assert "(docs/window.svg)" in top
    [example] = [block.text for block in fences(top) if block.language == "python"]
    assert re.search(r"\bsession\.accept\(client\.chat\.completions\.create\(", example)


def test_the_picture_of_a_window_is_drawn_from_a_real_one() -> None:
    """The runtime stamp holds the time, so that token counts vary a little from run to run."""

    def shape(svg: str) -> str:
        # A recalled output ends with a line signed by a key of its session: its id is another in every run.
        return re.sub(r"\b\d[\d,.]*", "0", re.sub("sha256-[0-9a-f]{12}", "sha256-id", svg))

    drawn = window.draw(*window.play())
    assert shape(drawn) == shape(window.PICTURE.read_text(encoding="utf-8")), "run python -m tools.window"


@pytest.mark.parametrize(("page", "most"), [("README.md", 150), ("docs/format.md", 300)])
def test_a_page_for_reading_in_one_go_stays_short(page: str, most: int) -> None:
    assert read(page).count("\n") <= most


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its actions."""
    yield parser
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] — argparse has no other way to ask
        choices = cast("object", action.choices)
        if isinstance(choices, dict):
            for inner in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from parsers(inner)


def commands() -> list[argparse.ArgumentParser]:
    found: list[argparse.ArgumentParser] = []
    for name in COMMANDS:
        parser = argparse.ArgumentParser(prog=f"daypack {name}")
        import_module(f"daypack.cli.{MODULES.get(name, name)}").configure(parser)
        found += parsers(parser)
    return found


@pytest.mark.parametrize("command", [parser.prog for parser in commands()])
def test_the_reference_has_the_help_of_a_command_word_for_word(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*command.split()[1:], "--help"]) == 0
    text = capsys.readouterr().out
    pasted = [flowing(block.text) for block in fences(read("docs/cli.md"))]
    assert flowing(text) in pasted, f"paste the output of `COLUMNS=100 {command} --help`:\n{text}"


def test_the_reference_has_the_overview_of_commands_word_for_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert capsys.readouterr().out in read("docs/cli.md")


def test_every_command_has_a_chapter_and_every_option_is_documented() -> None:
    page = read("docs/cli.md")
    assert [name for name in COMMANDS if f"\n## daypack {name}\n" not in page] == []
    options = {
        option
        for parser in commands()
        for action in parser._actions  # pyright: ignore[reportPrivateUsage]
        for option in action.option_strings
    }
    assert "--home" in options
    assert [option for option in sorted(options) if f"`{option}" not in prose(page)] == []


def test_every_setting_is_documented_with_its_variable() -> None:
    page = prose(read("docs/cli.md"))
    variables = {setting: f"DAYPACK_{setting.upper()}" for setting in OF_SESSIONS}
    variables |= {f"[store] {key}": variable for key, variable in STORE_VARIABLES.items()}
    variables["window"] += "_…"  # a table: one variable for each of its keys
    names = [f"`{name}`" for setting, variable in variables.items() for name in (setting, variable)]
    assert [name for name in names if name not in page] == []


def test_every_variable_the_source_reads_is_documented() -> None:
    page = prose(read("docs/cli.md"))
    source = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    variables = set(re.findall(r"\bDAYPACK_[A-Z]+\b", source))
    assert "DAYPACK_HOME" in variables
    assert [name for name in sorted(variables) if name not in page] == []


def test_every_error_and_warning_has_its_row() -> None:
    classes = [
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, (Exception, Warning)) and not name.startswith("_")
    ]
    rows = re.findall(r"^\| `(\w+)` \|", read("docs/errors.md"), re.MULTILINE)
    assert sorted(rows) == sorted(classes)


def test_everything_a_session_offers_is_in_the_design() -> None:
    page = read("docs/design.md")
    public = [name for name in vars(Session) if not name.startswith("_")]
    assert [name for name in public if not re.search(rf"`{name}\b", page)] == []


def test_every_module_is_listed_once_in_the_map() -> None:
    modules = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    named = re.findall(r"\| `([\w/]+\.py)` \|$", read("docs/map.md"), re.MULTILINE)
    assert Counter(named) == Counter(modules)


def test_the_glossary_has_each_word_once_in_order_with_an_owner_that_exists() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \| (.+?) \|$", read("docs/glossary.md"), re.MULTILINE)[1:]
    words = [word.strip("`/").lower() for word, _, _ in rows]
    assert len(words) > 100
    assert words == sorted(set(words))
    owners = {owner for _, _, owners in rows for owner in re.findall(r"`(\w+)`", owners)}
    assert [owner for owner in sorted(owners) if not list(PACKAGE.glob(f"{owner}*"))] == []


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_work(page: str) -> None:
    broken: list[str] = []
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(read(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_a_heading_is_found_by_its_anchor() -> None:
    assert anchors("# The `log` command, twice\n```\n# no heading\n```\n") == {"the-log-command-twice"}
