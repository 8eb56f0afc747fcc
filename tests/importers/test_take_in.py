"""Taking in a session of Claude Code with its sub-agents and outputs, as hooks do after every turn."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.errors import BadInput
from daypack.importers.import_file import Destination, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session

Write = Callable[..., str]
Opened = Callable[[str], Session]
Take = Callable[[str], list[ImportReport]]
NAME = "aaaaaaaa-0000-0000-0000-000000000000"
FILE = f"{NAME}.jsonl"


def user(uuid: str, words: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "sessionId": NAME, "message": message, **fields}


def said(uuid: str, words: str, **fields: Any) -> dict[str, Any]:
    message = {"id": f"m-{uuid}", "content": [{"type": "text", "text": words}]}
    return {"type": "assistant", "uuid": uuid, "sessionId": NAME, "message": message, **fields}


def agent_rows(agent: str) -> list[dict[str, Any]]:
    side = {"isSidechain": True, "agentId": agent}
    return [user(f"{agent}-u", f"Task of {agent}", **side), said(f"{agent}-a", f"Result of {agent}", **side)]


def sub_agent(agent: str, folder: str = "") -> str:
    return f"{NAME}/subagents/{folder}agent-{agent}.jsonl"


def grow(path: str, *rows: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def children_of(opened: Opened) -> list[tuple[str, str | None, str | None]]:
    return [(child.name, child.handoff, child.result) for child in read_children(opened(NAME).history)]


def files_of(opened: Opened) -> list[tuple[str, str]]:
    events = [event.data for event in opened(NAME).events() if event.type == "import.file"]
    return [(data["file"], data["text"]) for data in events]


@pytest.fixture
def take(home: str, monkeypatch: pytest.MonkeyPatch) -> Take:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    return lambda path: take_in(path, Destination(home))


def test_a_session_comes_first_and_then_its_sub_agents(write: Write, take: Take, opened: Opened) -> None:
    path = write(FILE, [user("u", "Begin")])
    write(sub_agent("a1"), agent_rows("a1"))
    write(sub_agent("b2", "wf_1/"), agent_rows("b2"))
    reports = take(path)
    assert [(report.session, report.parent, report.new) for report in reports] == [
        (NAME, "", 1),
        (f"{NAME}--a1", NAME, 2),
        (f"{NAME}--b2", NAME, 2),
    ]
    assert {report.agent for report in reports} == {"default"}
    assert reports[0].children == ["a1", "b2"]
    assert children_of(opened) == [(agent, f"Task of {agent}", f"Result of {agent}") for agent in ("a1", "b2")]


def test_only_sub_agents_that_changed_are_read_again(write: Write, take: Take, opened: Opened) -> None:
    path = write(FILE, [user("u", "Begin")])
    changed = write(sub_agent("a1"), agent_rows("a1"))
    write(sub_agent("b2"), agent_rows("b2"))
    take(path)
    assert [report.session for report in take(path)] == [NAME]
    grow(changed, said("a1-b", "Better result of a1", isSidechain=True, agentId="a1"))
    assert [(report.session, report.new) for report in take(path)] == [(NAME, 0), (f"{NAME}--a1", 1)]
    assert children_of(opened)[0] == ("a1", "Task of a1", "Better result of a1")
    assert sum(event.type == "child.updated" for event in opened(NAME).events()) == 3


@pytest.mark.parametrize("folder", ["", "wf_1/wf_2/"])
def test_the_file_of_a_sub_agent_brings_in_the_whole_session(write: Write, take: Take, folder: str) -> None:
    write(FILE, [user("u", "Begin")])
    write(sub_agent("a1"), agent_rows("a1"))
    path = write(sub_agent("b2", folder), agent_rows("b2"))
    assert [report.session for report in take(path)] == [NAME, f"{NAME}--a1", f"{NAME}--b2"]


def test_a_sub_agent_that_comes_before_its_session_becomes_a_child_later(
    write: Write, take: Take, opened: Opened
) -> None:
    path = write(sub_agent("a1"), agent_rows("a1"))
    assert [(report.session, report.parent) for report in take(path)] == [(f"{NAME}--a1", NAME)]
    take(write(FILE, [user("u", "Begin")]))
    assert children_of(opened) == [("a1", "Task of a1", "Result of a1")]
    assert len(opened(f"{NAME}--a1").messages()) == 2


def test_a_sub_agent_whose_session_was_erased_is_imported_again(write: Write, take: Take, opened: Opened) -> None:
    path = write(FILE, [user("u", "Begin")])
    write(sub_agent("a1"), agent_rows("a1"))
    take(path)
    child = opened(f"{NAME}--a1").path
    opened(f"{NAME}--a1").close()
    os.rename(child, child.with_name("elsewhere"))
    assert [report.new for report in take(path)] == [0, 2]


def test_a_damaged_file_of_a_sub_agent_is_reported_and_the_others_are_read(write: Write, take: Take) -> None:
    path = write(FILE, [user("u", "Begin")])
    write(sub_agent("a1"), b"\n\n")
    write(sub_agent("b2"), agent_rows("b2"))
    reports = take(path)
    assert [report.session for report in reports] == [NAME, f"{NAME}--b2"]
    assert [problem.problem for problem in reports[0].problems] == ["agent-a1.jsonl: is empty"]


def test_a_transcript_that_does_not_exist_is_refused(take: Take, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        take(str(tmp_path / FILE))


def test_outputs_beside_a_session_are_stored_once(write: Write, take: Take, opened: Opened) -> None:
    path = write(FILE, [user("u", "Begin")])
    first = write(f"{NAME}/tool-results/one.txt", "one")
    take(path)
    write(f"{NAME}/tool-results/two.txt", "two")
    for _ in range(2):
        take(path)
        os.utime(first)  # it may have changed: it is read, and is the same
    assert files_of(opened) == [("one.txt", "one"), ("two.txt", "two")]
    write(f"{NAME}/tool-results/one.txt", "another")
    take(path)
    assert files_of(opened)[2:] == [("one.txt", "another")]


@pytest.mark.parametrize("harm", ["delete", "damage", "reboot"])
def test_without_its_cache_an_import_stores_nothing_twice(
    write: Write, take: Take, opened: Opened, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    path = write(FILE, [user("u", "Begin")])
    write(f"{NAME}/tool-results/one.txt", "one")
    write(sub_agent("a1"), agent_rows("a1"))
    take(path)
    cache = opened(NAME).path / "context" / "offsets" / "imported.json"
    assert cache.exists()
    if harm == "delete":
        cache.unlink()
    elif harm == "damage":
        cache.write_bytes(cache.read_bytes()[:-9])
    else:
        monkeypatch.setattr("daypack.importers.imported_files.boot_id", lambda: b"another")
    assert [report.new for report in take(path)] == [0, 0]
    assert files_of(opened) == [("one.txt", "one")]
    assert [report.session for report in take(path)] == [NAME]  # the cache is there again


def test_an_output_that_was_recorded_before_a_crash_is_not_recorded_again(
    write: Write, take: Take, opened: Opened
) -> None:
    """The event is written, the cache is not."""
    path = write(FILE, [user("u", "Begin")])
    write(f"{NAME}/tool-results/one.txt", "one")
    take(path)
    cache = opened(NAME).path / "context" / "offsets" / "imported.json"
    before = cache.read_bytes()
    write(f"{NAME}/tool-results/two.txt", "two")
    take(path)
    cache.write_bytes(before)
    grow(path, user("v", "More"))
    take(path)
    assert files_of(opened) == [("one.txt", "one"), ("two.txt", "two")]
