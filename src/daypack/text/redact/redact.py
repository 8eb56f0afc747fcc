"""Secrets in text: a fixed set of formats, found in linear time, each replaced by a marker that says its kind.

    export GITHUB_TOKEN=ghp_0aB…   ->   export GITHUB_TOKEN=[redacted:github-token]

Redaction happens where text leaves (injection, export), never in history. `RULES_VERSION` is recorded with the result.

- A format is known by its prefix, its shape, or the name it is assigned to. Nothing is found by entropy alone: digests,
  UUIDs, git shas and base64 pictures stay. So a secret without a known format or name stays too.
- Placeholders stay: `YOUR_API_KEY`, `${TOKEN}`, `xxxx`, `sk-...`, and the example keys of AWS's documentation.
- A marker holds no part of the secret, and no quote, backslash or line break: it is valid inside JSON text.
- No rule reads across a marker or takes what touches one for the end of a word: redacted text is left as it is.

Text is searched as ASCII bytes, one for each character (others become `?`), so that positions in both are the same and
every search runs over one byte a character. No quantifier is unbounded, and long ones never give back what they took:
the work is linear in the text, even in a hostile one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.text.redact.formats import (
    DATABASES,
    DISCORD_SHAPE,
    FORMATS,
    HOOKS,
    KINDS,
    LAST_CHARS,
    NAMES,
    NO_PASSWORDS,
    OWNERS,
    REACH,
    RUN,
    SHAPE,
    pattern_of,
)
from daypack.text.redact.pieces import PIECE_CHARS, pieces
from daypack.types.history import Message, Other, Part, Text, Thinking, ToolCall

RULES_VERSION = "2"


class Redacted(NamedTuple):
    """A text without its secrets, and the kinds of what was found, sorted; the same `str` when nothing was."""

    text: str
    kinds: tuple[str, ...]


_Span = tuple[int, int, str]
_IDENTIFYING = frozenset({"id", "token", "client_key", "next_before", "next_after", "superseded_by"})
_IDENTIFYING_ENDS = ("_id", "_at", "_timestamp")
_DISCORD, _HOOKS = -1, -2  # beside places in FORMATS: what is found by its shape, and in URLs


def redact(text: str) -> Redacted:
    """Return the text with every secret in it replaced by `[redacted:<kind>]`."""
    spans = _find(text)
    if not spans:
        return Redacted(text, ())
    return Redacted(_replace(text, spans), tuple(sorted({kind for _, _, kind in spans})))


def redact_value(value: Any) -> tuple[Any, tuple[str, ...]]:  # noqa: ANN401 - whatever JSON holds, and records
    """Return a value with its strings redacted, and the kinds found; keys stay, and say what their strings are."""
    kinds: set[str] = set()
    value = _redact_value(value, "", kinds)
    return value, tuple(sorted(kinds))


def _redact_value(value: Any, key: str, kinds: set[str]) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        # Read after its key: {"password": "…"} is an assignment.
        name = f"{key}: " if key else ""
        shift = len(name)
        spans = [(max(start - shift, 0), end - shift, kind) for start, end, kind in _find(name + value) if end > shift]
        kinds.update(kind for _, _, kind in spans)
        return _replace(value, spans) if spans else value
    if isinstance(value, list):
        return [_redact_value(item, key, kinds) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: _redact_value(item, name, kinds) for name, item in cast(dict[str, Any], value).items()}
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return like(items, [_redact_value(item, key, kinds) for item in items])
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if not identifies(name)}
        return replace(value, **{name: _redact_value(item, name, kinds) for name, item in fields.items()})
    return value


def identifies(field: str) -> bool:
    """Return True for a field of a record that callers send back as it is, without words of a person or a model."""
    return field in _IDENTIFYING or field.endswith(_IDENTIFYING_ENDS)


def like(value: tuple[Any, ...], items: Sequence[Any]) -> tuple[Any, ...]:
    """Return items as a tuple of the same type: a named one keeps its names."""
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def _replace(text: str, spans: list[_Span]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], f"[redacted:{kind}]")
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _find(text: str) -> list[_Span]:
    """Return where secrets are, in order; spans that overlap are made one."""
    if len(text) <= PIECE_CHARS:
        data = text.encode("ascii", "replace")
        return _search(data, _likely(data))
    # What is likely in one piece is looked for in all: the answer does not depend on where the text is cut.
    likely: set[int] = set()
    for _, piece in pieces(text):
        likely |= _likely(piece.encode("ascii", "replace"))
    spans: list[_Span] = []
    for shift, piece in pieces(text):
        found = _search(piece.encode("ascii", "replace"), likely)
        spans += ((start + shift, end + shift, kind) for start, end, kind in found)
    return spans


def _likely(data: bytes) -> set[int]:
    """Return which formats are in the long words of a text, as places in `FORMATS`, and `_DISCORD` and `_HOOKS`."""
    # Nearly all text has few words as long as a secret. The anchors, of which there are many, are looked for in these.
    words = b" ".join(_long_words(data))
    if not words:
        return set()
    likely = {_HOOKS}
    present = {char for char in LAST_CHARS if char in words}  # one character is found much faster than three
    for number, (_, anchors, pattern) in enumerate(FORMATS):
        if any(anchor[-1] in present and anchor in words for anchor in anchors) and pattern_of(pattern).search(words):
            likely.add(number)
    # This one has no anchor but its shape.
    if DISCORD_SHAPE in words.translate(SHAPE) and pattern_of("discord-token").search(words):
        likely.add(_DISCORD)
    return likely


def _search(data: bytes, likely: set[int]) -> list[_Span]:
    found: list[_Span] = []
    for number in likely:
        if number >= 0:
            kind, _, pattern = FORMATS[number]
            found += _secrets(kind, pattern_of(pattern), data)
    if _DISCORD in likely:
        found += _secrets("discord-token", pattern_of("discord-token"), data)
    if _HOOKS in likely:
        for kind, anchor, pattern in HOOKS:
            if anchor in data:
                found += _secrets(kind, pattern_of(pattern), data)
    lowered = data.lower()
    found += _assignments(data, lowered)
    if b"authorization" in lowered:
        found += _authorizations(data, lowered)
    if b"@" in data and b"://" in data:
        found += _urls(data)
    if b"-----BEGIN " in data:
        found += _key_blocks(data)
    spans: list[_Span] = []
    for start, end, kind in sorted(found):
        if spans and start < spans[-1][1]:
            first, last, other = spans[-1]
            spans[-1] = (first, max(end, last), min(kind, other, key=KINDS.index))
        else:
            spans.append((start, end, kind))
    return spans


def _long_words(data: bytes) -> Iterator[bytes]:
    find = data.translate(SHAPE).find
    at = find(RUN)
    while at >= 0:
        end = find(b" ", at)
        if end < 0:
            end = len(data)
        if pattern_of("mixed").search(data, at, end):  # no secret of this length is in small letters only
            yield data[at - REACH if at > REACH else 0 : end]
        at = find(RUN, end)


def _secrets(kind: str, pattern: re.Pattern[bytes], data: bytes) -> Iterator[_Span]:
    for match in pattern.finditer(data):
        start, end = match.span(match.lastindex or 0)
        if not _is_placeholder(data[start:end]):
            yield start, end, kind


def _assignments(data: bytes, lowered: bytes) -> Iterator[_Span]:
    for kind, name, min_chars in NAMES:
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            before = lowered[max(at - 24, 0) : at]
            if kind != "api-key" or before.rstrip(b"_-. ").endswith(OWNERS):
                match = pattern_of("assigned").match(data, end)
                if match and (match[1] or _is_option(before)):
                    value = match[match.lastindex or 0]
                    special = _special_kind(before, value) if kind == "api-key" else None
                    if special or _looks_random(value, min_chars):
                        yield *match.span(match.lastindex or 0), special or kind
            at = lowered.find(name, end)


def _authorizations(data: bytes, lowered: bytes) -> Iterator[_Span]:
    at = lowered.find(b"authorization")
    while at >= 0:
        end = at + len(b"authorization")
        match = pattern_of("authorized").match(data, end)
        if match and (_is_basic(match[2]) if match[1] else _looks_random(match[2], 8)):
            yield *match.span(2), "authorization"
        at = lowered.find(b"authorization", end)


def _urls(data: bytes) -> Iterator[_Span]:
    for match in pattern_of("url").finditer(data):
        user, password = match.groups()
        named = password.lower() in NO_PASSWORDS or password == user or pattern_of("constant").match(password)
        port = password.isdigit() and len(password) <= 5
        if not (named or port or _is_placeholder(password, min_distinct=2)):
            scheme = data[max(match.start() - 16, 0) : match.start()].lower()
            database = scheme.endswith(DATABASES) or b"mongodb+" in scheme or b"sql+" in scheme
            yield *match.span(2), "database-url" if database else "url-password"


def _key_blocks(data: bytes) -> Iterator[_Span]:
    begins = [*pattern_of("begin").finditer(data)]
    # A block ends before the next begins: no part of the text is read for two of them.
    for number, begin in enumerate(begins, 1):
        after = begin.end()
        limit = begins[number].start() if number < len(begins) else len(data)
        limit = min(limit, after + 40_000)  # a key of 16,384 bits has 13,000 characters
        end = pattern_of("end").search(data, after, limit)
        if end and _is_key(data[after : end.start()]):
            yield begin.start(), end.end(), "private-key"
        elif (stop := _end_of_key(data, after, limit)) > after:
            yield begin.start(), stop, "private-key"


def _is_key(body: bytes) -> bool:
    """Return True for a real key. Code that looks for keys has both labels too, but little like a key in between."""
    size = len(body.translate(None, b" \t\r\n"))
    return size > 0 and b"[redacted:" not in body and 2 * sum(map(len, pattern_of("lines").findall(body))) >= size


def _end_of_key(data: bytes, position: int, limit: int) -> int:
    """Return where the lines of a key end that was cut off; `position` when there are none."""
    start = position
    while header := pattern_of("header").match(data, position, limit):
        position = header.end()
    end = start
    while line := pattern_of("line").match(data, position, limit):
        chars = line[1]
        if len(chars) < 40:
            # The last line, or what was left of it; or, since anything may follow, an ordinary word.
            mixed = not chars.isalpha() or pattern_of("switch").search(chars)
            if mixed and (end > start or len(chars) >= 16) and pattern_of("cut").match(data, line.end()):
                end = line.end()
            break
        position = end = line.end()
    return end


def _special_kind(before: bytes, value: bytes) -> str | None:
    owner = before.rstrip(b"_-. ")
    if _is_placeholder(value):
        return None
    if owner.endswith(b"access") and b"secret" in owner and pattern_of("aws").match(value):
        return "aws-secret-key"
    if owner.endswith((b"account", b"access", b"storage")) and pattern_of("azure").match(value):
        return "azure-key"
    return None


def _is_option(before: bytes) -> bool:
    """Return True if the value follows after a space: the name is that of an option, or in a `.netrc`."""
    dashes = before.rfind(b"--")
    return (
        (dashes >= 0 and before[dashes:].replace(b"-", b"").isalnum()) or before.endswith(b"--") or b"login " in before
    )


def _is_basic(value: bytes) -> bool:
    from binascii import Error, a2b_base64  # noqa: PLC0415 - rarely needed

    try:
        return b":" in a2b_base64(value[: len(value) // 4 * 4]) and not _is_placeholder(value)
    except Error:
        return False


def _is_placeholder(value: bytes, min_distinct: int = 6) -> bool:
    # Of a long one only the beginning: among thousands of random letters some spell any short word.
    return len(set(value)) < min_distinct or pattern_of("placeholder").search(value, 0, 64) is not None


def _looks_random(value: bytes, min_chars: int) -> bool:
    """Return True if a value changes between letters, digits and case more often than words, versions and dates do."""
    if len(value) < min_chars or value.isalpha() or value.isdigit():
        return False
    if _is_placeholder(value) or pattern_of("ordinary").match(value):
        return False
    switches = len(pattern_of("switch").findall(value))
    if switches >= 3 and 4 * switches >= len(value):
        return True
    # A password made by a person: Summer2024!
    is_mixed = switches >= 1 and pattern_of("symbol").search(value) is not None
    return min_chars == 8 and is_mixed and value[:1].isalnum()


def redact_message(message: Message) -> tuple[Message, tuple[str, ...]]:
    """Return a message without secrets, and the kinds of secrets removed."""
    content, kinds = message.content, set[str]()
    if isinstance(content, str):
        found = redact(content)
        content, kinds = found.text, set(found.kinds)
    elif content:
        content = tuple(part for item in content if (part := _redact_part(item, kinds)))
    calls = _redact_calls(message.tool_calls, kinds) if message.tool_calls else ()
    name = message.name
    if name:
        found = redact(name)
        name = found.text
        kinds.update(found.kinds)
    if not kinds:
        return message, ()
    return replace(message, content=content, tool_calls=calls, name=name), tuple(sorted(kinds))


def _redact_part(part: Part, kinds: set[str]) -> Part | None:
    if isinstance(part, Other):
        value, found_kinds = redact_value(part.value)
        kinds.update(found_kinds)
        return Other(value) if found_kinds else part
    if not isinstance(part, Text | Thinking):
        # An address may carry a password or a token.
        found = redact(part.source)
        kinds.update(found.kinds)
        return replace(part, source=found.text) if found.kinds else part
    found = redact(part.text)
    if not found.kinds:
        return part
    kinds.update(found.kinds)
    # A provider has signed its thinking word by word: with other words it would be refused.
    return Text(found.text, part.meta) if isinstance(part, Text) else None


def _redact_calls(calls: Sequence[ToolCall], kinds: set[str]) -> tuple[ToolCall, ...]:
    redacted: list[ToolCall] = []
    for call in calls:
        found, name = redact(call.arguments), redact(call.name)
        if "\\u" in found.text:
            found = _unescaped(found)
        kinds.update(found.kinds, name.kinds)
        changed = found.kinds or name.kinds
        redacted.append(replace(call, name=name.text, arguments=found.text) if changed else call)
    return tuple(redacted)


def _unescaped(found: Redacted) -> Redacted:
    """Redact inside the escapes of JSON: a dialect that takes arguments as objects would send the decoded text."""
    try:
        value, kinds = redact_value(msgspec.json.decode(found.text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return found
    return Redacted(msgspec.json.encode(value).decode(), (*found.kinds, *kinds)) if kinds else found
