"""Notes of basic-memory: front matter, observations, relations."""

import os
from pathlib import Path

import pytest
from importers.stores.conftest import digest, memories, orphans, read_all

NOTE = """---
title: Green tea
type: note
permalink: drinks/green-tea
tags:
- tea
- drinks
created: 2026-01-05T10:00:00
---

# Green tea

Ada buys it in the shop at the harbour. See [[Missing shop]].

## Observations
- [method] Steep it for two minutes #brewing #time (tried twice)
- [00:12:30] spoken line
- [x] a task that is done
- plain item

```
- [code] not an observation
```

## Relations
- relates_to [[Black Tea]]
- "grown in" [[Japan]] (since 1191)
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "drinks").mkdir(parents=True)
    (folder / "drinks" / "Green tea.md").write_text(NOTE)
    (folder / "drinks" / "black-tea.md").write_text("---\ntitle: Black Tea\n---\n- [taste] Strong\n")
    (folder / "empty.md").write_text("---\ntitle: Empty\n---\n# Empty\n")
    return folder


def test_observations_and_the_other_text_are_memories_about_the_note(notes: Path) -> None:
    before = digest(notes)
    records = read_all(notes)
    green = [memory for memory in memories(records) if memory.subject == "Green tea"]
    observed, note = green
    assert (observed.text, observed.tags) == ("Steep it for two minutes #brewing #time", ("brewing", "time"))
    assert observed.metadata == {"category": "method", "context": "tried twice"}
    assert note.tags == ("tea", "drinks")
    assert "spoken line" in note.text
    assert "[code] not an observation" in note.text
    assert "## Relations" not in note.text
    assert note.created_at == "2026-01-05T10:00:00"
    assert ("grown in", "Japan") in note.links
    assert digest(notes) == before


def test_relations_to_missing_notes_and_empty_notes_are_orphans(notes: Path) -> None:
    problems = {(orphan.id, orphan.problem) for orphan in orphans(read_all(notes))}
    name = os.path.join("drinks", "Green tea")
    assert problems == {
        (name, "the relation links_to names 'Missing shop', which is no note"),
        (name, "the relation grown in names 'Japan', which is no note"),
        ("empty", "a note without text"),
    }


def test_an_observation_keeps_its_id_when_others_are_added(notes: Path) -> None:
    first = {memory.id for memory in memories(read_all(notes)) if memory.kind == "observation"}
    path = notes / "drinks" / "Green tea.md"
    path.write_text(NOTE.replace("## Observations\n", "## Observations\n- [new] One more\n"))
    assert first < {memory.id for memory in memories(read_all(notes)) if memory.kind == "observation"}


def test_links_out_of_the_folder_are_not_followed(notes: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.md").write_text("---\npermalink: p\n---\n- [a] private\n")
    (notes / "link").symlink_to(outside)
    (notes / "file.md").symlink_to(outside / "private.md")
    (notes / "loop").symlink_to(notes)
    assert not any("private" in memory.text for memory in memories(read_all(notes)))
