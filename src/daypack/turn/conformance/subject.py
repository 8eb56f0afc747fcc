"""The document that rules examine, with its records and items by id."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from daypack.forks import cached_property
from daypack.turn.conformance.digests import Verification, verify
from daypack.turn.conformance.objects import ITEMS, LISTS, Json, Object, elements, objects_of, strings
from daypack.turn.conformance.schema import Field, examine


class Finding(NamedTuple):
    """One thing that a rule looked at; no problem if it is right."""

    path: str
    problem: str = ""


class Subject:
    """A document and the indexes that rules share."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @cached_property
    def objects(self) -> tuple[Object, ...]:
        """Every record and item, items before their surface."""
        return objects_of(self.document)

    @cached_property
    def by_list(self) -> dict[str, dict[str, Object]]:
        """The objects of each list, by id."""
        found: dict[str, dict[str, Object]] = {name: {} for name in (*LISTS, ITEMS)}
        for each in self.objects:
            if each.id:
                found[each.list].setdefault(each.id, each)
        return found

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Every known field, examined by its schema."""
        return tuple(examine("context_envelope", self.document))

    @cached_property
    def verification(self) -> Verification:
        """The digests of the document, compared."""
        return verify(self.document)

    @property
    def items(self) -> dict[str, Object]:
        """The items that are in the document in full, by id."""
        return self.by_list[ITEMS]

    @cached_property
    def known_items(self) -> frozenset[str]:
        """The ids that a reference to an item may have: of items, and of what surfaces list as available."""
        available = (
            ref for surface in self.records("surfaces") for ref in strings(surface.value, "available_item_refs")
        )
        return frozenset((*self.items, *available))

    def records(self, name: str) -> list[Object]:
        """Return the records of a list, in order."""
        return self._lists.get(name, [])

    @cached_property
    def _lists(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for each in self.objects:
            found.setdefault(each.list, []).append(each)
        return found

    def linked(self, record: Object, field: str, name: str) -> Object | None:
        """Return the record of another list that a field refers to; None if there is none."""
        ref = record.value.get(field)
        return self.by_list[name].get(ref) if isinstance(ref, str) else None

    def blocks(self, assembly: Object) -> Iterator[tuple[str, Json]]:
        """Yield the blocks of an assembly, each with its path."""
        yield from elements(assembly.value, "ordered_blocks", assembly.path)

    def shown(self, assembly: Object) -> Iterator[tuple[str, Object]]:
        """Yield the items that the blocks of an assembly show, as far as they are in the document, with their paths."""
        for path, block in self.blocks(assembly):
            for at, ref in enumerate(strings(block, "item_refs")):
                if ref in self.items:
                    yield f"{path}.item_refs[{at}]", self.items[ref]


def number(value: Json, field: str) -> float | None:
    """Return a number field; None if it is absent or something else."""
    found: Any = value.get(field)
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def text(value: Json, field: str) -> str:
    """Return a text field; empty if it is absent or something else."""
    found = value.get(field)
    return found if isinstance(found, str) else ""


def is_stated(value: object) -> bool:
    """Return True for a value that is not empty; blanks alone are empty."""
    return bool(value.strip() if isinstance(value, str) else value)
