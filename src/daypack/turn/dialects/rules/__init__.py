"""What providers refuse, as they document it and as their errors say: one module per dialect.

Each has `validate(body)`, which returns the problems with their place in the body, in the order of the body.
"""

from typing import Any, cast


def is_filled(value: object) -> bool:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and bool(value) and not value.isspace()


def objects(value: object) -> list[dict[str, Any]] | None:
    """Return a list of objects as such; None when it is anything else."""
    if not isinstance(value, list):
        return None
    items = cast(list[object], value)
    return cast(list[dict[str, Any]], items) if all(isinstance(item, dict) for item in items) else None
