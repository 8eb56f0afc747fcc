"""Lint a workspace's prompt texts: duplicates, session history, stale references, long examples, and their cost.

`examine` only reads. The reflector rewrites MEMORY.md; a person applies the patch for the other files.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from daypack.text.tokens import Counter
from daypack.upkeep.lint.context_md import tidy_state
from daypack.upkeep.lint.duplicates import Row, find_duplicates
from daypack.upkeep.lint.edits import diff_all, edited, flattened
from daypack.upkeep.lint.examples import Example, find_examples
from daypack.upkeep.lint.narrative import SessionEntry, find_session_entries
from daypack.upkeep.lint.passages import Document
from daypack.upkeep.lint.prompt_texts import MEMORY, STATE
from daypack.upkeep.lint.removals import Removal, RemovalPlanner
from daypack.upkeep.lint.stale_references import Declared, Stale, find_stale


class Cost(Struct, frozen=True):
    """Tokens per turn of one text, now and after the removals."""

    component: str
    before: int
    after: int


class Report(Struct, frozen=True):
    """The findings in the texts of a prompt, and the texts after the removals."""

    duplicates: tuple[Row, ...]
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
        """True if nothing was found."""
        return not (self.duplicates or self.history or self.stale or self.examples)

    def patch(self) -> str:
        """Return the patch for the files a person owns: all but MEMORY.md and CONTEXT.md."""
        return diff_all({name: texts for name, texts in self.texts.items() if name not in (MEMORY, STATE)})


def examine(
    documents: Sequence[Document], counter: Counter, *, declared: Declared | None = None, unused: Sequence[str] = ()
) -> Report:
    """Lint the texts of a prompt; those in `unused` are compared but not part of the prompt, and cost nothing."""
    stale = find_stale(documents, declared) if declared else ()
    by_name = {document.name: document for document in documents}
    session_entries = find_session_entries(by_name[MEMORY]) if MEMORY in by_name else ()
    examples = tuple(
        example for document in documents if document.role == "instruction" for example in find_examples(document)
    )
    planner = RemovalPlanner(documents)
    removals = (*planner.memory_removals(session_entries), *planner.other_removals(stale))
    texts: dict[str, tuple[str, str]] = {}
    costs: list[Cost] = []
    for document in documents:
        after = _text_after(document, removals, examples)
        if after != document.text:
            texts[document.name] = document.text, after
        if document.name not in unused:
            costs.append(Cost(document.name, counter.count(document.text.strip()), counter.count(after.strip())))
    return Report(
        find_duplicates(documents, stale, planner.matches),
        session_entries,
        stale,
        examples,
        removals,
        tuple(costs),
        texts,
    )


def _text_after(document: Document, removals: Sequence[Removal], examples: Sequence[Example]) -> str:
    own_removals = [removal for removal in removals if removal.source == document.name]
    own_examples = [example for example in examples if example.source == document.name]
    if document.role == "injected":
        return document.text
    if document.name == STATE:
        return tidy_state(document.text)
    text = edited(document, own_removals, own_examples)
    return flattened(text) if document.name == MEMORY else text
