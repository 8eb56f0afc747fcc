"""The derived files are the fold of the events, each replaced whole; the mark that says of what is written last."""

import os
from pathlib import Path

import msgspec
import pytest
from turn.compacting import context_tree, derived, scene, step
from turn.scenes import close_all

from daypack.derived.documents import NAMES, documents, made_from, todo_line, write
from daypack.derived.records import Folded
from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.session import Session
from daypack.types.records import Ref, SwapRecord, SwapReference, Todo


@pytest.fixture
def compacted(home: str) -> Session:
    session = scene(home, steps=8)
    session.compact(keep_tokens=100)
    return session


@pytest.fixture(autouse=True)
def _closed_sessions():
    yield
    close_all()


def test_every_file_is_there_even_where_nothing_stands_in_it(compacted: Session) -> None:
    for name in (*NAMES, "compaction"):
        assert isinstance(derived(compacted, name), bytes)
    mark = msgspec.json.decode(derived(compacted, "compaction"))
    [done] = compacted.compactions
    assert mark["compaction"] == made_from(compacted.history) == done.id
    assert mark["source"] == f"messages:1-{done.through}"
    assert mark["coverage"] == done.coverage
    assert mark["refresh"]
    assert mark["before_tokens"] > mark["after_tokens"] > 0


@pytest.mark.requirement("S4-SW2", "S4-SW3", "S4-SW6")
def test_swap_has_an_index_and_the_chunk_of_the_newest_range(compacted: Session) -> None:
    folder = compacted.path / "context" / "swap"
    lines = (folder / "index.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=SwapRecord) for line in lines]
    [extent] = [one for one in records if one.kind == "message_range"]
    assert [path.name for path in (folder / "chunk").iterdir()] == [extent.id]
    reference = msgspec.json.decode((folder / "chunk" / extent.id).read_bytes(), type=SwapReference)
    assert (reference.start_event, reference.end_event) == ("msg-1", f"msg-{compacted.compactions[0].through}")
    assert extent.tokens == compacted.compactions[0].before_tokens


def test_every_swapped_path_in_refs_is_a_file_that_is_there(compacted: Session) -> None:
    for number in range(8, 14):
        step(compacted, number, lines=150)
    compacted.append("user", "Next?")
    compacted.compact(keep_tokens=100)
    refs = [msgspec.json.decode(line, type=Ref) for line in derived(compacted, "refs").splitlines()]
    swapped = [one.path for one in refs if one.path.startswith("context/swap/")]
    assert len(swapped) == 1
    outputs = [one for one in refs if one.kind == "tool_output"]
    assert len(outputs) > 2
    for one in outputs:
        assert compacted.recall(one.path).source == one.source
    assert [path for path in swapped if not (compacted.path / path).exists()] == []


def test_a_swapped_output_knows_its_size(compacted: Session) -> None:
    compacted.append("user", "Read all of it.")
    for number in range(20):
        call = {"id": f"n{number}", "name": "read_file", "arguments": f'{{"path": "{number}.py"}}'}
        compacted.append("assistant", f"Step {number}.", tool_calls=[call])
        compacted.append("tool", f"line of {number}\n" * 110, tool_call_id=call["id"])
    done = compacted.compact(keep_tokens=4500)
    standing = [one for one in compacted.compactions[-1].swapped if one.event and int(one.event[4:]) >= done.kept_from]
    assert standing  # outputs that stay in the window as one line
    lines = (compacted.path / "context" / "swap" / "index.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=SwapRecord) for line in lines]
    assert [one for one in records if one.kind == "tool_output"]
    assert [one for one in records if one.tokens == 0] == []


def test_writing_again_replaces_nothing_that_says_the_same(compacted: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[str] = []

    def noted(path: str, *_: object, **__: object) -> None:
        replaced.append(path)

    monkeypatch.setattr(atomic, "replace", noted)
    write(compacted.history, compacted.turns.compactions.read())
    assert replaced == []


@pytest.mark.requirement("X14")
def test_each_file_is_replaced_whole_and_the_mark_comes_last(
    compacted: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atomic.replace
    order: list[str] = []

    def watched(path: str, data: bytes, **given: bool) -> None:
        before = Path(path).read_bytes() if os.path.exists(path) else None
        order.append(os.path.basename(path))
        real(path, data, **given)
        assert Path(path).read_bytes() == data != before

    monkeypatch.setattr(atomic, "replace", watched)
    for number in range(8, 12):
        step(compacted, number)
    compacted.append("user", "And?")
    compacted.compact(keep_tokens=60)
    assert order.index("compaction.json") > max(
        order.index(name) for name in ("CONTEXT.md", "refs.jsonl", "facts.jsonl")
    )
    assert order.index("index.jsonl") > order.index(next(name for name in order if name.startswith("sha256-")))


def test_without_a_compaction_the_files_go(compacted: Session) -> None:
    folded = compacted.turns.compactions.read()
    write(compacted.history, Folded(swapped=folded.swapped, undone=[one.id for one in folded.accepted]))
    assert not [name for name in NAMES if os.path.exists(compacted.history.layout.derived(name))]
    assert made_from(compacted.history) is None
    assert "swap/index.jsonl" in context_tree(compacted)


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'{"compaction": 5}'])
def test_a_mark_that_cannot_be_read_says_nothing(compacted: Session, data: bytes) -> None:
    Path(compacted.history.layout.derived("compaction")).write_bytes(data)
    assert made_from(compacted.history) is None
    compacted.prepare(budget=6000, dry_run=True)
    assert made_from(compacted.history) == compacted.compactions[0].id


def test_a_file_that_cannot_be_replaced_is_an_error_of_ours(compacted: Session) -> None:
    path = Path(compacted.history.layout.derived("facts"))
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageFailed):
        write(compacted.history, compacted.turns.compactions.read())


def test_the_bytes_come_from_the_fold_alone(compacted: Session) -> None:
    folded = compacted.turns.compactions.read()
    assert documents(folded) == documents(folded.copied())
    assert todo_line(Todo("t1", "Do it.", "messages:3")) == "- [ ] Do it. (t1, messages:3)"
    assert todo_line(Todo("t1", "Do it.", "messages:3", done=True)).startswith("- [x] ")
