"""The documentation is kept true: its examples are run, and what it must name is looked for in it."""

import argparse
import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import pytest
from scripted_endpoint import Endpoint, chat, in_turn

from daypack import Session, errors
from daypack.cli.main import COMMANDS, MODULES, run
from daypack.config import Config
from daypack.files.jsonl import check
from daypack.types.history import Event, Message
from tools import window

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "daypack"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))

# What differs from run to run in the output of an example.
VARYING = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{3})?": "<time>",
    r'"crc":"[0-9a-f]{8}"': '"crc":"<crc>"',
    r"\bctx-[0-9a-f]{24}\b": "<context>",
    r"\b[0-9a-f]{32}\b": "<id>",
    r" +\d+ (?:s|min)(?=  )": " <age>",
}
MARK = "-- end of output --"
# The answers of the model in the README's example, which is called with the real client.
MODEL_SAYS = ("A README, the sources and their tests.", "Two of them.")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


class Fence(NamedTuple):
    """A fenced block: its language, the line it begins in, its text."""

    language: str
    line: int
    text: str


def fences(text: str) -> list[Fence]:
    found = re.finditer(r"^```([a-z]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Fence(match[1], text.count("\n", 0, match.start()) + 1, match[2]) for match in found]


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def flowing(text: str) -> str:
    """Return a text with every run of white space as one space, so that it does not matter where lines were broken."""
    return " ".join(text.split())


class Examples:
    """Runs the examples of one page, one after the other, in one home."""

    def __init__(self, home: Path, endpoint: str = "http://127.0.0.1:9") -> None:
        self.home = home
        self.folder = home / "project"
        self.folder.mkdir(parents=True)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
        self.environment = outside | {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), outside["PATH"])),
            "HOME": str(home),
            "DAYPACK_HOME": str(home / ".daypack"),
            "DAYPACK_UID": "1000",
            "DAYPACK_EMBEDDING_MODEL": "none",  # scores must not depend on which models are here
            "LC_ALL": "C.UTF-8",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{endpoint}/v1",
        }

    def run(self, *command: str, text: str) -> str:
        done = subprocess.run(
            command,
            input=text,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        return self.run(sys.executable, "-W", "error", "-", text=code)

    def shell(self, transcript: str) -> list[tuple[str, str, str]]:
        """Return each command of a transcript with the output it says and the output it has."""
        steps = [step.partition("\n") for step in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]]
        script = "".join(f"{command}\nstatus=$?; echo '{MARK}'; (exit $status)\n" for command, _, _ in steps)
        # The folder a block changes into is the one the next block begins in.
        script = f"exec 2>&1 </dev/null\n{script}pwd"
        *printed, folder = self.run("bash", "-c", script, text="").split(f"{MARK}\n")
        self.folder = Path(folder.strip())
        return [(command, said, had) for (command, _, said), had in zip(steps, printed, strict=True)]

    def same(self, text: str) -> str:
        """Return an output with what varies replaced."""
        text = text.replace(str(self.home), "/home/ada")
        for pattern, name in VARYING.items():
            text = re.sub(pattern, name, text)
        return text


@pytest.mark.parametrize("page", ["README.md", "docs/format.md", "docs/cli.md"])
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, tmp_path: Path) -> None:
    with Endpoint(in_turn(*map(chat, MODEL_SAYS))) as endpoint:
        run_examples(page, Examples(tmp_path / "ada", endpoint.url))
        assert len(endpoint.asked) == (len(MODEL_SAYS) if page == "README.md" else 0)


def run_examples(page: str, examples: Examples) -> None:
    blocks = fences(read(page))
    ran = 0
    for block, following in zip(blocks, [*blocks[1:], Fence("", 0, "")], strict=True):
        if block.language == "python":
            expected = following.text if following.language == "text" else ""
            assert examples.same(examples.python(block.text)) == examples.same(expected), f"{page}:{block.line}"
            ran += 1
        elif block.language == "console":
            for command, said, had in examples.shell(block.text):
                assert examples.same(had) == examples.same(said), f"{page}:{block.line}: $ {command}"
                ran += 1
    assert ran


def test_a_transcript_is_compared_command_by_command(tmp_path: Path) -> None:
    examples = Examples(tmp_path / "ada")
    assert examples.shell("$ echo one\none\n$ echo two >&2; false\n$ echo $?\n1\n$ cd /\n") == [
        ("echo one", "one\n", "one\n"),
        ("echo two >&2; false", "", "two\n"),
        ("echo $?", "1\n", "1\n"),
        ("cd /", "", ""),
    ]
    assert examples.folder == Path("/")


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
    assert re.search(r"^ +session\.accept\(client\.chat\.completions\.create\(", example, re.MULTILINE)


def test_the_picture_of_a_window_is_drawn_from_a_real_one() -> None:
    """The runtime stamp holds the time, so that token counts vary a little from run to run."""

    def shape(svg: str) -> str:
        return re.sub(r"\b\d[\d,.]*", "0", svg)

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
    variables = {setting: f"DAYPACK_{setting.upper()}" for setting in Config.__struct_fields__}
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
