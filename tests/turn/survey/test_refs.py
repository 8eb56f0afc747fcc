"""References in the prefix: the most recently used ones, read from their file only after it changed."""

import os
from typing import Any

import msgspec
import pytest

from daypack.session import Session
from daypack.turn.items import Item, Missing
from daypack.turn.survey import refs as module
from daypack.turn.survey.refs import Refs
from daypack.turn.survey.sources import Found, read_records
from daypack.types.records import Ref


def ref(number: int, *, summary: str = "read") -> Ref:
    path = f"https://example.org/{number:05}"  # an address is never a file that is gone
    return Ref(id=f"r{number}", path=path, kind="file", summary=summary, source=f"messages:{number}")


def store(session: Session, *found: Ref) -> str:
    path = session.history.layout.derived("refs")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in found)
    return path


def shown(found: list[Found]) -> list[str]:
    [item] = [thing for thing in found if isinstance(thing, Item)]
    return item.text.splitlines()


@pytest.mark.requirement("S4-CP7")
def test_the_most_recently_used_references_are_shown_in_the_order_of_the_file(session: Session) -> None:
    store(session, *(ref(number) for number in range(1, 2001)), ref(5000, summary="listed"))
    lines = shown(list(Refs(session.history.layout).find("", 1000)))
    assert [line.split()[1] for line in lines[:-1]] == [f"r{number}" for number in range(2001 - len(lines) + 1, 2001)]
    assert lines[-1] == f"- {2001 - len(lines) + 1} older references are in context/refs.jsonl"


def test_the_file_is_read_again_only_after_it_changed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(layout: Any, name: str, shape: Any) -> Any:
        reads.append(name)
        return read_records(layout, name, shape)

    monkeypatch.setattr(module, "read_records", counted)
    path = store(session, ref(1))
    found = Refs(session.history.layout)
    assert shown(list(found.find("", 1000))) == shown(list(found.find("", 1000)))
    assert len(reads) == 1
    with open(path, "ab") as file:
        file.write(msgspec.json.encode(ref(2)) + b"\nnot json\n")
    first, second = list(found.find("", 1000)), list(found.find("", 1000))
    assert first == second
    assert [line.split()[1] for line in shown(first)] == ["r1", "r2"]
    assert [thing.id for thing in first if isinstance(thing, Missing)] == ["refs:3"]
    assert len(reads) == 2
    os.unlink(path)
    assert list(found.find("", 1000)) == []
