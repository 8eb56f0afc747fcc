"""Sources of the prefix: identity, leading messages, pins, workspace files, switched blocks, records, children.

Each function returns items without a cost, and records of what was not available.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from daypack.derived.children import Child
from daypack.derived.names import list_names
from daypack.errors import DaypackError, UnsafePath
from daypack.files import atomic
from daypack.history.layout import DERIVED, Layout, check_name
from daypack.prompts import SHIPPED_PROMPTS
from daypack.turn.items import Item, Missing, Omission
from daypack.turn.pack.fence import QUOTED_SYSTEM
from daypack.types.authority import MADE_FROM_HISTORY, authority_of, is_quoted
from daypack.types.compaction import Compaction
from daypack.types.history import Message
from daypack.types.kinds import PackKind, context_kind_of
from daypack.types.names import one_line
from daypack.types.records import Decision, ErrorRecord, Fact

Found = Item | Omission | Missing

# Items that a compaction changes.
WORKING_ITEMS = frozenset(
    {"identity", "context_doc", "summary", "facts", "decisions", "todo", "errors", "refs", "names"}
)

# Name -> order in the prefix and priority. Each file is included whole or not at all.
WORKSPACE = {
    "AGENTS.md": (40, 0.78),
    "SOUL.md": (41, 0.74),
    "USER.md": (42, 0.76),
    "TOOLS.md": (43, 0.72),
    "MEMORY.md": (44, 0.7),
}
_MOST_BYTES = 1 << 20
WORKING_FILES = frozenset(DERIVED[name] for name in WORKING_ITEMS if name in DERIVED)
_OTHER_SWITCHES = ("identity", "protocol")  # switches without a block of their own
_COSTLY_MODELS = ("opus", "-pro", "ultra")
_INSIDE = ("model", "reviewer", "evidence_export")
_SHARED = ("model", "reviewer", "ui", "user", "peer_agent", "evidence_export")


def identity(model: str | None, workspace: str, layout: Layout) -> Iterator[Found]:
    """Return the identity: model, workspace, three rules, where memory is. The time is not part of it: it changes."""
    lines = [f"You run on {one_line(model)}."] if model else []
    if workspace:
        lines.append(f"Workspace: {one_line(workspace)}")
    lines.append("Be concise. Use tools. Never fabricate.")
    if os.path.exists(layout.derived("context_doc")):
        lines.append("Working memory: CONTEXT.md below.")
    if workspace and os.path.exists(os.path.join(workspace, "MEMORY.md")):
        lines.append("Long-term memory: MEMORY.md below.")
    if model and any(part in model.lower() for part in _COSTLY_MODELS):
        lines.append("You are costly: leave routine work to cheaper models.")
    yield Item(
        id="identity",
        kind="system",
        context_kind="system_prompt",
        source="daypack:identity",
        text="\n".join(lines),
        authority="system",
        placement="prefix",
        order=0,
        priority=0.8,
    )


def leading(messages: Sequence[Message]) -> Iterator[Found]:
    """Return the messages before the first user message: instructions, or a greeting. They never leave the window."""
    for message in messages:
        if message.role == "user":
            return
        if message.text and message.role in ("system", "assistant"):
            quoted = is_quoted(message)
            system = message.role == "system" and not quoted
            yield Item(
                id=f"messages:{message.seq}",
                kind="system" if system else "recent_messages",
                context_kind="system_prompt" if system else "session_history",
                source="messages.jsonl",
                range=str(message.seq),
                text=message.text,
                title="" if system else QUOTED_SYSTEM if quoted else "how the conversation began",
                authority=authority_of(message),
                visibility=_INSIDE if message.role == "system" else _SHARED,
                placement="prefix",
                order=10 if system else 89,
                priority=1.0 if system else 0.6,
            )
        else:
            yield Omission(
                item=f"messages:{message.seq}", reason="custom", note="no text, before the first user message"
            )


def pinned(pins: Mapping[str, str]) -> Iterator[Found]:
    """Return the pinned texts; system.md first and without a title, the others under their names."""
    for name, text in pins.items():
        if not text.strip():
            continue
        source = f"context/pinned/{name}"
        first = name == "system.md"
        yield Item(
            id=f"pin:{name}",
            kind="system",
            context_kind=context_kind_of("system", source=source),
            source=source,
            text=text,
            title="" if first else name,
            authority="system",
            placement="prefix",
            order=11 if first else 20,
            priority=1.0 if first else 0.99,
        )


def switched(switches: Mapping[str, bool], layout: Layout) -> Iterator[Found]:
    """Return the blocks whose switch is on: the user's own text, or the one that ships with daypack."""
    for name in sorted(name for name, on in switches.items() if on and name not in _OTHER_SWITCHES):
        question = f"What does the block {name} say? Its switch is on and it has no text."
        text, problem = block_text(name, layout)
        if text is None:
            question = f"{question} {problem}".strip()
            yield Missing(id=f"block:{name}", question=question, severity="high", requested=f"prompts/{name}.md")
        if not text or not text.strip():
            continue
        yield Item(
            id=f"block:{name}",
            kind="system",
            context_kind="developer_instruction",
            source=f"prompts:{name}.md",
            text=text.strip(),
            title=name,
            authority="system",
            placement="prefix",
            order=30,
            priority=0.9,
        )


def block_text(name: str, layout: Layout) -> tuple[str | None, str]:
    """Return the text of a block, the user's own if there is one, and the problem if it cannot be read."""
    text, problem = _text(os.path.join(layout.prompts, f"{check_name(name, 'switch')}.md"))
    if text is None and not problem:
        return _text(os.path.join(SHIPPED_PROMPTS, "blocks", f"{name}.md"))
    return text, problem


def workspace_files(folder: str) -> Iterator[Found]:
    """Return the workspace files that are written for agents, each whole."""
    if not folder:
        return
    inside = os.path.realpath(folder)
    for name in WORKSPACE:
        path = os.path.join(inside, name)
        real = os.path.realpath(path)
        identity = f"file:{name}"
        try:
            size = os.stat(real).st_size
            if os.path.commonpath((inside, real)) != inside:
                raise UnsafePath("the link points outside the workspace", operation="read", place=path)
            if size > _MOST_BYTES:
                yield Omission(item=identity, reason="too_large", note=f"{size:,} bytes", high_impact=True)
                yield _named(name, f"it has {size:,} bytes")
                continue
            text = (atomic.read(real) or b"").decode()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except UnicodeDecodeError:
            yield Omission(item=identity, reason="unsupported_media", note="not UTF-8 text")
            yield _named(name, "it is not UTF-8 text")
            continue
        except (OSError, DaypackError) as error:
            yield Omission(item=identity, reason="permission_missing", note=_reason(error), high_impact=True)
            yield Missing(
                id=identity, question=f"What does {name} say? It cannot be read.", severity="high", requested=path
            )
            yield _named(name, "it cannot be read")
            continue
        if not text.strip():
            continue
        yield _workspace_item(name, text.strip())


def _workspace_item(name: str, text: str) -> Item:
    order, priority = WORKSPACE[name]
    memory = name == "MEMORY.md"
    return Item(
        id=f"file:{name}",
        kind="memory_document" if memory else "system",
        context_kind="durable_memory" if memory else "developer_instruction",
        source=f"workspace:{name}",
        text=text,
        title=name,
        authority=MADE_FROM_HISTORY if memory else "user",
        placement="prefix",
        order=order,
        priority=priority,
    )


def _named(name: str, why: str) -> Item:
    """Return the line that names a workspace file whose text cannot be shown."""
    from daypack.turn.pack.shorter import line_for  # noqa: PLC0415 — rarely

    return line_for(_workspace_item(name, ""), why)


def working_state(layout: Layout, *, rendered: bool = False) -> Iterator[Found]:
    """Return CONTEXT.md and the records, of which the selection keeps one. `rendered`: CONTEXT.md has them all."""
    found = list(_file(layout, "context_doc", "CONTEXT.md", (70, 0.86)))
    yield from found
    if rendered and any(isinstance(thing, Item) for thing in found):
        return
    yield from _file(layout, "summary", "summary", (71, 0.85))
    yield from _lines(layout, "facts", (72, 0.84), Fact, lambda fact: fact.text)
    yield from _lines(layout, "decisions", (73, 0.84), Decision, lambda decision: decision.decision)
    yield from _file(layout, "todo", "open work", (74, 0.84))
    yield from _lines(layout, "errors", (75, 0.82), ErrorRecord, _error_line)


def names(compaction: Compaction, known: str, max_chars: int) -> Iterator[Found]:
    """Return the names of what has left the window, without those that a text contains."""
    listed = list_names(compaction.names, known, max_chars)
    if listed:
        yield Item(
            id="names",
            kind="refs",
            context_kind="artifact_ref",
            source=f"events:{compaction.id}",
            text=f"Spelled as in the messages they are from; search finds those:\n{listed}",
            title="names in earlier messages",
            authority=MADE_FROM_HISTORY,
            visibility=_INSIDE,
            placement="prefix",
            order=81,
            priority=0.45,
        )


def _error_line(record: ErrorRecord) -> str:
    return f"{record.error} — {record.resolution}" if record.resolution else record.error


def children(found: Sequence[Child]) -> Iterator[Found]:
    """Return the results and references of child agents, and a question for each without a result."""
    for child in found:
        folder = f"context/child/{child.name}"
        if child.result is None and child.status in ("error", "cancelled"):
            yield Omission(
                item=f"child_result:{child.name}", reason="custom", note=f"the child ended with status {child.status}"
            )
        elif child.result is None:
            question = f"What is the result of child {child.name}? It has none yet."
            yield Missing(id=f"child:{child.name}", question=question, requested=f"{folder}/result.md")
        else:
            yield _child_item(child, "child_result", f"{folder}/result.md", child.result.strip(), 85)
        lines = [one_line(f"- {ref.id} {ref.kind} {ref.path}: {ref.summary}") for ref in child.refs]
        lines += [one_line(f"- artifact {path}") for path in child.artifacts]
        if lines:
            yield _child_item(child, "child_refs", f"{folder}/refs.jsonl", "\n".join(lines), 86)


def _child_item(child: Child, kind: PackKind, source: str, text: str, order: int) -> Item:
    return Item(
        id=f"{kind}:{child.name}",
        kind=kind,
        context_kind=context_kind_of(kind),
        source=source,
        text=text,
        title=f"{'result' if kind == 'child_result' else 'references'} of child {child.name}",
        authority="agent" if kind == "child_result" else MADE_FROM_HISTORY,
        visibility=_SHARED,
        placement="prefix",
        order=order,
        priority=0.68,
    )


def _file(layout: Layout, kind: PackKind, title: str, place: tuple[int, float]) -> Iterator[Found]:
    text, problem = _text(layout.derived(kind))
    if problem:
        yield _unreadable(layout, kind, problem)
    if text and text.strip():
        yield derived_item(layout, kind, title, text.strip(), place)


def _lines(
    layout: Layout, kind: PackKind, place: tuple[int, float], shape: type[Any], words: Callable[[Any], str]
) -> Iterator[Found]:
    records, missing = read_records(layout, kind, shape)
    yield from missing
    if records:
        text = "\n".join(one_line(f"- {words(record)} [{record.id}, {record.source}]") for record in records)
        yield derived_item(layout, kind, kind, text, place)


def read_records(layout: Layout, name: str, shape: type[Any]) -> tuple[list[Any], list[Missing]]:
    """Read a derived file of records; a line that cannot be parsed becomes a question."""
    records: list[Any] = []
    missing: list[Missing] = []
    path = layout.derived(name)
    text, problem = _text(path)
    if problem:
        missing.append(_unreadable(layout, name, problem))
    for number, line in enumerate((text or "").split("\n"), 1):
        if line.strip():
            try:
                records.append(msgspec.json.decode(line, type=shape))
            except (msgspec.DecodeError, UnicodeError):
                question = f"What did line {number} of {os.path.basename(path)} say? It cannot be read."
                requested = os.path.relpath(path, layout.folder)
                missing.append(Missing(id=f"{name}:{number}", question=question, severity="low", requested=requested))
    return records, missing


def _unreadable(layout: Layout, name: str, problem: str) -> Missing:
    file = os.path.relpath(layout.derived(name), layout.folder)
    return Missing(id=name, question=f"What does {file} say? {problem}", severity="high", requested=file)


def derived_item(layout: Layout, kind: PackKind, title: str, text: str, place: tuple[int, float]) -> Item:
    """Return the item of a derived file; `place`: its order in the prefix and its priority."""
    return Item(
        id=kind,
        kind=kind,
        context_kind=context_kind_of(kind),
        source=os.path.relpath(layout.derived(kind), layout.folder),
        text=text,
        title=title,
        authority=MADE_FROM_HISTORY,
        visibility=_SHARED,
        placement="prefix",
        order=place[0],
        priority=place[1],
    )


def _text(path: str) -> tuple[str | None, str]:
    """Return the text of a file, None if there is none, and the problem if it cannot be read."""
    try:
        data = atomic.read(path)
    except DaypackError as error:
        return None, f"It cannot be read: {error.problem}."
    return (None if data is None else data.decode("utf-8", "replace")), ""


def _reason(error: Exception) -> str:
    return error.problem if isinstance(error, DaypackError) else str(getattr(error, "strerror", None) or error)


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = tuple(map(msgspec.json.Decoder, (Decision, ErrorRecord, Fact)))
