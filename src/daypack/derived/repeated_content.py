"""Repeats: which large contents of messages are the same, whether a tool printed them or a call wrote them to a file.

A content is compared without the line numbers of a file shown from its first line on, and without line ends at its
end: what `Write` was given is what `Read` shows later.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import msgspec

from daypack.derived.raw_history import repeats_history
from daypack.history.session import LARGE_BYTES
from daypack.types.history import Message, Text

_MARKS = ("→", "\t")  # between the number and the line
_REMINDER = "<system-reminder>", "</system-reminder>"  # appended by an agent to a file it shows
_MAX_DEPTH = 3  # how deep in the arguments of a call file contents are looked for


def content_of(text: str) -> str:
    """Return what is compared: a file without its line numbers, any other text as it is, without final line ends."""
    return _without_numbers(text).rstrip("\n")


def is_large(content: str) -> bool:
    """Return True if a content is large enough for a reference."""
    if len(content) >= LARGE_BYTES:
        return True
    return len(content) * 4 >= LARGE_BYTES and not content.isascii() and len(content.encode()) >= LARGE_BYTES


def printed(message: Message) -> str | None:
    """Return the content of a large tool output; None for anything else, and for recalled text."""
    if message.role != "tool" or repeats_history(message):
        return None
    text = message.text
    if not is_large(text):
        return None
    content = content_of(text)
    return content if is_large(content) else None


def written(message: Message) -> Iterator[str]:
    """Return the large contents that the calls of a message carry, each once: files they write, above all."""
    given = {content: None for call in message.tool_calls for content in _given(call.arguments)}
    yield from given


def same_as(messages: Iterable[Message]) -> dict[int, int]:
    """Return the tool outputs of a window that repeat an earlier output or write: number -> first number.

    The messages are those of one window, in order and as they will be shown: the answer for a message depends on those
    before it alone, so it stays when the window grows. A message with pictures or files is never a repeat, and nor is
    one that was brought back on request.
    """
    first: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for message in messages:
        content = printed(message)
        if content is None:
            for text in written(message):
                first.setdefault(text, message.seq)
            continue
        earlier = first.setdefault(content, message.seq)
        if earlier != message.seq and _is_words_only(message):
            repeats[message.seq] = earlier
    return repeats


def _without_numbers(text: str) -> str:
    head = text[:16].lstrip(" ")
    mark = next((candidate for candidate in _MARKS if head.startswith(f"1{candidate}")), None)
    if mark is None:
        return text
    lines = text.split("\n")
    plain: list[str] = []
    for number, line in enumerate(lines, 1):
        numbered, found, rest = line.partition(mark)
        if not found or numbered.lstrip(" ") != str(number):
            break
        plain.append(rest)
    behind = "\n".join(lines[len(plain) :]).strip()
    if behind and not (behind.startswith(_REMINDER[0]) and behind.endswith(_REMINDER[1])):
        return text  # a part of a file, or something else that begins with a number
    return "\n".join(plain)


def _given(arguments: str) -> Iterator[str]:
    if len(arguments) < LARGE_BYTES // 4:
        return
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    for text in _texts(value, 0):
        content = content_of(text)
        if is_large(content):
            yield content


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if is_large(value):
            yield value
    elif depth < _MAX_DEPTH and isinstance(value, Mapping | list):
        inner = cast(Mapping[str, object], value).values() if isinstance(value, Mapping) else cast(list[object], value)
        for item in inner:
            yield from _texts(item, depth + 1)


def _is_words_only(message: Message) -> bool:
    return isinstance(message.content, str) or all(isinstance(part, Text) for part in message.content)
