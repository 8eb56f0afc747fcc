"""Lint a workspace's prompt texts: duplicates, session history, stale references, long examples, and their cost.

`examine` only reads. The reflector rewrites MEMORY.md; a person applies the patch for the other files.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from daypack.derived.compaction.template_reader import read_filled
from daypack.derived.template import problems, render
from daypack.text.clean import clean
from daypack.text.statements.narrative import SessionEntry, find_session_entries
from daypack.text.statements.passages import Document
from daypack.text.tokens import Counter
from daypack.upkeep.lint.duplicates import Row, find_conflicts, find_duplicates
from daypack.upkeep.lint.edits import diff, edited, flattened
from daypack.upkeep.lint.examples import Example, find_examples
from daypack.upkeep.lint.matches import Finder, Similarity
from daypack.upkeep.lint.prompt_texts import MEMORY, STATE
from daypack.upkeep.lint.removals import Removal, RemovalPlanner
from daypack.upkeep.lint.stale_references import Declared, Stale, find_stale

_SUMMARY = re.compile(r"^#{1,3}\s+(?:Context|Compaction Summary\b.*)$", re.MULTILINE | re.IGNORECASE)


class Cost(Struct, frozen=True):
    """Tokens per turn of one text, now and after the removals."""

    component: str
    before: int
    after: int


class Report(Struct, frozen=True):
    """The findings in the texts of a prompt, and the texts after the removals."""

    duplicates: tuple[Row, ...]
    conflicts: tuple[Row, ...]  # similar statements that differ in a number, a name, a negation or a condition
    history: tuple[SessionEntry, ...]  # lines of MEMORY.md that belong to single sessions
    stale: tuple[Stale, ...]
    examples: tuple[Example, ...]
    removals: tuple[Removal, ...]
    costs: tuple[Cost, ...]
    texts: Mapping[str, tuple[str, str]]  # file -> (before, after), only for files that would change

    @property
    def before(self) -> int:
        """Tokens per turn now."""
        return sum(cost.before for cost in self.costs)

    @property
    def after(self) -> int:
        """Tokens per turn after the removals."""
        return sum(cost.after for cost in self.costs)

    @property
    def clean(self) -> bool:
        """True if there is nothing to fix: references that name their file are fine, conflicts are for a person."""
        copies = [row for row in self.duplicates if not row.deliberate]
        return not (copies or self.history or self.stale or self.examples)

    def patch(self) -> str:
        """Return the patch for the files a person owns: all but MEMORY.md and CONTEXT.md."""
        return "".join(diff(name, *texts) for name, texts in self.texts.items() if name not in (MEMORY, STATE))


def examine(
    documents: Sequence[Document],
    counter: Counter,
    *,
    declared: Declared | None = None,
    unused: Sequence[str] = (),
    similarity: Similarity | None = None,
) -> Report:
    """Lint the texts of a prompt; those in `unused` are compared but not part of the prompt, and cost nothing."""
    stale = find_stale(documents, declared) if declared else ()
    memories = [document for document in documents if document.name == MEMORY]
    history = tuple(entry for document in memories for entry in find_session_entries(document))
    instructions = [document for document in documents if document.role == "instruction"]
    examples = tuple(example for document in instructions for example in find_examples(document))
    matches = Finder(documents, similarity).find()
    removals = tuple(RemovalPlanner(documents, matches, unused).plan(history, stale))
    after = {document.name: _text_after(document, removals, examples) for document in documents}
    texts = {d.name: (d.text, after[d.name]) for d in documents if after[d.name] != d.text}
    counts = {d.name: [counter.count(text.strip()) for text in (d.text, after[d.name])] for d in documents}
    costs = tuple(Cost(name, *count) for name, count in counts.items() if name not in unused)
    rows = find_duplicates(documents, stale, matches)
    return Report(rows, find_conflicts(matches), history, stale, examples, removals, costs, texts)


def _text_after(document: Document, removals: Sequence[Removal], examples: Sequence[Example]) -> str:
    if document.role == "injected":
        return document.text
    if document.name == STATE:
        return _newest_summary(document.text)
    own_removals = [removal for removal in removals if removal.source == document.name]
    text = edited(document, own_removals, [example for example in examples if example.source == document.name])
    return flattened(text) if document.name == MEMORY else text


def _newest_summary(text: str) -> str:
    """Return the newest summary of a CONTEXT.md in the template; a valid text is returned unchanged."""
    if not problems(text):
        return text
    starts = [match.start() for match in _SUMMARY.finditer(text)]
    filled, _ = read_filled(clean(text[starts[-1] :] if starts else text)[0])
    return render(filled)
