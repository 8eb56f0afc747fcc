"""`python -m bench.retrieval DATA`: ask a memory the questions of a public corpus and measure the rank of the evidence.

No answer is generated and no model judges, so a run is deterministic and needs no network.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from statistics import mean, median
from typing import Any, NamedTuple, Protocol

import orjson

from bench.corpora import Said, Talk, foreign_questions, read_corpora
from daypack.errors import DaypackError
from daypack.llm.embedders import open_embedder
from daypack.memory.tools import Memories, open_memory
from daypack.types.memory import About

VECTORS = ("none", "static", "minilm")
# Of the development part: recall@10 over all questions.
TARGETS = {"LoCoMo": (0.78, 0.79, 0.81), "BEAM 100K": (0.54, 0.58, 0.61)}
_DEPTH = 50
_WAIT_MS = 600_000
# Corpora have pages pasted into a message; a memory takes them when it is told to.
_SETTINGS = "[memory]\nentry_bytes = 1000000\n"


class VectorQuery(NamedTuple):
    """What came of one question."""

    corpus: str
    talk: str
    kind: str
    question: str
    gold: tuple[str, ...]
    found: tuple[str, ...]
    seconds: float

    def recall(self, count: int) -> float:
        """The share of the evidence among the first `count` entries."""
        return len(set(self.gold) & set(self.found[:count])) / len(self.gold)

    @property
    def is_foreign(self) -> bool:
        """True for a question that belongs to another conversation: nothing in this memory answers it."""
        return not self.gold

    @property
    def rank(self) -> float:
        """One over the place of the first evidence; 0 when there is none."""
        return next((1 / place for place, one in enumerate(self.found, 1) if one in self.gold), 0.0)


class Door(Protocol):
    """A way into a memory."""

    def fill(self, talk: Talk) -> None:
        """Make a memory and add everything that was said; return when it can be searched."""
        ...

    def ask(self, question: str) -> tuple[str, ...]:
        """Return the names of the entries that were found."""
        ...


class ThroughPython:
    """The Python API."""

    def __init__(self, home: str) -> None:
        self._memories: Memories = open_memory(home=home)
        self._memory_id = ""
        self._names: dict[str, str] = {}

    def fill(self, talk: Talk) -> None:
        """Add entry by entry, then wait."""
        self._memory_id = self._memories.create_memory(talk.name.replace("/", "-")[:50]).memory_id
        for one in talk.entries:
            about = About(session=one.session, role=one.role, author=one.author, at=one.when or None)
            self._names[self._memories.add_entry(self._memory_id, one.text, about=about).entry_id] = one.id
        while (reached := self._memories.await_consistency(self._memory_id, timeout_ms=_WAIT_MS)).status == "timeout":
            print(f"{talk.name}: {reached.problem}", file=sys.stderr, flush=True)
        if reached.status == "failed":
            raise SystemExit(f"{talk.name}: {reached.problem}")

    def ask(self, question: str) -> tuple[str, ...]:
        """Search."""
        found = self._memories.search_memories(self._memory_id, question, top_k=_DEPTH)
        return tuple(self._names[hit.entry_id] for hit in found.entries)


class ThroughMcp:
    """`daypack mcp`, spoken to over its standard input and output."""

    def __init__(self, home: str) -> None:
        command = [sys.executable, "-m", "daypack", "mcp", "--home", home]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self._memory_id = ""
        self._names: dict[str, str] = {}
        client = {"name": "retrieval", "version": "1"}
        self._request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def fill(self, talk: Talk) -> None:
        """Add entry by entry, then wait."""
        self._memory_id = self._call("create_memory", title=talk.name.replace("/", "-")[:50])["memory_id"]
        for one in talk.entries:
            self._names[self._add(one)["entry_id"]] = one.id
        wait = {"memory_id": self._memory_id, "timeout_ms": _WAIT_MS}
        while (reached := self._call("await_consistency", **wait))["status"] == "timeout":
            print(f"{talk.name}: {reached['problem']}", file=sys.stderr, flush=True)
        if reached["status"] == "failed":
            raise SystemExit(f"{talk.name}: {reached}")

    def _add(self, one: Said) -> dict[str, Any]:
        about = {"session": one.session, "role": one.role, "author": one.author} | (
            {"at": one.when} if one.when else {}
        )
        return self._call("add_entry", memory_id=self._memory_id, raw_entry=one.text, **about)

    def ask(self, question: str) -> tuple[str, ...]:
        """Search."""
        found = self._call("search_memories", memory_id=self._memory_id, query=question, top_k=_DEPTH)
        return tuple(self._names[hit["entry_id"]] for hit in found["entries"])

    def _call(self, name: str, **arguments: object) -> dict[str, Any]:
        result = self._request("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise SystemExit(f"{name}: {result['content'][0]['text']}")
        return result["structuredContent"]

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        for line in self._server.stdout or ():
            reply = orjson.loads(line)
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise SystemExit(f"{method}: {reply['error']}")
                return reply["result"]
        raise SystemExit("the server closed its output")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(orjson.dumps(message) + b"\n")
        self._server.stdin.flush()

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(30)


def measure(talks: Sequence[Talk], vectors: str, through: str, models: str | None) -> list[VectorQuery]:
    """Ask everything, each conversation in a memory of its own."""
    with home_with(vectors, models) as home:
        door = ThroughMcp(home) if through == "mcp" else ThroughPython(home)
        asked: list[VectorQuery] = []
        for talk in talks:
            print(f"{vectors} through {through}: {talk.corpus} {talk.name}", file=sys.stderr, flush=True)
            door.fill(talk)
            for one in (*talk.questions, *foreign_questions(talk, talks)):
                start = time.perf_counter()
                found = door.ask(one.text)
                spent = time.perf_counter() - start
                asked.append(VectorQuery(talk.corpus, talk.name, one.kind, one.text, one.gold, found, spent))
        if isinstance(door, ThroughMcp):
            door.close()
    return asked


@contextmanager
def home_with(vectors: str, models: str | None) -> Generator[str]:
    """Yield a home with this embedder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="daypack-retrieval-") as home:
        folder = os.path.join(home, "home", str(os.getuid()))
        os.makedirs(folder, mode=0o700)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(f'embedding_model = "{vectors}"\n{_SETTINGS}')
        if models:
            os.symlink(os.path.abspath(models), os.path.join(folder, "model"))
        yield home


def render(asked: Sequence[VectorQuery], vectors: str, through: str) -> Iterator[str]:
    """Yield a line for each corpus, and one for each kind of question."""
    for corpus in dict.fromkeys(one.corpus for one in asked):
        ours = [one for one in asked if one.corpus == corpus and not one.is_foreign]
        foreign = [one for one in asked if one.corpus == corpus and one.is_foreign]
        yield _line(f"{corpus}, {vectors}, {through}", ours, TARGETS.get(corpus, ())[VECTORS.index(vectors) :][:1])
        for kind in sorted({one.kind for one in ours}):
            yield _line(f"  {kind}", [one for one in ours if one.kind == kind], ())
        empty, spared = (mean([not one.found for one in group] or [0]) for group in (ours, foreign))
        yield f"  nothing relevant: {empty:.1%}; for {len(foreign):,} questions of another conversation: {spared:.1%}"


def _line(name: str, asked: Sequence[VectorQuery], target: Sequence[float]) -> str:
    recalls = "".join(f"{mean(one.recall(count) for one in asked):9.3f}" for count in (5, 10, 50))
    rank, spent = mean(one.rank for one in asked), 1000 * median(one.seconds for one in asked)
    return f"{name:<34}{len(asked):6}{recalls}{rank:9.3f}{spent:8.1f}" + "".join(f"  (≥ {one})" for one in target)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("data", help="a folder with locomo/ and beam/, a file of LoCoMo, or a folder of BEAM chats")
    parser.add_argument("--vectors", nargs="+", choices=VECTORS, default=VECTORS, help="which embedders (default: all)")
    parser.add_argument("--through", nargs="+", choices=("python", "mcp"), default=("python",), help="which way in")
    parser.add_argument("--models", metavar="DIR", help="the folder of pulled models")
    parser.add_argument("--out", metavar="FILE", help="write every question and what was found as JSON lines")
    options = parser.parse_args()
    talks = list(read_corpora(options.data))
    if not talks:
        raise SystemExit(f"{options.data}: neither dialogues of LoCoMo nor chats of BEAM are here")
    print(f"{'':<34}{'asked':>6}{'R@5':>9}{'R@10':>9}{'R@50':>9}{'MRR':>9}{'ms':>8}")
    for vectors in options.vectors:
        try:
            open_embedder(vectors, models=options.models)
        except DaypackError as error:
            print(f"{vectors}: skipped: {error.problem} ({error.hint})")
            continue
        answers: list[tuple[str, ...]] = []
        for through in options.through:
            asked = measure(talks, vectors, through, options.models)
            print("\n".join(render(asked, vectors, through)), flush=True)
            if answers:
                same = sum(one == two.found for one, two in zip(answers, asked, strict=True))
                print(f"  the same entries in the same order for {same:,} of {len(asked):,} questions")
            answers = [one.found for one in asked]
            if options.out:
                with open(options.out, "ab") as file:
                    for one in asked:
                        file.write(orjson.dumps({"vectors": vectors, "through": through, **one._asdict()}) + b"\n")


if __name__ == "__main__":
    main()
