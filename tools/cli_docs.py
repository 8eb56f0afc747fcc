"""Rewrite what the pages paste: the help of every command and the output of every example. Run: make cli-docs."""

import io
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/format.md", "docs/cli.md")
FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
sys.path.insert(0, str(ROOT / "tests"))

from docs.test_docs import Examples  # noqa: E402 — the tests own how examples are run

from daypack.cli.main import run  # noqa: E402


def main() -> None:
    """Rewrite the pages in place; outputs that only differ in times and ids stay as they are."""
    os.environ["COLUMNS"] = "100"
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            rewrite(ROOT / page, Examples(Path(folder) / "ada"))


def rewrite(page: Path, examples: Examples) -> None:
    """Renew every fenced block of a page, in order: an example may depend on those before it."""
    text = page.read_text(encoding="utf-8")
    page.write_text(FENCE.sub(lambda match: renew(match, examples), text), encoding="utf-8")


def renew(match: re.Match[str], examples: Examples) -> str:
    """Return a fenced block with its present content."""
    language, text = match[1], match[2]
    if usage := re.match(r"usage: daypack(?: ([a-z-]+(?: [a-z]+)?))?(?= |\n)", text):
        return f"```{language}\n{read_help(usage[1] or '')}```"
    if language == "python":
        examples.python(text)
    if language != "console":
        return match[0]
    lines: list[str] = []
    for command, pasted, printed in examples.shell(text):
        unchanged = examples.same(printed) == examples.same(pasted)
        output = pasted if unchanged else printed.replace(str(examples.home), "/home/ada")
        lines.append(f"$ {command}\n{output}")
    return f"```console\n{''.join(lines)}```"


def read_help(name: str) -> str:
    """Return the help of a command, or of an action such as `memory add`."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        run([*name.split(), "--help"])
    return printed.getvalue()


if __name__ == "__main__":
    main()
