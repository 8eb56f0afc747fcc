"""How an item is shown: by its authority, between fences with a marker that its text cannot contain.

<data id="1f3a9c02" name="build log" authority="tool">
…
</data 1f3a9c02>
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from daypack.text.injected import PAST_INTRODUCTION, mark_for, name_attribute, wrap
from daypack.text.redact.redact import redact, redact_value
from daypack.turn.items import Excerpt, Item, TokenMeter
from daypack.turn.pack.reference import redact_reference, show_reference
from daypack.types.authority import INSTRUCTING, Authority, authority_of, is_quoted
from daypack.types.digest import digest_bytes, digest_text
from daypack.types.history import Message
from daypack.types.kinds import Target

SEPARATOR = "\n\n"
QUOTED_SYSTEM = "a system message of the imported conversation"
_SEPARATOR_TOKENS = 2

Measure = Callable[[Item], Item]


def show(item: Item) -> str:
    """Return the text of an item as a model reads it."""
    if not item.title and (item.instructs or not item.text):
        return item.text
    return fence(item.text, item.title or item.source, item.authority, item.digest)


def show_message(message: Message) -> Message:
    """Return a message as it is sent: a system message that is only quoted is fenced, in a user message."""
    if not is_quoted(message):
        return message
    fenced = fence(message.text, QUOTED_SYSTEM, authority_of(message), digest_text(message.text))
    return replace(message, role="user", name=None, content=fenced, meta=None)


def show_all(items: Sequence[Item]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the texts of items with their ids; all excerpts are one text."""
    excerpts = [item for item in items if isinstance(item, Excerpt)]
    for item in items:
        if not isinstance(item, Excerpt):
            yield (item.id,), show(item)
        elif item is excerpts[0]:
            yield tuple(excerpt.id for excerpt in excerpts), show_excerpts(excerpts)


def show_excerpts(excerpts: Sequence[Excerpt]) -> str:
    """Return all excerpts as one text, under their dates."""
    text = excerpts_text(excerpts)
    return wrap("past", mark_for(text), f"{PAST_INTRODUCTION}\n{text}")


def excerpts_text(excerpts: Sequence[Excerpt]) -> str:
    """Return the lines of excerpts, under their dates, without the fence."""
    lines: list[str] = []
    day = ""
    for excerpt in excerpts:
        if excerpt.title != day:
            day = excerpt.title
            lines.append(f"{day}:")
        lines.append(excerpt.text)
    return "\n".join(lines)


def fence(text: str, title: str, authority: Authority, digest: str) -> str:
    """Return a text between fences that say its name and, below that of an agent, its authority."""
    name, mark = name_attribute(title), mark_for(text, digest)
    if authority in INSTRUCTING:
        return wrap("instructions", mark, text, name)
    if authority == "agent":
        return wrap("note", mark, text, name)
    return wrap("data", mark, text, f'{name} authority="{authority}"')


def measurer(meter: TokenMeter, *, redacting: bool, target: Target = "model") -> Measure:
    """Return the function that redacts an item and adds its digest and its cost as it would be shown to the target."""

    def measure(item: Item) -> Item:
        if redacting:
            item = _redacted(item)
        if item.reference is not None and not item.text:
            item = replace(item, text=show_reference(item, item.reference, target))
            item = _redacted(item) if redacting else item  # what was apart may be a secret side by side
        data = item.text.encode("utf-8", "replace")
        item = replace(item, text=data.decode(), digest=digest_bytes(data))
        text = show(item)
        tokens = meter.tokens(text) + _SEPARATOR_TOKENS if text else 0
        return replace(item, tokens=tokens, bytes=shown_bytes(text))

    return measure


def shown_bytes(text: str) -> int:
    """Return the bytes of a shown text and the separator after it."""
    return len(text.encode("utf-8", "replace")) + len(SEPARATOR)


def _redacted(item: Item) -> Item:
    """Redact everything about an item that is shown or recorded."""
    kinds: set[str] = set()
    texts: dict[str, str] = {}
    for name in ("text", "title", "source", "id", "problem"):
        texts[name], found = redact(getattr(item, name))
        kinds.update(found)
    metadata = item.metadata
    if metadata:
        metadata, found = redact_value(metadata)
        kinds.update(found)
    stated = item.stated
    if stated:
        stated, found = redact_value(stated)
        kinds.update(found)
    reference = item.reference
    if reference is not None:
        reference, found = redact_reference(reference)
        kinds.update(found)
    if not kinds:
        return item
    redacted = tuple(sorted({*item.redacted, *kinds}))
    return replace(item, **texts, metadata=metadata, stated=stated, reference=reference, redacted=redacted)
