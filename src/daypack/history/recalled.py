"""Answers of daypack's own tools, recognised when they are appended: what repeats history is not history again.

    [recalled from messages:12]
    The port is 8080.
    [end of recalled text 3f9a1c20b7d4]

The digits are an HMAC of the answer for this session, with a random key of the home, `recall.key`. Anybody can write
the first line; only daypack can write the last. A message that has it gets `"recalled": {}` in the part of `meta` that
only daypack writes, and is not indexed, compacted or captured.
"""

import os
import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import force_setattr

from daypack.errors import DaypackError
from daypack.files.secret_key import SecretKey
from daypack.history.draft import RESERVED
from daypack.history.layout import Layout
from daypack.text.injected import RECALLED, RECALLED_FLAG
from daypack.types.history import Message

KEY_FILE = "recall.key"
_DIGITS = 12
_END = re.compile(rf"\n\[end of recalled text ([0-9a-f]{{{_DIGITS}}})\]\s*\Z")


def seal_answer(layout: Layout, text: str) -> str:
    """Return the answer of a tool with the line by which it is recognised; the answer alone in a read-only home."""
    try:
        key = SecretKey(_path(layout), create=True, operation="recall")
    except DaypackError:
        return text  # an answer that cannot be recognised is found twice; no answer would be worse
    return f"{text}\n[end of recalled text {_digits(key, layout, text)}]"


def note_recalled(layout: Layout, drafts: Sequence[Message]) -> None:
    """Mark those of new messages that are answers of daypack's own tools."""
    for draft in drafts:
        if draft.role == "tool" and draft.text.startswith(RECALLED) and _is_answer(layout, draft.text):
            meta: dict[str, Any] = draft.meta or {}
            force_setattr(draft, "meta", {**meta, RESERVED: {**meta.get(RESERVED, {}), RECALLED_FLAG: {}}})


def _is_answer(layout: Layout, text: str) -> bool:
    end = _END.search(text)
    if end is None:
        return False
    try:
        key = SecretKey(_path(layout), operation="append")
    except DaypackError:
        return False
    return key.exists and end[1] == _digits(key, layout, text[: end.start()])


def _digits(key: SecretKey, layout: Layout, text: str) -> str:
    return key.hide(f"{layout.agent}/{layout.name}\n{text}".encode("utf-8", "replace"), _DIGITS)


def _path(layout: Layout) -> str:
    return os.path.join(layout.home.folder, KEY_FILE)
