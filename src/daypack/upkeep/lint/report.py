"""The hygiene of a workspace: what its prompt texts say twice, say no more, or say at length, and what that costs.

`examine` only reads. Who writes: the reflector writes MEMORY.md, a person applies the patch for the others.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from daypack.text.tokens import Counter
from daypack.upkeep.lint.context_md import tidy_state
from daypack.upkeep.lint.duplicates import Row, find_duplicates
from daypack.upkeep.lint.edits import diff_all, edited, flattened
from daypack.upkeep.lint.examples import Example, find_examples
from daypack.upkeep.lint.narrative import Past, find_past
from daypack.upkeep.lint.passages import Document
from daypack.upkeep.lint.prompt_texts import MEMORY, STATE
from daypack.upkeep.lint.removals import Keeper, Removal
from daypack.upkeep.lint.stale_references import Declared, Stale, find_stale


class Cost(Struct, frozen=True):
    """Tokens per turn of one text, now and without what can go."""

    component: str
    before: int
    after: int


class Report(Struct, frozen=True):
    """What a look at the texts of a prompt found."""

    duplicates: tuple[Row, ...]
    history: tuple[Past, ...]  # what MEMORY.md holds of single sessions
    stale: tuple[Stale, ...]
    examples: tuple[Example, ...]
    removals: tuple[Removal, ...]
    costs: tuple[Cost, ...]
    texts: Mapping[str, tuple[str, str]]  # file -> before, after: only what would change

    @property
    def before(self) -> int:
        """Tokens per turn now."""
        return sum(cost.before for cost in self.costs)

    @property
    def after(self) -> int:
        """Tokens per turn without what can go."""
        return sum(cost.after for cost in self.costs)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to say."""
        return not (self.duplicates or self.history or self.stale or self.examples)

    def patch(self) -> str:
        """Return the patch for the files a person owns: neither MEMORY.md nor CONTEXT.md."""
        return diff_all({name: texts for name, texts in self.texts.items() if name not in (MEMORY, STATE)})


def examine(
    documents: Sequence[Document], counter: Counter, *, declared: Declared | None = None, unused: Sequence[str] = ()
) -> Report:
    """Look at the texts of a prompt; those named in `unused` are known but not in it, and cost nothing."""
    stale = find_stale(documents, declared) if declared else ()
    by_name = {document.name: document for document in documents}
    past = find_past(by_name[MEMORY]) if MEMORY in by_name else ()
    examples = tuple(one for document in documents if document.role == "instruction" for one in find_examples(document))
    keeper = Keeper(documents)
    removals = (*keeper.memory_removals(past), *keeper.other_removals(stale))
    texts: dict[str, tuple[str, str]] = {}
    costs: list[Cost] = []
    for document in documents:
        after = _after(document, removals, examples)
        if after != document.text:
            texts[document.name] = document.text, after
        if document.name not in unused:
            costs.append(Cost(document.name, counter.count(document.text.strip()), counter.count(after.strip())))
    return Report(
        find_duplicates(documents, stale, keeper.matches), past, stale, examples, removals, tuple(costs), texts
    )


def _after(document: Document, removals: Sequence[Removal], examples: Sequence[Example]) -> str:
    own = [one for one in removals if one.source == document.name]
    shorter = [one for one in examples if one.source == document.name]
    if document.role == "injected":
        return document.text
    if document.name == STATE:
        return tidy_state(document.text)
    text = edited(document, own, shorter)
    return flattened(text) if document.name == MEMORY else text
