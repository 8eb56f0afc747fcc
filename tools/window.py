"""Draw docs/window.svg: one packed window of the demo's session, with what was omitted and why.

python -m tools.window
"""

import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from daypack.turn.items import Excerpt, cost_of
from daypack.turn.pack.additions import added_items
from daypack.turn.turn import Turn
from daypack.types.records import PackItem
from demo.agent import Agent
from demo.writer import open_story

PICTURE = Path(__file__).parents[1] / "docs" / "window.svg"
STEP = 42  # of the demo: after a compaction, with a child agent, a memory in tiers and excerpts in the tail
WIDTH, MARGIN, ROW = 880, 24, 19
MOST_OMITTED = 5  # rows
BLUE, GREEN, AMBER, GREY, RED = "#2f6fb7", "#3c8a4e", "#b7791f", "#8a8f98", "#b04545"
NAMES = {
    "context/pinned/system.md": "pinned: system.md",
    "rules": "standing rules of the user",
    "tiers/core": "core blocks (lasting notes)",
    "context/CONTEXT.md": "CONTEXT.md (summary)",
    "context/refs.jsonl": "refs: files and outputs by id",
    "names": "names in messages that left",
    "tiers/working": "working blocks (this task)",
    "prompts:protocol.md": "instructions of the protocol",
    "daypack:runtime": "date and runtime",
}


class Row(NamedTuple):
    """A line of a column: what it is, and its tokens."""

    name: str
    tokens: int | None = None


class Column(NamedTuple):
    """A part of the window."""

    title: str
    note: str
    colour: str
    rows: list[Row]
    tokens: int


def play() -> tuple[Turn, int]:
    """Play the demo up to a step; return its newest turn, and how many messages there are."""
    calls: list[Turn] = []
    with tempfile.TemporaryDirectory() as home, open_story(home) as session:
        agent = Agent(session, lambda _name, _arguments: "{}")
        agent.on_call = lambda _step, turn: calls.append(turn)
        agent.begin()
        for step in range(1, STEP + 1):
            agent.play(step)
        return calls[-1], max(message.seq for message in calls[-1].parts.messages)


def columns_of(turn: Turn) -> list[Column]:
    """Return prefix, tail and volatile part of a turn, in the order in which they are sent."""
    kinds = [item.kind for item in turn.items]
    at = kinds.index("recent_messages")
    added, messages = added_items(turn.parts.additions), turn.parts.messages
    excerpts = [item for item in added if isinstance(item, Excerpt)]
    notes = [item for item in added if item not in excerpts]
    said = sum(item.tokens or 0 for item in turn.items if item.kind == "recent_messages")
    tail = [
        Row(f"messages {messages[0].seq} to {messages[-1].seq},", said),
        Row("every tool call with its results"),
        Row(f"{len(excerpts)} excerpts of older messages", cost_of(excerpts).tokens),
        Row("found for a question, or a step"),
    ]
    if notes:
        tail.append(Row(f"{len(notes)} notes on what changed", cost_of(notes).tokens))
    after = turn.items[len(turn.items) - len(turn.parts.volatile) :]
    parts = [
        ("1  PREFIX", "the same bytes in call after call", BLUE, merged(turn.items[:at])),
        ("2  TAIL", "only ever appended to", GREEN, tail),
        ("3  VOLATILE", "for this call only", AMBER, merged(after)),
    ]
    return [Column(*part, tokens=sum(row.tokens or 0 for row in part[3])) for part in parts]


def merged(items: Sequence[PackItem]) -> list[Row]:
    """Return a row per source."""
    tokens: dict[str, int] = {}
    for item in items:
        name = NAMES.get(item.source) or NAMES.get(item.item_ref or "") or f"child agent: {Path(item.source).name}"
        tokens[name] = tokens.get(name, 0) + (item.tokens or 0)
    return [Row(name, count) for name, count in tokens.items()]


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Return a text element."""
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, style: str) -> str:
    """Return a rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {style}/>'


def draw(turn: Turn, messages: int) -> str:
    """Return the picture."""
    columns = columns_of(turn)
    budget, answer = turn.budget_tokens or turn.tokens, turn.record.limits.reserved_tokens
    head = f"One window: {turn.tokens:,} of {budget:,} tokens sent, {answer:,} reserved for the answer"
    drawn = [text(MARGIN, 34, head, 'class="head"')]
    scale = (WIDTH - 2 * MARGIN) / budget
    x = float(MARGIN)
    free = budget - answer - sum(column.tokens for column in columns)
    shares = [(column.tokens, column.colour, 1.0) for column in columns]
    for tokens, colour, opacity in [*shares, (free, GREY, 0.15), (answer, GREY, 0.45)]:
        drawn.append(box(x, 48, tokens * scale, 22, f'fill="{colour}" fill-opacity="{opacity}"'))
        x += tokens * scale
    cached = turn.expected_cached_tokens * scale
    drawn.append(box(MARGIN, 74, cached, 3, f'fill="{GREY}"'))
    drawn.append(text(MARGIN, 93, f"{turn.expected_cached_tokens:,} tokens equal the previous call: a cache hit"))
    drawn.append(text(WIDTH - MARGIN, 93, "free, then the answer", 'class="end"'))
    drawn += draw_columns(columns)
    top = 122 + (max(len(column.rows) for column in columns) + 3) * ROW + 10
    rows = min(len(turn.omitted), MOST_OMITTED + 1)
    return page([*drawn, *draw_omitted(turn, messages, top)], top + (rows + 2) * ROW + 26)


def draw_columns(columns: list[Column]) -> list[str]:
    """Draw the parts side by side."""
    drawn: list[str] = []
    width = (WIDTH - 2 * MARGIN - 24) / 3
    height = (max(len(column.rows) for column in columns) + 3) * ROW
    for number, column in enumerate(columns):
        x, y = MARGIN + number * (width + 12), 108
        drawn.append(box(x, y, width, height, f'rx="4" fill="none" stroke="{column.colour}"'))
        drawn.append(box(x, y, width, 4, f'fill="{column.colour}"'))
        drawn.append(text(x + 10, y + 24, column.title, 'class="title"'))
        drawn.append(text(x + width - 10, y + 24, f"{column.tokens:,}", 'class="title end"'))
        drawn.append(text(x + 10, y + 24 + ROW, column.note, 'class="note"'))
        for at, row in enumerate(column.rows):
            drawn.append(text(x + 10, y + 24 + (at + 2) * ROW, row.name))
            if row.tokens is not None:
                drawn.append(text(x + width - 10, y + 24 + (at + 2) * ROW, f"{row.tokens:,}", 'class="end"'))
    return drawn


def draw_omitted(turn: Turn, messages: int, top: float) -> list[str]:
    """Draw what is not in the window: the range, the reason, the id that brings it back."""
    shown, more = turn.omitted[:MOST_OMITTED], turn.omitted[MOST_OMITTED:]
    height = (len(shown) + bool(more) + 2) * ROW
    drawn = [box(MARGIN, top, WIDTH - 2 * MARGIN, height, f'rx="4" fill="none" stroke="{RED}" stroke-dasharray="5 3"')]
    title = f"OMITTED, each with its reason; all {messages} messages remain in messages.jsonl"
    drawn.append(text(MARGIN + 10, top + 22, title, 'class="title"'))
    for at, omission in enumerate(shown):
        back = (
            f"recall {omission.swap}"
            if omission.swap
            else f"recall msg-{omission.item.partition(':')[2].partition('-')[0]}, …"
        )
        y = top + 22 + (at + 1) * ROW
        drawn.append(text(MARGIN + 10, y, omission.item.replace(":", " ").replace("-", " to ")))
        drawn.append(text(MARGIN + 190, y, " ".join(filter(None, (f"{omission.reason}:", omission.note)))))
        drawn.append(text(WIDTH - MARGIN - 10, y, back, 'class="end code"'))
    if more:
        drawn.append(text(MARGIN + 10, top + 22 + (len(shown) + 1) * ROW, f"and {len(more)} more, each with its id"))
    return drawn


def page(elements: list[str], height: float) -> str:
    """Return an SVG document."""
    style = (
        "text{font:13px system-ui,sans-serif;fill:#24292f}.head{font-size:17px;font-weight:600}"
        ".title{font-weight:600}.note{fill:#57606a;font-style:italic}.end{text-anchor:end}"
        ".code{font-family:ui-monospace,monospace;font-size:12px}"
    )
    frame = box(0.5, 0.5, WIDTH - 1, height - 1, 'rx="8" fill="#ffffff" stroke="#d0d7de"')
    size = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}"'
    body = "\n".join([f"<style>{style}</style>", frame, *elements])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>A packed window</title>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(*play()), encoding="utf-8")
    print(f"wrote {PICTURE}")
