"""daypack's own memories: the store of a home, an archive, a context document."""

from pathlib import Path

import pytest
from importers.stores.conftest import digest, memories, read_all, unreadable

import daypack
from daypack.errors import BadInput


def test_entries_and_the_newest_document_of_a_home_are_read_without_a_trace(home: str, tmp_path: Path) -> None:
    with daypack.open_memory(home=home) as mine:
        memory_id = mine.create_memory("Tea").memory_id
        mine.add_entry(memory_id, "Ada likes green tea", about={"tags": ("drinks",)})
        mine.put_context(memory_id, "## Facts\n- Ada lives in Berlin\n")
        archive = tmp_path / "tea.jsonl"
        archive.write_bytes(b"".join(mine.export_memory(memory_id)))
    before = digest(Path(home))
    for path in (Path(home), archive):
        found = {memory.text: memory for memory in memories(read_all(path))}
        assert set(found) == {"Ada likes green tea", "Ada lives in Berlin"}
        assert found["Ada likes green tea"].tags == ("drinks",)
        assert found["Ada lives in Berlin"].subject == "Facts"
    assert digest(Path(home)) == before


def test_a_bare_context_document_has_its_items(tmp_path: Path) -> None:
    path = tmp_path / "CONTEXT.md"
    path.write_text("# Tea\n\n## Facts\n- Ada lives in Berlin\n- Ben rows\n")
    assert [(memory.id, memory.text) for memory in memories(read_all(path))] == [
        ("L4", "Ada lives in Berlin"),
        ("L5", "Ben rows"),
    ]


def test_a_torn_archive_is_read_up_to_where_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_text('{"daypack":"memory","format":1,"title":"x"}\n{"entry":{"raw_entry":"kept"}}\n{"entry":{"raw')
    records = read_all(path)
    assert [memory.text for memory in memories(records)] == ["kept"]
    assert len(unreadable(records)) == 1


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"\x8f\x02 no archive\n{}\n")
    with pytest.raises(BadInput, match="no header of a memory"):
        read_all(tmp_path / "x.db", "daypack")
