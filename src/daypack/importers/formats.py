"""The formats that can be imported: find their files and read the transcripts in a file."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

from daypack.errors import BadInput, ExtraMissing
from daypack.history.layout import safe_name
from daypack.history.sessions import DEFAULT_AGENT
from daypack.importers.format_detection import HEAD_LINES, Sample, detect_formats, read_sample
from daypack.importers.lines import FileLines, MemoryLines, unreadable
from daypack.importers.opencode_store import Store
from daypack.importers.readers import (
    claude_code,
    codex,
    codex_threads,
    codex_tui_log,
    copilot,
    gemini,
    gemini_files,
    openai_chat,
    opencode,
    qwen,
    swe_agent,
)
from daypack.importers.readers.codex_history.store import History, is_history
from daypack.importers.readers.openhands import conversation as openhands
from daypack.importers.readers.openhands.event_files import EventFiles
from daypack.importers.readers.openhands.reader import OpenHands
from daypack.importers.transcript import (
    EXTRA_ROWS,
    ExtraRows,
    Origin,
    RowReader,
    StoreBlob,
    Transcript,
    child_session_name,
    list_of,
    object_of,
    parse_row,
    text_of,
)

# Sub-agents that Claude Code starts for compaction: the session already contains their answer, the summary.
_COMPACTION_AGENT = "acompact"


class Format(NamedTuple):
    """A format: its file endings, the function that reads the transcripts of a file, and the agent that writes them."""

    endings: tuple[str, ...]
    read: Callable[[Sample, str | None], Iterator[Transcript]]
    agent: str


def find_files(format: str | None, path: str) -> list[str]:  # noqa: A002 — the word of the command
    """Return the files below a folder that may be of a format, or of any, sorted by name."""

    def refuse(error: OSError) -> None:
        if error.filename == path:  # folders below it that cannot be read are left out
            raise unreadable(path, error.strerror or str(error), "give a readable folder") from error

    endings = FORMATS[format].endings if format else ENDINGS
    files: list[str] = []
    for folder, folders, names in os.walk(path, onerror=refuse):
        folders.sort()
        files += [os.path.join(folder, name) for name in sorted(names) if name.endswith(endings)]
    return [file for file in files if not find_parent(file)]  # sub-agents are imported together with their session


def is_of_format(format: str | None, path: str) -> bool:  # noqa: A002
    """Return True if a file is a transcript of a format, or of any."""
    try:
        found = detect_formats(read_sample(path))
    except BadInput:
        return False
    except ExtraMissing:
        return True  # it may be: the import says what is missing
    return format in found if format else bool(found)


def read_transcripts(format: str | None, path: str, session: str | None = None) -> Iterator[Transcript]:  # noqa: A002
    """Yield the transcripts of one file and those of its sub-agents; `session` overrides the session's name."""
    for transcript in read_file(format, path, session):
        yield transcript
        yield from (read_sub_agent(transcript, sub_agent) for sub_agent in transcript.sub_agents)


def read_file(format: str | None, path: str, session: str | None = None) -> Iterator[Transcript]:  # noqa: A002
    """Yield the transcripts of one file of a format, or of the detected one."""
    sample = read_sample(path)
    detected = detect_formats(sample)
    if format is None:
        format = _only(detected, path)  # noqa: A001
    elif format not in detected:
        if detected:
            name = next(iter(detected))
            raise unreadable(path, f"is a transcript of {name}, not of {format}", f"daypack import {name} …")
        hint = f"give a {FORMATS[format].endings[0]} file written by {format}"
        raise unreadable(path, f"is not a transcript of {format}", hint)
    yield from FORMATS[format].read(sample, session)


def _only(detected: dict[str, int], path: str) -> str:
    """Return the format that was detected; refuse none and several."""
    if not detected:
        formats = ", ".join(f"{name} ({' or '.join(FORMATS[name].endings)})" for name in sorted(FORMATS))
        problem = f"unknown format: no row of a known format in the first {HEAD_LINES} lines"
        raise unreadable(path, problem, f"the formats are {formats}")
    if len(detected) > 1:
        counts = ", ".join(f"{count:,} of {name}" for name, count in detected.items())
        problem = f"ambiguous format: the first {HEAD_LINES} lines have rows of several formats ({counts})"
        raise unreadable(path, problem, f"name the format: daypack import {max(detected, key=detected.__getitem__)} …")
    return next(iter(detected))


def _claude_code(sample: Sample, session: str | None) -> Iterator[Transcript]:
    name, agent = claude_code.session_id(sample.path, sample.rows)
    transcript = _claude_transcript(sample, (name, agent), safe_name(session or name))
    beside = sample.path.removesuffix(".jsonl")
    if agent or not os.path.isdir(beside):
        yield transcript
        return
    results = os.path.join(beside, "tool-results")
    yield transcript._replace(
        files=tuple(path for path in _listed(results) if os.path.isfile(path)),
        sub_agents=tuple(_sub_agents(os.path.join(beside, "subagents"))),
    )


def read_sub_agent(parent: Transcript, path: str) -> Transcript:
    """Return the transcript of a sub-agent as a child of its parent's."""
    sample, program = read_sample(path), parent.origin.format
    read_ids, make = _WITH_SUB_AGENTS[program]
    agent = read_ids(path, sample.rows)[1] or os.path.basename(path).removesuffix(".jsonl").removeprefix("agent-")
    name = parent.origin.source.removeprefix(f"{program}:")
    return make(sample, (name, agent), parent.session)


def find_parent(path: str) -> str | None:
    """Return the transcript of the session that a sub-agent's transcript belongs to; None if there is none."""
    if main := openhands.main_file(path):
        return main
    folder = claude_code.session_folder(path)
    if folder is None:
        return gemini_files.main_file(path) or codex_threads.find_session(path)
    return next((main for main in (f"{folder}.jsonl", qwen.main_file(path)) if os.path.isfile(main)), None)


def _gemini(sample: Sample, session: str | None) -> Iterator[Transcript]:
    document = sample.document if gemini.is_document(sample.document) else None
    rows = gemini.rows_of(document) if document else []
    if rows:
        sample = sample._replace(rows=tuple(parse_row(*row) for row in enumerate(rows[:HEAD_LINES], 1)))
    elif not gemini.is_begun(sample.rows) and len(sample.rows) < HEAD_LINES:
        return
    name, agent = gemini_files.session_id(sample.path, sample.rows)
    transcript = _gemini_transcript(sample, (name, agent), safe_name(session or name))
    if rows:
        transcript = transcript._replace(lines=MemoryLines(rows))
    folder = gemini_files.sub_agents_folder(sample.path, name)
    yield transcript._replace(sub_agents=() if agent else tuple(_sub_agents(folder)))
    if extra := gemini.extra_rows_of(document):
        yield _extra_rows(transcript.origin, transcript.session, extra)


def _gemini_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    cwd = gemini_files.find_cwd(sample.path, ids[1], sample.rows)
    found = _transcript(gemini.FORMAT, sample, ids, parent, gemini.Gemini)
    return found._replace(model=gemini.first_model(sample.rows), cwd=cwd)


def _qwen(sample: Sample, session: str | None) -> Iterator[Transcript]:
    name, agent = qwen.session_id(sample.path, sample.rows)
    transcript = _qwen_transcript(sample, (name, agent), safe_name(session or name))
    agents = () if agent else tuple(_sub_agents(qwen.sub_agents_folder(sample.path)))
    yield transcript._replace(sub_agents=agents)


def _qwen_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    found = _transcript(qwen.FORMAT, sample, ids, parent, qwen.Qwen)
    return found._replace(model=qwen.first_model(sample.rows), cwd=qwen.first_cwd(sample.rows))


def _copilot(sample: Sample, session: str | None) -> Iterator[Transcript]:
    name = copilot.session_id(sample.path, sample.rows)
    origin = Origin(copilot.FORMAT, sample.path, f"{copilot.FORMAT}:{name}", has_row_ids=True)
    model, cwd = copilot.first_model(sample.rows), copilot.first_cwd(sample.rows)
    yield Transcript(origin, safe_name(session or name), FileLines(sample.path), copilot.Copilot, model, cwd)


def _claude_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    found = _transcript(claude_code.FORMAT, sample, ids, parent, claude_code.ClaudeCode)
    return found._replace(
        model=claude_code.first_model(sample.rows),
        cwd=claude_code.first_cwd(sample.rows),
        parent=None if ids[1].startswith(_COMPACTION_AGENT) else found.parent,
    )


def _transcript(
    format: str,  # noqa: A002 — the word of the command
    sample: Sample,
    ids: tuple[str, str],
    parent: str,
    reader: Callable[..., RowReader],
) -> Transcript:
    """Return the transcript of a session, or of a sub-agent as a child of its parent; its rows have ids."""
    name, agent = ids
    source = f"{format}:{name}/{agent}" if agent else f"{format}:{name}"
    return Transcript(
        Origin(format, sample.path, source, has_row_ids=True),
        child_session_name(parent, agent) if agent else parent,
        FileLines(sample.path),
        partial(reader, agent=agent),
        parent=(parent, safe_name(agent)) if agent else None,
    )


def _listed(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def _sub_agents(folder: str) -> Iterator[str]:
    """Yield the transcripts below a folder that are not empty, in order of their paths."""
    for path in _listed(folder):
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _sub_agents(path)
        elif path.endswith(".jsonl") and os.path.isfile(path) and os.path.getsize(path):
            yield path


def _codex(sample: Sample, session: str | None) -> Iterator[Transcript]:
    if is_history(sample.path):
        yield from _codex_history(History(sample.path), session)
        return
    rows = sample.rows
    is_tui_log = any(map(codex_tui_log.is_row, rows))
    if not is_tui_log:
        name, agent = codex.session_id(sample.path, rows)
        transcript = _codex_transcript(sample, (name, agent), safe_name(session or name))
        agents = () if agent else tuple(codex_threads.find_sub_agents(sample.path, name))
        yield transcript._replace(sub_agents=agents)
        return
    name = codex_tui_log.session_id(rows) or codex.session_id(sample.path, rows)[0]
    # The rollout and the TUI log of a session contain the same messages: they need different sources.
    origin = Origin(codex.FORMAT, sample.path, f"{codex.FORMAT}-tui-log:{name}")
    model, cwd = codex_tui_log.first_model(rows), codex_tui_log.first_cwd(rows)
    reader = partial(codex_tui_log.CodexTuiLog, origin)
    yield Transcript(origin, safe_name(session or name), FileLines(sample.path), reader, model, cwd)


def _codex_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    name, agent = ids
    source = f"{codex.FORMAT}:{name}/{agent}" if agent else f"{codex.FORMAT}:{name}"
    origin = Origin(codex.FORMAT, sample.path, source)
    return Transcript(
        origin,
        child_session_name(parent, agent) if agent else parent,
        FileLines(sample.path),
        partial(codex.Codex, origin, agent=agent),
        codex.first_model(sample.rows),
        codex.first_cwd(sample.rows),
        (parent, safe_name(agent)) if agent else None,
    )


def _codex_history(history: History, session: str | None) -> Iterator[Transcript]:
    """Yield the threads without a rollout; `session` names the only one."""
    threads = history.threads()
    if session and sum(not thread.parent for thread in threads) > 1:
        problem = f"has {len(threads):,} threads whose rollouts are gone, and --session names one"
        raise unreadable(history.path, problem, "omit --session")
    for thread in threads:
        above = safe_name(session or thread.parent) if thread.parent else ""
        source = f"{thread.parent}/{thread.id}" if above else thread.id
        origin = Origin(codex.FORMAT, history.path, f"{codex.FORMAT}-history:{source}")
        yield Transcript(
            origin,
            child_session_name(above, thread.id) if above else safe_name(session or thread.id),
            MemoryLines(history.rows(thread.id)),
            partial(codex.Codex, origin, agent=thread.id if above else ""),
            thread.model or None,
            thread.cwd or history.first_cwd(thread.id),
            (above, safe_name(thread.id)) if above else None,
            note=history.note,
        )


def _openai(sample: Sample, session: str | None) -> Iterator[Transcript]:
    stem, name = _stem(sample.path), session or _stem(sample.path)
    # A JSONL file may have only one line so far: the names of its conversations must not change with the second.
    document = None if sample.rows and sample.path.endswith(".jsonl") else sample.document
    if openai_chat.is_conversation(document):
        yield from _conversation(sample.path, document, stem, name)
    elif isinstance(document, list):
        for number, conversation in enumerate(cast(list[object], document), 1):
            yield from _conversation(f"{sample.path}:{number}", conversation, f"{stem}:{number}", f"{name}-{number}")
    elif any(openai_chat.is_conversation(row.value) for row in sample.rows):
        for number, line in enumerate(FileLines(sample.path).read(), 1):
            if line.raw.strip():
                value = parse_row(number, line.raw).value
                yield from _conversation(
                    f"{sample.path}:{number}",
                    line.raw if value is None else value,
                    f"{stem}:{number}",
                    f"{name}-{number}",
                )
    else:
        origin = Origin(openai_chat.FORMAT, sample.path, f"{openai_chat.FORMAT}:{stem}")
        lines = FileLines(sample.path)
        yield Transcript(origin, safe_name(name), lines, partial(openai_chat.OpenAIChat, origin))


def _conversation(path: str, value: object, source: str, session: str) -> Iterator[Transcript]:
    """Yield one conversation of a file and its extra rows; a value that is not a conversation has only extra rows."""
    origin = Origin(openai_chat.FORMAT, path, f"{openai_chat.FORMAT}:{source}")
    if openai_chat.is_conversation(value):
        lines = MemoryLines(openai_chat.rows_of(value))
        model = text_of(object_of(value).get("model"))
        yield Transcript(origin, safe_name(session), lines, partial(openai_chat.OpenAIChat, origin), model)
    extra = [value] if isinstance(value, bytes) else openai_chat.extra_rows_of(value)
    if extra:
        yield _extra_rows(origin, session, extra)


def _swe_agent(sample: Sample, session: str | None) -> Iterator[Transcript]:
    """Yield a run, in a session of its own: files of runs are named after the instance, which may be run many times."""
    stem = _stem(sample.path)
    origin = Origin(swe_agent.FORMAT, sample.path, f"{swe_agent.FORMAT}:{stem}")
    lines = MemoryLines(swe_agent.rows_of(sample.document))
    run = swe_agent.run_id(sample.document)
    name, earlier = session or (f"{stem}-{run}" if run else stem), "" if session else safe_name(stem)
    yield Transcript(origin, safe_name(name), lines, partial(swe_agent.SweAgent, origin), earlier_session=earlier)
    if extra := swe_agent.extra_rows_of(sample.document):
        yield _extra_rows(origin, name, extra)


def _openhands(sample: Sample, session: str | None) -> Iterator[Transcript]:
    events = list_of(sample.document)
    if events:
        name = _stem(sample.path)
        lines_of = {text_of(object_of(event).get("id")): number for number, event in enumerate(events, 1)}
        yield Transcript(
            Origin(openhands.FORMAT, sample.path, f"{openhands.FORMAT}:{name}", has_row_ids=True),
            safe_name(session or name),
            MemoryLines(openhands.rows_of(events)),
            partial(OpenHands, conversation=name, line_of=lambda event: lines_of.get(event, 0)),
        )
        return
    name, agent = openhands.session_ids(sample.path, sample.rows)
    transcript = _openhands_transcript(sample, (name, agent), safe_name(session or name))
    yield transcript._replace(sub_agents=() if agent else tuple(openhands.find_sub_agents(sample.path)))


def _openhands_transcript(sample: Sample, ids: tuple[str, str], parent: str) -> Transcript:
    name, agent = ids
    source = f"{openhands.FORMAT}:{name}/{agent}" if agent else f"{openhands.FORMAT}:{name}"
    events = EventFiles(openhands.events_folder(sample.path))
    return Transcript(
        Origin(openhands.FORMAT, sample.path, source, has_row_ids=True),
        child_session_name(parent, agent) if agent else parent,
        events,
        partial(OpenHands, conversation=name, line_of=events.line_of),
        openhands.model_of(sample.document),
        openhands.cwd_of(sample.document),
        (parent, safe_name(agent)) if agent else None,
    )


def _opencode(sample: Sample, session: str | None) -> Iterator[Transcript]:
    """Yield the sessions of a store of opencode, parents before children; `session` names the only one."""
    store = Store(sample.path)
    for stored in store.sessions(session):
        rows = store.rows(stored.id)
        yield Transcript(
            Origin(opencode.FORMAT, store.path, f"{opencode.FORMAT}:{stored.id}", has_row_ids=True),
            stored.name,
            MemoryLines(rows),
            partial(opencode.OpenCode, agent=stored.id if stored.above else ""),
            opencode.first_model(rows),
            stored.cwd or None,
            (stored.above, safe_name(stored.id)) if stored.above else None,
        )


def _extra_rows(origin: Origin, session: str, rows: list[bytes]) -> Transcript:
    """Return the rows beside a conversation as a transcript with its own source: the conversation may grow."""
    extra = Origin(origin.format, origin.path, f"{origin.source}{EXTRA_ROWS}", has_row_ids=True)
    return Transcript(extra, safe_name(session), MemoryLines(rows), _extra_row_reader)


def _extra_row_reader(_: StoreBlob) -> RowReader:
    return ExtraRows()


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


FORMATS = {
    claude_code.FORMAT: Format((".jsonl",), _claude_code, "claude-code"),
    codex.FORMAT: Format((".jsonl", ".jsonl.zst"), _codex, "codex"),
    openai_chat.FORMAT: Format((".jsonl", ".json"), _openai, DEFAULT_AGENT),
    copilot.FORMAT: Format((".jsonl",), _copilot, "copilot"),
    gemini.FORMAT: Format((".jsonl", ".json"), _gemini, "gemini"),
    opencode.FORMAT: Format((".db", ".json"), _opencode, "opencode"),
    qwen.FORMAT: Format((".jsonl",), _qwen, "qwen"),
    swe_agent.FORMAT: Format((".traj",), _swe_agent, "swe-agent"),
    openhands.FORMAT: Format((".json",), _openhands, "openhands"),
}
# Formats with files of sub-agents: how their ids are read, and a transcript is made.
_WITH_SUB_AGENTS = {
    claude_code.FORMAT: (claude_code.session_id, _claude_transcript),
    codex.FORMAT: (codex.session_id, _codex_transcript),
    gemini.FORMAT: (gemini_files.session_id, _gemini_transcript),
    openhands.FORMAT: (openhands.session_ids, _openhands_transcript),
    qwen.FORMAT: (qwen.session_id, _qwen_transcript),
}
ENDINGS = tuple(sorted({ending for each in FORMATS.values() for ending in each.endings}))
