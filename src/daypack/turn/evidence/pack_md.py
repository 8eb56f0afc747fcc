"""pack.md: the pack for people to read. It shows everything that is sent, then what was omitted or is missing, and why.

# Pack for model: default/plan

- prepared: 2026-11-15T21:10:20Z, ctx-1f3a…
- tokens: 2,000 of 3,000, 750 reserved for the answer
"""

from daypack.turn.dialects.parts import mention
from daypack.turn.evidence.view import TurnView
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking


def render_pack_md(turn: TurnView) -> str:
    """Return the text of pack.md."""
    record = turn.record
    limit = f"{turn.tokens:,}, no limit"
    if turn.budget_tokens:
        limit = f"{turn.tokens:,} of {turn.budget_tokens:,}, {record.limits.reserved_tokens:,} reserved for the answer"
    lines = [
        f"# Pack for {turn.target}: {turn.parts.agent}/{turn.parts.session}",
        "",
        f"- prepared: {record.at}, {record.context_id}",
        f"- tokens: {limit}",
        f"- counted by: {turn.token_method}",
        f"- stable: {turn.stable_tokens:,} tokens; expected cache hit: {turn.expected_cached_tokens:,} tokens",
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
        lines += ["## Prefix", "", *_with_blank_lines(given.prefix)]
    if given.messages:
        lines += ["## Messages", ""]
        for message in given.messages:
            lines += [_heading(message), "", message_text(message), ""]
    if given.volatile:
        lines += ["## After the messages", "", *_with_blank_lines(given.volatile)]
    lines += ["## Omitted", "", *(_omitted(turn) or ["nothing"]), ""]
    lines += ["## Missing", "", *(_missing(turn) or ["nothing"]), ""]
    return "\n".join(lines)


def _epoch(turn: TurnView) -> str:
    messages = turn.parts.messages
    tail = f"; the tail starts at message {messages[0].seq}" if messages else ""
    return (f"new ({turn.new_epoch})" if turn.new_epoch else f"continues {turn.record.epoch}") + tail


def _cell(source: str, place: str | None) -> str:
    return (f"{source} {place}" if place else source).replace("|", "\\|").replace("\n", " ")


def _with_blank_lines(texts: tuple[str, ...]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _heading(message: Message) -> str:
    role = f"{message.role} ({message.name})" if message.name else message.role
    return f"### {message.id or 'no result'} {role}"


def message_text(message: Message) -> str:
    """Return everything in a message as one text: words, thinking, files and tool calls."""
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


def _omitted(turn: TurnView) -> list[str]:
    lines: list[str] = []
    for omission in turn.omitted:
        tokens = f", {omission.tokens:,} tokens" if omission.tokens else ""
        note = f": {omission.note}" if omission.note else ""
        impact = " (may change the answer)" if omission.high_impact else ""
        lines.append(f"- {omission.item}{tokens}: {omission.reason}{note}{impact}")
    return lines


def _missing(turn: TurnView) -> list[str]:
    return [f"- {missing.id} ({missing.severity}): {missing.question}" for missing in turn.missing]
