"""The limits of a memory, and the checks whose errors name the actual length.

The [memory] table of config.toml sets some of them:

    [memory]
    entry_bytes = 9000
    flush_every = 6
    create_memory = true
    default = "launch"        # the memory of a call without memory_id: an id, the start of one, or a title
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadConfig, BadInput, TooLong
from daypack.history.layout import check_name
from daypack.memory.document.markdown import NOT_A_CHARACTER
from daypack.memory.times import parse_time
from daypack.types.memory import (
    DESCRIPTION_MAX_CHARS,
    DOCUMENT_MAX_CHARS,
    ENTRY_MAX_BYTES,
    LIST_MAX_ENTRIES,
    LIST_MAX_MEMORIES,
    SEARCH_MAX_ENTRIES,
    SUMMARY_MAX_CHARS,
    SUMMARY_TOKENS,
    TITLE_MAX_CHARS,
    About,
    Where,
)
from daypack.types.names import is_visible, one_line

FLUSH_EVERY = 6  # entries between two versions of the document
_MAX_ENTRY_BYTES = 16_000_000  # entries are read whole, and often


class Limits(Struct, frozen=True, kw_only=True):
    """All limits. `create_memory`: that tool may be used. `flush_every`: entries between two documents.

    `default_memory`: the id, the start of the id or the title of the memory of a call without a memory_id.
    """

    entry_bytes: int = ENTRY_MAX_BYTES
    flush_every: int = FLUSH_EVERY
    create_memory: bool = True
    default_memory: str = ""
    summary_chars: int = SUMMARY_MAX_CHARS
    document_chars: int = DOCUMENT_MAX_CHARS
    title_chars: int = TITLE_MAX_CHARS
    description_chars: int = DESCRIPTION_MAX_CHARS
    about_chars: int = 256  # each of session, role, author, at, source
    tags: int = 32
    tag_chars: int = 64
    key_chars: int = 256
    query_chars: int = 10_000
    list_entries: int = LIST_MAX_ENTRIES
    list_memories: int = LIST_MAX_MEMORIES
    search_entries: int = SEARCH_MAX_ENTRIES
    wait_ms: int = 600_000
    failures: int = 100  # failed writes per user that are remembered until the next barrier


class _Settings(Struct, forbid_unknown_fields=True):
    """The keys of the [memory] table."""

    entry_bytes: int = ENTRY_MAX_BYTES
    flush_every: int = FLUSH_EVERY
    create_memory: bool = True
    default: str = ""


def read_limits(settings: Mapping[str, Any], place: str = "config.toml") -> Limits:
    """Return the limits, with the settings of the [memory] table of a config.toml."""
    table = settings.get("memory", {})
    try:
        chosen = msgspec.convert(table, _Settings)
    except msgspec.ValidationError as error:
        hint = "[memory] has entry_bytes and flush_every (numbers), create_memory (true or false) and default (text)"
        raise BadConfig(str(error), operation="read settings", place=place, hint=hint) from error
    for name, value, maximum in (
        ("entry_bytes", chosen.entry_bytes, _MAX_ENTRY_BYTES),
        ("flush_every", chosen.flush_every, 1000),
    ):
        if not 1 <= value <= maximum:
            hint = f"{name} must be between 1 and {maximum:,}"
            raise BadConfig(f"{name} is {value:,}", operation="read settings", place=place, hint=hint)
    return Limits(
        entry_bytes=chosen.entry_bytes,
        flush_every=chosen.flush_every,
        create_memory=chosen.create_memory,
        default_memory=chosen.default.strip(),
    )


# Texts


def check_text(text: object, field: str, operation: str) -> str:
    """Return a text that can be stored unchanged: any text without lone surrogates."""
    if not isinstance(text, str):
        raise BadInput(f"{field} must be text, not {type(text).__name__}", operation=operation)
    if not text.isascii():
        encode(text, field, operation)
    return str.__str__(text)  # not a subclass


def encode(text: str, field: str, operation: str) -> bytes:
    """Return the UTF-8 bytes of a text, or raise BadInput."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        hint = "half of a character is missing; send the text as it was before it was cut"
        problem = f"{field} has a lone surrogate at position {error.start}"
        raise BadInput(problem, operation=operation, hint=hint) from error


def check_length(text: str, maximum: int, field: str, operation: str) -> str:
    """Return a text of at most `maximum` characters (code points)."""
    if len(text) > maximum:
        problem = f"{field} has {len(text):,} characters, at most {maximum:,} are allowed"
        raise TooLong(problem, operation=operation, hint=f"shorten {field} by {len(text) - maximum:,} characters")
    return text


def check_raw(raw_entry: object, limits: Limits, operation: str = "add_entry") -> str:
    """Return a valid raw entry."""
    if not isinstance(raw_entry, str):
        raise BadInput(f"raw_entry must be text, not {type(raw_entry).__name__}", operation=operation)
    if not raw_entry:
        raise BadInput("raw_entry is empty", operation=operation, hint="send the message, word for word")
    if (length := len(encode(raw_entry, "raw_entry", operation))) > limits.entry_bytes:
        hint = "split the message, or raise entry_bytes in the [memory] table of config.toml"
        problem = f"raw_entry has {length:,} bytes, at most {limits.entry_bytes:,} are allowed"
        raise TooLong(problem, operation=operation, hint=hint)
    return str.__str__(raw_entry)


def check_summary(summary: object, limits: Limits, operation: str = "add_entry") -> str:
    """Return a valid summary."""
    text = check_text(summary, "summary", operation)
    if not text.strip():
        raise BadInput("summary is blank", operation=operation, hint="leave summary out to have one generated")
    return check_length(text, limits.summary_chars, "summary", operation)


def check_document(content: object, limits: Limits, operation: str = "put_context") -> str:
    """Return a valid document: not blank, within the limit, without NUL and code points that are no characters."""
    text = check_text(content, "content", operation)
    if (found := NOT_A_CHARACTER.search(text)) is not None:
        named = "NUL" if found[0] == "\0" else "not a character"
        problem = f"content has U+{ord(found[0]):04X} ({named}) at position {found.start()}"
        raise BadInput(problem, operation=operation, hint="remove it: a document is text")
    if not text.strip():
        raise BadInput(
            "content is blank", operation=operation, hint="send the whole document, or {} for the initial one"
        )
    return check_length(text, limits.document_chars, "content", operation)


def check_query(query: object, limits: Limits, operation: str = "search_memories") -> str:
    """Return a valid query."""
    text = check_text(query, "query", operation)
    if not text.strip():
        raise BadInput("query is blank", operation=operation, hint="write words or a question to search for")
    return check_length(text, limits.query_chars, "query", operation)


def check_title(title: object, limits: Limits, operation: str = "create_memory") -> str:
    """Return a title of 1 to 50 characters without control characters."""
    text = check_text(title, "title", operation)
    if not text.strip():
        hint = f"write a title of 1 to {limits.title_chars} characters"
        raise BadInput("title is blank", operation=operation, hint=hint)
    _check_line(text, "title", operation)
    return check_length(text, limits.title_chars, "title", operation)


def check_description(description: object, limits: Limits, operation: str = "create_memory") -> str:
    """Return a valid description."""
    text = check_text(description, "description", operation)
    return check_length(text, limits.description_chars, "description", operation)


def check_type(memory_type: object) -> str:
    """Return the type of a memory, which is the name of a folder with prompts."""
    return check_name(cast(str, memory_type), "memory_type")


def check_key(client_key: object, limits: Limits, operation: str = "add_entry") -> str | None:
    """Return a valid client key."""
    if client_key is None:
        return None
    text = check_text(client_key, "client_key", operation)
    if not text:
        raise BadInput("client_key is empty", operation=operation, hint="send a key, or leave client_key out")
    return check_length(text, limits.key_chars, "client_key", operation)


def _check_line(text: str, field: str, operation: str) -> None:
    """Refuse what writes a line of its own, or cannot be seen."""
    if not text or (text.isascii() and text.isprintable()):
        return
    if one_line(text) != text:
        raise BadInput(f"{field} has a control character", operation=operation, hint=f"write {field} on one line")
    if not is_visible(text):
        raise BadInput(f"{field} has no visible character", operation=operation, hint=f"write {field} in letters")


# The fields of an entry beside its text, and the filters of a search

_ABOUT = ("session", "role", "author", "at", "source")
_WHERE = ("session", "role", "author")


def check_about(about: About, limits: Limits, operation: str = "add_entry") -> About:
    """Return the fields of an entry beside its text, checked; duplicate tags are removed."""
    words = (about.session, about.role, about.author, about.at, about.source)
    all_words = "".join(filter(None, words))
    if len(all_words) > limits.about_chars or not (all_words.isascii() and all_words.isprintable()):
        for name, word in zip(_ABOUT, words, strict=True):
            _check_word(word, name, limits, operation)
    if not about.tags:
        return about
    return msgspec.structs.replace(about, tags=_check_tags(about.tags, limits, operation))


def check_where(where: Where, limits: Limits) -> Where | None:
    """Return the filters of a search, checked; None if there are none."""
    operation = "search_memories"
    for name in _WHERE:
        _check_word(getattr(where, name), name, limits, operation)
    for name in ("since", "until"):
        text = getattr(where, name)
        if text is not None and parse_time(text) is None:
            raise BadInput(
                f"{name} is {text!r}",
                operation=operation,
                hint=f"write {name} as an ISO 8601 time, for example 2025-08-17",
            )
    where = msgspec.structs.replace(where, tags=_check_tags(where.tags, limits, operation))
    return None if where == Where() else where


def _check_word(text: str | None, field: str, limits: Limits, operation: str) -> None:
    if text is not None:
        _check_line(check_text(text, field, operation), field, operation)
        check_length(text, limits.about_chars, field, operation)


def _check_tags(tags: tuple[str, ...], limits: Limits, operation: str) -> tuple[str, ...]:
    if len(tags) > limits.tags:
        problem = f"there are {len(tags):,} tags, at most {limits.tags} are allowed"
        raise TooLong(problem, operation=operation, hint="send fewer tags")
    for tag in tags:
        if not check_text(tag, "tag", operation).strip():
            raise BadInput("tag is blank", operation=operation, hint="leave blank tags out")
        _check_line(tag, "tag", operation)
        check_length(tag, limits.tag_chars, "tag", operation)
    return tuple(dict.fromkeys(tags))


def check_number(value: int, maximum: int, argument: str, operation: str, *, least: int = 1) -> int:
    """Return a number within its range."""
    if not least <= value <= maximum:
        raise BadInput(
            f"{argument} is {value:,}", operation=operation, hint=f"{argument} must be between {least} and {maximum:,}"
        )
    return value


# msgspec inspects a type at its first use, which is not thread-safe: do it here.
_WARM = msgspec.json.Decoder(_Settings)


def summary_notes(summary: str | None) -> tuple[str, ...]:
    """Return advice about a summary that is within its limit but has many tokens."""
    if summary is None or len(summary.encode()) <= 3 * SUMMARY_TOKENS:  # in no script can it have more tokens
        return ()
    from daypack.text.tokens import counter_for  # noqa: PLC0415 — its vocabulary is only needed for long summaries

    tokens = counter_for(None).count(summary)
    return (f"the summary has {tokens} tokens; aim for about {SUMMARY_TOKENS}",) if tokens > SUMMARY_TOKENS else ()
