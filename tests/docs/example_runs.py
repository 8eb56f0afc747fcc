"""Running the examples of a page: Python and shell, in the order of the page, in one home."""

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from docs.guide_script import GUIDE
from model_endpoint import ModelEndpoint, Step
from recorded_requests import load_recording

ROOT = Path(__file__).resolve().parents[2]

# What differs from run to run in the output of an example.
VARYING = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{3})?": "<time>",
    r'"crc":"[0-9a-f]{8}"': '"crc":"<crc>"',
    r"\bctx-[0-9a-f]{24}\b": "<context>",
    r"\b[0-9a-f]{32}\b": "<id>",
    r" +\d+ (?:s|min|h|d|mo|y)(?=  )": " <age>",
    r"\b\d+ (?:s|min|h|d|mo|y) ago\b": "<age> ago",
    r", \d+\.\d s\b": ", <duration>",
    r"(?<= bytes, sha256:)[0-9a-f]{64}\b": "<digest>",  # of an export, which has times
}
# What the model says to the examples of a page, in their order.
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "README.md": ("A README, the sources and their tests.", "Two of them."),
    "docs/guide.md": GUIDE,
    "docs/format.md": (),
    "docs/cli.md": (),
}
TYPED = ("docs/guide.md",)  # pages whose Python examples build on each other
OBSERVING = ("docs/cli.md",)  # pages whose examples read a transcript with recorded requests
MARK = "-- end of output --"
MAX_ECHO = 1_000  # characters of a value that a prompt shows
# Types blocks of code at a prompt, line after line: a block per line of input, its output up to the mark. The prompt
# echoes the values of expressions; the pages do not show them, so they must not be long.
TYPIST = f"""
import codeop, json, sys

def echo(value):
    if len(repr(value)) > {MAX_ECHO}:
        raise ValueError(f"the prompt echoes {{len(repr(value)):,}} characters: assign the value")

sys.displayhook = echo
compile_typed = codeop.CommandCompiler()
typed = {{"__name__": "__main__"}}
for block in sys.stdin:
    lines = []
    for line in [*json.loads(block).split("\\n"), ""]:
        lines.append(line)
        if code := compile_typed("\\n".join(lines), "<example>", "single"):
            exec(code, typed)
            lines = []
    if lines:
        raise SyntaxError(f"the prompt waits for more: {{lines}}")
    print({MARK!r}, flush=True)
"""


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


class Examples:
    """Runs the examples of one page in one home."""

    def __init__(self, home: Path, variables: Mapping[str, str] = {}) -> None:
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
            "COLUMNS": "100",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            **variables,
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
        """Return what a block of code prints, in a Python of its own."""
        return self.run(sys.executable, "-W", "error", "-", text=code)

    def close(self) -> None:
        """End what still runs."""

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


def draw_image(width: int, height: int) -> bytes:
    """Return a grey PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class TypedExamples(Examples):
    """Types all Python examples of a page at one Python prompt, as a reader does."""

    def __init__(self, home: Path, variables: Mapping[str, str] = {}) -> None:
        super().__init__(home, variables)
        (self.folder / "boat.png").write_bytes(draw_image(640, 480))
        self.process = subprocess.Popen(
            (sys.executable, "-W", "error", "-c", TYPIST),
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def python(self, code: str) -> str:
        """Return what a block of code prints, after all blocks before it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        printed: list[str] = []
        for line in self.process.stdout:
            if line == f"{MARK}\n":
                return "".join(printed)
            printed.append(line)
        raise AssertionError("".join(printed))

    def close(self) -> None:
        """End the Python."""
        self.process.communicate(timeout=60)


def run_page(page: str, examples: Examples) -> int:
    """Run the examples of a page, compare what they print with what it says, and return how many there were."""
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
    return ran


@contextmanager
def playing(page: str, home: Path) -> Generator[Examples]:
    """Give what runs the examples of a page, with the model that answers them; it must have said all it has to say."""
    with ModelEndpoint(*SCRIPTS[page]) as endpoint:
        examples = (TypedExamples if page in TYPED else Examples)(home, endpoint.environment)
        if page in OBSERVING:
            (examples.folder / "notes.jsonl").write_bytes(load_recording().text)
        try:
            yield examples
        finally:
            examples.close()
        assert endpoint.left == []
