"""Envelope documents for the tests of the rules, and a second way to compute their digests."""

import hashlib
import json
from typing import Any, cast


def simple_digest(value: Any) -> str:
    """The digest of a value whose keys are ASCII and whose numbers are of everyday size, by other code than ours."""
    text = json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value
