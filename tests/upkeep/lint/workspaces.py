"""Workspaces for the lint tests, with duplicated rules in different words, and sessions with records."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from daypack.derived.records import COMPACTED, store
from daypack.history.draft import draft_event
from daypack.history.layout import Layout
from daypack.session import Session
from daypack.text.statements.passages import Document
from daypack.text.tokens import counter_for
from daypack.types.compaction import Compaction, Records
from daypack.types.records import Decision, Fact
from daypack.upkeep.lint.prompt_texts import BLOCKS, injected, read_workspace
from daypack.upkeep.lint.report import Report, examine
from daypack.upkeep.lint.stale_references import read_declared

WORKSPACES = Path(__file__).parent / "workspace"
DECLARED = read_declared((WORKSPACES / "shop" / "declares.txt").read_text())


def copy(name: str, folder: Path) -> Path:
    """Copy one of the workspaces to where it may be changed."""
    shutil.copytree(WORKSPACES / name, folder)
    return folder


def texts(folder: Path) -> list[Document]:
    """Return all texts of a workspace's prompt, as `lint` without a session sees them."""
    return read_workspace(str(folder)) + injected(str(folder), Layout(str(folder), str(folder / "a/b/c/d/e")), None, {})


def report(folder: Path) -> Report:
    """Examine a workspace with what it declares."""
    declared = read_declared((folder / "declares.txt").read_text())
    return examine(texts(folder), counter_for(None), declared=declared, unused=BLOCKS)


def table(found: Report) -> dict[str, tuple[str, str]]:
    """Return the duplication map as place -> (class, concept)."""
    return {"; ".join(map(str, row.places)): (row.kind, row.concept) for row in found.duplicates}


def compact(session: Session, facts: Sequence[str] = (), decisions: Sequence[str] = (), confirmed: int = 0) -> None:
    """Record a compaction whose records say this; the same words keep their ids."""
    records = Records(
        facts=tuple(Fact(f"f{at}", text, f"messages:{at}", 0.5, confirmed) for at, text in enumerate(facts, 1)),
        decisions=tuple(
            Decision(f"d{at}", text, f"messages:{at}", 0.5, confirmed) for at, text in enumerate(decisions, 1)
        ),
    )
    done = Compaction(
        source="messages:1-2",
        through=2,
        trigger="manual",
        method="rule",
        model="none",
        before_tokens=9,
        after_tokens=3,
        records=records,
    )
    session.history.append_event(draft_event(COMPACTED, store(session.history, done)))
