"""Rewrite what the pages paste: the help of every command and the output of every example. Run: make cli-docs."""

import io
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
sys.path.insert(0, str(ROOT / "tests"))

from docs.example_runs import SCRIPTS, Examples, playing  # noqa: E402 — the tests own how examples are run

from daypack.cli.main import run  # noqa: E402


def main() -> None:
    """Rewrite the pages in place; outputs that only differ in times and ids stay as they are."""
    os.environ["COLUMNS"] = "100"
    for page in sys.argv[1:] or SCRIPTS:
        with tempfile.TemporaryDirectory() as folder, playing(page, Path(folder) / "ada") as examples:
            rewrite(ROOT / page, examples)


def rewrite(page: Path, examples: Examples) -> None:
    """Renew every fenced block of a page, in order: an example may depend on those before it."""
    printed: list[str] = []  # by the Python example before a block of output
    text = page.read_text(encoding="utf-8")
    page.write_text(FENCE.sub(lambda match: renew(match, examples, printed), text), encoding="utf-8")


def renew(match: re.Match[str], examples: Examples, printed: list[str]) -> str:
    """Return a fenced block with its present content."""
    language, text = match[1], match[2]
    if language == "text" and printed:
        return f"```text\n{newest(text, printed.pop(), examples)}```"
    if usage := re.match(r"usage: daypack(?: ([a-z-]+(?: [a-z]+)?))?(?= |\n)", text):
        return f"```{language}\n{read_help(usage[1] or '')}```"
    if language == "python":
        printed[:] = [examples.python(text)]
    if language != "console":
        return match[0]
    lines: list[str] = []
    for command, pasted, output in examples.shell(text):
        lines.append(f"$ {command}\n{newest(pasted, output, examples)}")
    return f"```console\n{''.join(lines)}```"


def newest(pasted: str, printed: str, examples: Examples) -> str:
    """Return an output as printed, or as pasted if they differ only in times and ids."""
    if examples.same(printed) == examples.same(pasted):
        return pasted
    return printed.replace(str(examples.home), "/home/ada")


def read_help(name: str) -> str:
    """Return the help of a command, or of an action such as `memory add`."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        run([*name.split(), "--help"])
    return printed.getvalue()


if __name__ == "__main__":
    main()
