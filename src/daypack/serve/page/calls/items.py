"""The items of a turn that daypack prepared, in the order sent: tools, prefix, tail with its additions, volatile."""

from collections.abc import Iterator

import msgspec

from daypack.files.offsets import DAMAGED, UNCOUNTED
from daypack.history.session import History
from daypack.serve.page.calls.shapes import ShownItem, ShownToolCall, cut
from daypack.session.shown import shown
from daypack.text.tokens import counter_named
from daypack.turn.evidence.calls.parts import part_of_item
from daypack.turn.evidence.explain import explain_in_tail, explain_included, explain_tools
from daypack.turn.evidence.view import TOOLS
from daypack.turn.items import Excerpt, Item
from daypack.turn.survey.message_cost import message_cost
from daypack.turn.survey.visibility import OUTSIDE, is_hidden_from
from daypack.turn.turn import Turn
from daypack.types.authority import authority_of
from daypack.types.history import File, Image, Message, Other, Text, Thinking
from daypack.types.kinds import TARGETS

_MESSAGES = "messages:"


def items_of(history: History, turn: Turn, most_chars: int | None) -> list[ShownItem]:
    """Return everything that a turn sends, one item per message; texts are cut to `most_chars`."""
    prefix = turn.parts.epoch.prefix
    items = [_tools(history, turn, most_chars)] if turn.record.tools else []
    # In the system prompt are only items that may instruct; the others follow it, quoted.
    items += [_item(turn, item, "prefix", most_chars) for item in prefix if item.instructs]
    items += [_item(turn, item, "prefix", most_chars) for item in prefix if not item.instructs]
    items += _tail(history, turn, most_chars)
    items += [_item(turn, item, "volatile", most_chars) for item in turn.parts.volatile]
    return items


def text_of(message: Message) -> str:
    """Return everything that a message says, with its thinking, and a line for each image and file."""
    if isinstance(message.content, str):
        return message.content
    lines: list[str] = []
    for part in message.content:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, Thinking):
            lines.append(f"(thinking) {part.text}")
        else:
            lines.append(f"[{media_words(part)}]")
    return "\n".join(lines)


def media_words(part: Image | File | Other) -> str:
    """Return what a part without text is: image plan.png; of a large image inside the message, only its type."""
    if isinstance(part, Other):
        return part.kind or "other"
    kind = type(part).__name__.lower()
    source = part.source.partition(",")[0] if part.source.startswith("data:") else part.source
    return f"{kind} {source}"


def calls_of(message: Message, most_chars: int | None) -> tuple[ShownToolCall, ...]:
    """Return the calls of tools in a message."""
    return tuple(ShownToolCall(call.name, cut(call.arguments, most_chars)) for call in message.tool_calls)


def _tools(history: History, turn: Turn, most_chars: int | None) -> ShownItem:
    tools = turn.record.tools
    assert tools is not None
    # A model gets them as they are; what is shown has no secrets.
    text = msgspec.json.format(msgspec.json.encode(shown(history, turn.parts.tools)), indent=2).decode()
    why = shown(history, explain_tools(tools).why)
    return ShownItem(
        id=TOOLS,
        part="prefix",
        category="prefix",
        kind=TOOLS,
        context_kind="runtime_state",
        source=TOOLS,
        title=why.partition(",")[0],
        tokens=tools.tokens,
        why=why,
        visible_to=(turn.target,),
        text=cut(text, most_chars),
        chars=len(text),
    )


def _item(turn: Turn, item: Item, part: str, most_chars: int | None) -> ShownItem:
    if isinstance(item, Excerpt):
        ref = f"{_MESSAGES}{item.seq}"
    else:
        ref = next((name for name in (item.id, item.source) if name.startswith(_MESSAGES)), None)
    return ShownItem(
        id=item.id,
        part=part,
        category=part_of_item(item),
        kind=item.kind,
        context_kind=item.context_kind,
        source=item.source,
        ref=ref,
        title=_title(item),
        tokens=item.tokens,
        why=explain_included(turn, item).why,
        authority=item.authority,
        visible_to=tuple(item.visibility),
        redacted=item.redacted,
        score=item.score,
        text=cut(item.text, most_chars),
        chars=len(item.text),
    )


def _title(item: Item) -> str:
    if isinstance(item, Excerpt):
        return f"message {item.seq:,}, {item.title}" if item.title else f"message {item.seq:,}"
    return item.title or item.id.partition(":")[2]


# The tail


def _tail(history: History, turn: Turn, most_chars: int | None) -> Iterator[ShownItem]:
    """Yield the messages of the tail, and after each what was added there."""
    waiting = sorted(turn.parts.additions, key=lambda addition: addition.after)  # stable, as they are sent
    measure = _Tokens(history, turn)
    names = {call.id: call.name for message in turn.parts.messages for call in message.tool_calls}
    for message in turn.parts.messages:
        while waiting and waiting[0].after < message.seq:
            yield from (_item(turn, item, "tail", most_chars) for item in waiting.pop(0).items)
        yield _message(turn, message, names.get(message.tool_call_id or "", ""), measure.of(message), most_chars)
    for addition in waiting:
        yield from (_item(turn, item, "tail", most_chars) for item in addition.items)


def _message(turn: Turn, message: Message, tool: str, tokens: int, most_chars: int | None) -> ShownItem:
    text, seq = text_of(message), message.seq
    stub, why = _stub(turn, message)
    return ShownItem(
        # A result that was never recorded has the number of its call.
        id=f"{_MESSAGES}{seq}" if message.id else f"tool:{message.tool_call_id}",
        part="tail",
        category="tail",
        kind="recent_messages",
        context_kind="session_history",
        source="messages.jsonl",
        ref=f"{_MESSAGES}{seq}",
        role=message.role,
        title=f"result of {tool}" if tool else f"{message.role} {message.name}" if message.name else message.role,
        tokens=tokens,
        why=why or explain_in_tail(turn, seq).why,
        authority=authority_of(message),
        visible_to=_FROM_SYSTEM if message.role == "system" else _FROM_OTHERS,
        redacted=turn.record.redacted.get(str(seq), ()),
        text=cut(text, most_chars),
        chars=len(text),
        calls=calls_of(message, most_chars),
        stub=stub,
    )


def _stub(turn: Turn, message: Message) -> tuple[bool, str]:
    """Return True and why if a message is shown as one line in place of its text."""
    if message.role != "tool":
        return False, ""
    if not message.id:
        return True, "the call has no recorded result"
    if message.seq in turn.parts.epoch.stubbed:
        return True, "a large output, shown as one line; recall returns it"
    if message.seq in turn.parts.repeats:
        return True, f"same text as messages:{turn.parts.repeats[message.seq]}, shown as one line"
    return False, ""


class _Tokens:
    """The tokens of the messages of a turn, from the log's own counts where these are of the same text and counter."""

    def __init__(self, history: History, turn: Turn) -> None:
        self._turn = turn
        self._counter = counter_named(turn.token_method)
        self._known: dict[int, int] = {}
        seqs = [message.seq for message in turn.parts.messages]
        if seqs and self._counter.name == history.tokenizer and turn.target not in OUTSIDE:
            reader = history.messages.reader
            first = turn.parts.epoch.start  # a head before it is counted
            for slot in reader.slots(reader.position(first), reader.position(seqs[-1] + 1)):
                if slot.tokens != UNCOUNTED and not slot.flags & DAMAGED:
                    self._known[slot.seq] = slot.tokens

    def of(self, message: Message) -> int:
        """Return the tokens of a message as it is sent."""
        turn, seq = self._turn, message.seq
        changed = _stub(turn, message)[0] or str(seq) in turn.record.redacted
        known = None if changed else self._known.get(seq)
        return message_cost(message, self._counter, known, turn.record.model).tokens


_FROM_OTHERS = tuple(target for target in TARGETS if not is_hidden_from(Message(role="user"), target))
_FROM_SYSTEM = tuple(target for target in TARGETS if not is_hidden_from(Message(role="system"), target))
