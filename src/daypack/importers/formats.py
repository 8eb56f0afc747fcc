"""The formats that can be imported: which files belong to one, and which transcripts a file holds."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

from daypack.errors import BadInput
from daypack.importers import claude_code, codex, codex_screen, openai_chat, swe_agent
from daypack.importers.children import child_session
from daypack.importers.detection import Sample, guess_format, read_lines, take_sample
from daypack.importers.transcript import (
    EXTRAS,
    Extras,
    Keep,
    Origin,
    RowReader,
    Transcript,
    object_of,
    parse_row,
    safe_name,
    text_of,
    unreadable,
)

# Sub-agents that Claude Code starts to sum up: their answer is the summary, which the session has already.
_COMPACTING = "acompact"


class Format(NamedTuple):
    """One format: how its files end, and the transcripts in one of them."""

    endings: tuple[str, ...]
    read: Callable[[Sample, str | None], Iterator[Transcript]]


def find_files(format: str, path: str) -> list[str]:  # noqa: A002 — it is the word of the command
    """Return the files below a folder that may be of a format, in order of name."""
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        own = format == claude_code.FORMAT and os.path.basename(folder) == "subagents"
        if own and os.path.isfile(f"{os.path.dirname(folder)}.jsonl"):
            continue  # its session brings them along
        found += [os.path.join(folder, name) for name in sorted(names) if name.endswith(FORMATS[format].endings)]
    return found


def is_of_format(format: str, path: str) -> bool:  # noqa: A002
    """Say whether a file is a transcript of a format."""
    try:
        return guess_format(take_sample(path)) == format
    except BadInput:
        return False


def read_transcripts(format: str, path: str, session: str | None = None) -> Iterator[Transcript]:  # noqa: A002
    """Yield the transcripts of one file; `session` is a name to use instead of the file's own."""
    sample = take_sample(path)
    guess = guess_format(sample)
    if guess != format:
        if guess:
            raise unreadable(path, f"is a transcript of {guess}, not of {format}", f"daypack import {guess} …")
        places = f"{FORMATS[format].endings[0]} files"
        raise unreadable(path, f"is no transcript of {format}", f"name one: {places} as {format} writes them")
    yield from FORMATS[format].read(sample, session)


def _claude_code(sample: Sample, session: str | None) -> Iterator[Transcript]:
    name, agent = claude_code.name_from(sample.path, sample.rows)
    parent = safe_name(session or name)
    yield _claude_transcript(sample, (name, agent), parent)
    beside = sample.path.removesuffix(".jsonl")
    if agent or not os.path.isdir(beside):
        return
    folder = os.path.join(beside, "subagents")
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if file.endswith(".jsonl") and os.path.getsize(os.path.join(folder, file)):
            child = take_sample(os.path.join(folder, file))
            ids = claude_code.name_from(child.path, child.rows)
            own = ids[1] or file.removesuffix(".jsonl").removeprefix("agent-")
            yield _claude_transcript(child, (name, own), parent)


def _claude_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    name, agent = ids
    source = f"{claude_code.FORMAT}:{name}/{agent}" if agent else f"{claude_code.FORMAT}:{name}"
    results = os.path.join(sample.path.removesuffix(".jsonl"), "tool-results")
    files = sorted(os.listdir(results)) if os.path.isdir(results) and not agent else []
    return Transcript(
        Origin(claude_code.FORMAT, sample.path, source, stable=True),
        child_session(parent, agent) if agent else parent,
        partial(read_lines, sample.path),
        partial(claude_code.ClaudeCode, agent=agent),
        claude_code.model_from(sample.rows),
        claude_code.cwd_from(sample.rows),
        (parent, safe_name(agent)) if agent and not agent.startswith(_COMPACTING) else None,
        tuple(path for file in files if os.path.isfile(path := os.path.join(results, file))),
    )


def _codex(sample: Sample, session: str | None) -> Iterator[Transcript]:
    rows = sample.rows
    on_screen = any(map(codex_screen.is_row, rows))
    told = codex_screen.name_from(rows) if on_screen else None
    name = told or codex.name_from(sample.path, rows)
    # The two files of one session tell the same: one must not be taken for the other.
    source = f"{codex.FORMAT}-screen:{name}" if on_screen else f"{codex.FORMAT}:{name}"
    origin = Origin(codex.FORMAT, sample.path, source)
    reader = partial(codex_screen.CodexScreen, origin) if on_screen else partial(codex.Codex, origin)
    model = codex_screen.model_from(rows) if on_screen else codex.model_from(rows)
    cwd = codex_screen.cwd_from(rows) if on_screen else codex.cwd_from(rows)
    yield Transcript(origin, safe_name(session or name), partial(read_lines, sample.path), reader, model, cwd)


def _openai(sample: Sample, session: str | None) -> Iterator[Transcript]:
    stem, name = _stem(sample.path), session or _stem(sample.path)
    # A file of lines may have only one so far: what its conversations are called must not change with the second.
    document = None if sample.rows and sample.path.endswith(".jsonl") else sample.document
    if openai_chat.is_conversation(document):
        yield from _conversation(sample.path, document, stem, name)
    elif isinstance(document, list):
        for number, one in enumerate(cast(list[object], document), 1):
            yield from _conversation(f"{sample.path}:{number}", one, f"{stem}:{number}", f"{name}-{number}")
    elif any(openai_chat.is_conversation(row.value) for row in sample.rows):
        for number, (raw, _) in enumerate(read_lines(sample.path), 1):
            if raw.strip():
                value = parse_row(number, raw).value
                yield from _conversation(
                    f"{sample.path}:{number}", raw if value is None else value, f"{stem}:{number}", f"{name}-{number}"
                )
    else:
        origin = Origin(openai_chat.FORMAT, sample.path, f"{openai_chat.FORMAT}:{stem}")
        lines = partial(read_lines, sample.path)
        yield Transcript(origin, safe_name(name), lines, partial(openai_chat.OpenAIChat, origin))


def _conversation(path: str, value: object, source: str, session: str) -> Iterator[Transcript]:
    """Yield one conversation of a file; what is none is kept in a session of its own."""
    origin = Origin(openai_chat.FORMAT, path, f"{openai_chat.FORMAT}:{source}")
    if openai_chat.is_conversation(value):
        lines = partial(_given, openai_chat.rows_of(value))
        model = text_of(object_of(value).get("model"))
        yield Transcript(origin, safe_name(session), lines, partial(openai_chat.OpenAIChat, origin), model)
    rest = [value] if isinstance(value, bytes) else openai_chat.extra_rows_of(value)
    if rest:
        yield _extras(origin, session, rest)


def _swe_agent(sample: Sample, session: str | None) -> Iterator[Transcript]:
    stem = _stem(sample.path)
    origin = Origin(swe_agent.FORMAT, sample.path, f"{swe_agent.FORMAT}:{stem}")
    lines = partial(_given, swe_agent.rows_of(sample.document))
    yield Transcript(origin, safe_name(session or stem), lines, partial(swe_agent.SweAgent, origin))
    if rest := swe_agent.extra_rows_of(sample.document):
        yield _extras(origin, session or stem, rest)


def _extras(origin: Origin, session: str, rows: list[bytes]) -> Transcript:
    """Return what stands beside a conversation: a source of its own, because the conversation may grow."""
    beside = Origin(origin.format, origin.path, f"{origin.source}{EXTRAS}", stable=True)
    return Transcript(beside, safe_name(session), partial(_given, rows), _keep_all)


def _keep_all(_: Keep) -> RowReader:
    return Extras()


def _given(rows: list[bytes]) -> Iterator[tuple[bytes, bool]]:
    return ((row, True) for row in rows)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


FORMATS = {
    claude_code.FORMAT: Format((".jsonl",), _claude_code),
    codex.FORMAT: Format((".jsonl", ".jsonl.zst"), _codex),
    openai_chat.FORMAT: Format((".jsonl", ".json"), _openai),
    swe_agent.FORMAT: Format((".traj",), _swe_agent),
}
