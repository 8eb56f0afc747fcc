"""pack.json and pack.md: the pack for programs and for people.

pack.md shows everything that is sent, then what was omitted or is missing, and why:

# Pack for model: default/plan

- prepared: 2026-11-15T21:10:20Z, ctx-1f3a…
- tokens: 2,000 of 3,000, 750 reserved for the answer

What is sent is indented by four spaces, which Markdown shows as it is: no text of a session can write a heading, HTML
or a link of its own, or end its block. Control characters are escaped, so that a terminal shows them.
"""

import msgspec

from daypack.turn.dialects.parts import mention
from daypack.turn.evidence.view import TurnView
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking
from daypack.types.names import CONTROLS, escape_controls, one_line
from daypack.types.records import PACK_VERSION, Pack

_MARKUP = {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord("["): "\\[", ord("`"): "\\`", ord("|"): "\\|"}


def pack_of(turn: TurnView) -> Pack:
    """Return the value of pack.json."""
    record, stable = turn.record, turn.record.stable
    return Pack(
        session=turn.parts.session,
        agent=turn.parts.agent,
        budget_tokens=record.limits.tokens or 0,
        items=turn.items,
        omitted=tuple(omission.recorded() for omission in turn.omitted),
        target=record.target,
        context_id=record.context_id,
        token_method=record.tokenizer,
        prefix_sha256=stable.prefix_sha256,
        stable_tokens=stable.tokens,
        expected_cached_tokens=stable.expected_cached_tokens,
        schema_version=PACK_VERSION,
    )


def render_pack_json(turn: TurnView) -> bytes:
    """Return the bytes of pack.json."""
    return msgspec.json.format(msgspec.json.encode(pack_of(turn)), indent=2) + b"\n"


def render_pack_md(turn: TurnView) -> str:
    """Return the text of pack.md."""
    record, stable, messages = turn.record, turn.record.stable, turn.parts.messages
    limit = f"{record.used.tokens:,}, no limit"
    if record.limits.tokens:
        reserve = f"{record.limits.reserved_tokens:,} reserved for the answer"
        limit = f"{record.used.tokens:,} of {record.limits.tokens:,}, {reserve}"
    epoch = f"new ({record.opening.reason})" if record.opening else f"continues {record.epoch}"
    if messages:
        epoch += f"; the tail starts at message {messages[0].seq}"
    lines = [
        f"# Pack for {record.target}: {_inline(turn.parts.agent)}/{_inline(turn.parts.session)}",
        "",
        f"- prepared: {record.at}, {record.context_id}",
        f"- tokens: {limit}",
        f"- counted by: {record.tokenizer}",
        f"- stable: {stable.tokens:,} tokens; expected cache hit: {stable.expected_cached_tokens:,} tokens"
        + (f" ({stable.cache_lost})" if stable.cache_lost else ""),
        f"- prefix: {stable.prefix_sha256}",
        f"- epoch: {epoch}",
        "",
        "| tokens | kind | source |",
        "|---:|---|---|",
    ]
    lines += [
        f"| {item.tokens:,} | {item.kind} | {_inline(f'{item.source} {item.range}' if item.range else item.source)} |"
        for item in turn.items
    ]
    given = turn.assembly.given
    lines.append("")
    sections = (("System prompt", given.prefix), ("Quoted", given.quoted), ("Messages", given.messages))
    for title, parts in (*sections, ("After the messages", given.volatile)):
        if parts:
            lines += [f"## {title}", ""]
        for part in parts:
            text = message_text(part) if isinstance(part, Message) else part
            if isinstance(part, Message):
                name = f" ({_inline(part.name)})" if part.name else ""
                unsaid = "no result" if part.role == "tool" else "added by daypack"
                lines += [f"### {part.id or unsaid} {part.role}{name}", ""]
            text = escape_controls(text) if CONTROLS.search(text) else text
            lines += ["    " + text.replace("\n", "\n    "), ""]
    lines += ["## Omitted", "", *(_omitted(turn) or ["nothing"]), "", "## Missing", ""]
    for missing in record.missing:
        lines.append(f"- {_inline(missing.id)} ({missing.severity}): {_inline(missing.question)}")
    lines += ["", ""] if record.missing else ["nothing", "", ""]
    return "\n".join(lines[:-1])


def _inline(text: str) -> str:
    """Return a text as part of a line of Markdown: without HTML, links and pictures of its own."""
    return (text if text.isprintable() else one_line(text)).translate(_MARKUP)


def message_text(message: Message) -> str:
    """Return everything in a message as one text: words, thinking, files and tool calls."""
    content = message.content
    texts = [content] if isinstance(content, str) else list(map(_part, content))
    for call in message.tool_calls:
        texts.append(f"→ {call.name} {call.arguments}")
    return "\n".join(filter(None, texts))


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
        impact = " (may change the answer)" if omission.high_impact else ""
        lines.append(f"- {_inline(omission.item)}{tokens}: {_inline(omission.explain(omission.details))}{impact}")
    return lines
