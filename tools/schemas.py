"""Writes `schemas/<name>.json`, one JSON Schema per kind of document, from the types.

python -m tools.schemas           write them, remove those no type stands behind
python -m tools.schemas --check   change nothing; exit 1 and name the files that are out of date
"""

import argparse
import inspect
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daypack.types import context, history, memory, records, snapshot

FOLDER = Path(__file__).resolve().parent.parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Whatever stands alone in a file, a line or an answer; the shapes inside them are in their `$defs`.
DOCUMENTS: tuple[type[msgspec.Struct], ...] = (
    *context.OBJECTS.values(),
    history.Message,
    history.Event,
    records.Fact,
    records.Decision,
    records.Todo,
    records.ErrorRecord,
    records.Ref,
    records.Summary,
    records.ContextDoc,
    records.SwapRecord,
    records.SwapReference,
    records.DedupRecord,
    records.Pack,
    snapshot.Snapshot,
    memory.Memory,
    memory.Entry,
    memory.Added,
    memory.About,
    memory.Where,
    memory.ContextDocument,
    memory.EntryPage,
    memory.SearchResult,
    memory.Consistency,
    memory.User,
)

# The model requires `schema_version` of these. The types give it a default, for the writers who leave it out.
_STAMPED = frozenset(document.__name__ for document in context.OBJECTS.values())


def name_of(document: type[msgspec.Struct]) -> str:
    """Return the name a document has in file names and ids: `ContextItem` is `context_item`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", document.__name__).lower()


def schema_of(document: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of `document`."""
    generated = msgspec.json.schema(document)
    definitions: dict[str, dict[str, Any]] = generated["$defs"]
    for name, definition in definitions.items():
        # Newer Pythons strip the indentation of docstrings themselves: the bytes must not depend on it.
        definition["description"] = inspect.cleandoc(definition["description"])
        if document is snapshot.Snapshot:
            # Where the type keeps what it does not know; in the document that stands beside the known keys.
            definition["properties"].pop("extra", None)
        if name in _STAMPED:
            definition["required"] = ["schema_version", *definition["required"]]
    root = definitions.pop(document.__name__)
    schema = {"$schema": DIALECT, "$id": f"urn:daypack:schema:{name_of(document)}", **root}
    return {**schema, "$defs": definitions} if definitions else schema


def render() -> dict[str, str]:
    """Return the text of every schema file by its name; the same types give the same bytes."""
    return {
        f"{name_of(document)}.json": json.dumps(schema_of(document), indent=2, sort_keys=True, ensure_ascii=False)
        + "\n"
        for document in DOCUMENTS
    }


def outdated(folder: Path, expected: Mapping[str, str]) -> tuple[str, ...]:
    """Name the files in `folder` that are missing, differ from `expected` or should not be there."""
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return tuple(sorted(name for name in found.keys() | expected if found.get(name) != expected.get(name)))


def write(folder: Path, expected: Mapping[str, str]) -> tuple[str, ...]:
    """Make `folder` hold exactly `expected`, and name the files that had to change."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = outdated(folder, expected)
    for name in changed:
        if name in expected:
            (folder / name).write_text(expected[name], encoding="utf-8", newline="\n")
        else:
            (folder / name).unlink()
    return changed


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.schemas", description="Write schemas/*.json from the types.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is out of date")
    check: bool = parser.parse_args(arguments).check
    expected = render()
    if check:
        names = outdated(folder, expected)
        for name in names:
            print(f"out of date: {name}", file=sys.stderr)
        return 1 if names else 0
    for name in write(folder, expected):
        print(f"{'wrote' if name in expected else 'removed'} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
