"""pack.md: the pack as a person reads it, everything that is shown, then what is not and why."""

from daypack.turn.dialects.parts import mention
from daypack.turn.evidence.view import TurnView
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking


def render_pack_md(turn: TurnView) -> str:
    """Return the text of pack.md."""
    record = turn.record
    limit = f"{turn.budget_tokens:,}" if turn.budget_tokens else "no limit"
    lines = [
        f"# Pack for {turn.target}: {turn.parts.agent}/{turn.parts.session}",
        "",
        f"- made: {record.at}, {record.context_id}",
        f"- tokens: {turn.tokens:,} of {limit}, {record.limits.reserved_tokens:,} kept for the answer",
        f"- counted by: {turn.token_method}",
        f"- stable: {turn.stable_tokens:,} tokens, of which {turn.expected_cached_tokens:,} can come from the cache",
        f"- prefix: {turn.prefix_sha256}",
        f"- epoch: {_epoch(turn)}",
        "",
        "| tokens | kind | source |",
        "|---:|---|---|",
        *(f"| {item.tokens:,} | {item.kind} | {_cell(item.source, item.range)} |" for item in turn.items),
        "",
    ]
    given = turn.assembly.given
    if given.prefix:
        lines += ["## Prefix", "", *_spaced(given.prefix)]
    if given.messages:
        lines += ["## Messages", ""]
        for message in given.messages:
            lines += [_heading(message), "", shown_words(message), ""]
    if given.volatile:
        lines += ["## After the messages", "", *_spaced(given.volatile)]
    lines += ["## Omission out", "", *(_left(turn) or ["nothing"]), ""]
    lines += ["## Missing", "", *(_missing(turn) or ["nothing"]), ""]
    return "\n".join(lines)


def _epoch(turn: TurnView) -> str:
    messages = turn.parts.messages
    tail = f", its tail with message {messages[0].seq}" if messages else ""
    if turn.new_epoch:
        return f"begins here ({turn.new_epoch}){tail}"
    return f"goes on since {turn.record.epoch}{tail}"


def _cell(source: str, place: str | None) -> str:
    return (f"{source} {place}" if place else source).replace("|", "\\|").replace("\n", " ")


def _spaced(texts: tuple[str, ...]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _heading(message: Message) -> str:
    who = f"{message.role} ({message.name})" if message.name else message.role
    return f"### {message.id or 'no result'} {who}"


def shown_words(message: Message) -> str:
    """Return all a message says, as one text."""
    content = message.content
    texts = [content] if isinstance(content, str) else [_part(part) for part in content]
    texts += [f"→ {call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(text for text in texts if text)


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Thinking):
        return f"(thinking) {part.text}"
    if isinstance(part, Image | File):
        return mention(part)
    return f"[{part.value.get('type', Other.__name__)}]"


def _left(turn: TurnView) -> list[str]:
    lines: list[str] = []
    for one in turn.omitted:
        tokens = f", {one.tokens:,} tokens" if one.tokens else ""
        note = f": {one.note}" if one.note else ""
        impact = " (may change the answer)" if one.high_impact else ""
        lines.append(f"- {one.item}{tokens}: {one.reason}{note}{impact}")
    return lines


def _missing(turn: TurnView) -> list[str]:
    return [f"- {one.id} ({one.severity}): {one.question}" for one in turn.missing]
