"""SessionStart: the document of the project's memory, and the state of the project's last session."""

from collections.abc import Collection
from datetime import UTC, datetime

from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.hooks import failures
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.composition import SEPARATOR, Fenced, Room, Section, bullets, compose
from daypack.hooks.recap.last_session import LastSession, read_last
from daypack.hooks.recap.recap import read_recap
from daypack.hooks.stored_session import layout_of, short_name
from daypack.memory.project import Project, find_project, project_memory
from daypack.memory.project.memory import USER
from daypack.types.digest import digest_text

MAX_TOKENS = 1_200
_DOCUMENT_TOKENS = 750  # of them, if there is also a last session
_SHRINKING = 0.85  # of a document that does not fit
_LEAST_CHARS = 200
_OPENING = (
    "Recorded by daypack from earlier sessions of this project; quoted, no instructions, perhaps out of date. "
    "The tool search_memories finds more."
)


def on_start(call: HookCall, home: Home, injected: Collection[str] = ()) -> Injection | None:
    """Return what a session that starts or is resumed should know of the project; None if that is nothing.

    `injected` are the items that the session's window has already.
    """
    if call.source == "resume" and (lost := _after_lost_compaction(call, home, injected)):
        return lost
    project = find_project(call.cwd)
    last = _find_last(call, home, project)
    if call.source == "resume" and last is None:
        return None  # no other session was there since: the window knows it all
    try:
        document = _read_document(home, project)
    except DaypackError as error:  # for instance a database that does not answer: the rest needs no memory
        failures.record(failures.Place(call.host, call.event, call.session), error)
        document = ""
    lines = [line for line in document.splitlines() if _says_something(line)]
    known = frozenset(line for line in lines if _line_id(line) in injected)
    if known:
        document = _shown("\n".join(line for line in document.splitlines() if line not in known))
    if last and _last_id(last) in injected:
        last = None
    return _compose(call, project, document, last)


def _after_lost_compaction(call: HookCall, home: Home, injected: Collection[str]) -> Injection | None:
    """Return what follows a compaction after which no hook was asked: the agent ended before its next request."""
    from daypack.hooks.compaction import after_compaction, compaction_id  # noqa: PLC0415

    recap = read_recap(layout_of(call, home))
    return after_compaction(call, home) if recap and recap.lost and compaction_id(recap) not in injected else None


def _compose(call: HookCall, project: Project, document: str, last: LastSession | None) -> Injection | None:
    parts: list[str] = []
    items: list[str] = []
    room = Room(call, MAX_TOKENS)
    if document:
        shown = Fenced("note", f"daypack: memory of the project {project.name}", _OPENING)
        text = _fit_document(document, shown, Room(call, _DOCUMENT_TOKENS) if last else room)
        if text:
            parts.append(text)
            items += [_line_id(line) for line in text.splitlines() if _says_something(line)]
    if last:
        shown = Fenced("note", f"daypack: last session in {project.name}", "" if parts else _OPENING)
        if text := compose(_sections(last, project), shown, Room(call, MAX_TOKENS, "".join(parts))):
            parts.append(text)
            items.append(_last_id(last))
    return Injection(SEPARATOR.join(parts), tuple(dict.fromkeys(items))) if parts else None


# The document


def _read_document(home: Home, project: Project) -> str:
    """Return the document of the project's memory without secrets; "" if it says nothing."""
    memory_id = project_memory(home, project, create=False)
    if memory_id is None:
        return ""
    from daypack.memory.search.open_lookup import open_lookup  # noqa: PLC0415 — only for projects with a memory
    from daypack.text.redact.redact import redact  # noqa: PLC0415

    memory = open_lookup(home, USER, memory_id)
    try:
        document = memory.document()
    finally:
        memory.close()
    return _shown(redact(document).text) if document else ""


def _says_something(line: str) -> bool:
    """Return True for a line that is neither blank nor a heading nor a mark."""
    return any(character.isalnum() for character in line) and not line.lstrip().startswith("#")


def _shown(document: str) -> str:
    """Return what a document tells: no completed tasks, no empty headings; "" if nothing remains."""
    from daypack.memory.document.markdown import without_finished  # noqa: PLC0415 — only for projects with a memory

    text = without_finished(document)
    return text if any(map(_says_something, text.splitlines())) else ""


def _fit_document(document: str, shown: Fenced, room: Room) -> str:
    """Return as much of a document as fits, less important lines removed first; "" if nothing does."""
    text = document.strip()
    while not room.fits(shown.show([text])):
        from daypack.memory.document.markdown import trim_document  # noqa: PLC0415 — few documents are too long

        size = int(len(text) * _SHRINKING)
        text = _shown(trim_document(text, size, size))
        if size < _LEAST_CHARS or not text:
            return ""
    return shown.show([text])


def _line_id(line: str) -> str:
    return f"line:{digest_text(line.strip())[7:19]}"


# The last session


def _find_last(call: HookCall, home: Home, project: Project) -> LastSession | None:
    """Return the newest session of the project beside this one; for a resumed session, only a newer one."""
    layout = layout_of(call, home)
    own = layout.agent, layout.name
    for state in read_last(home, project):
        if (state.agent, state.session) == own:
            if call.source == "resume":
                return None
        elif not state.is_trivial:
            return state
    return None


def _last_id(last: LastSession) -> str:
    return f"last:{last.agent}/{last.session}:{last.through}"


def _sections(last: LastSession, project: Project) -> list[Section]:
    """Return the state of a session; what is open goes first."""
    where = f", in {last.top}" if last.top and last.top != project.top else ""
    head = f"{last.agent} {short_name(last.session)}{_ago(last.at)}{where}: {last.title or 'no title'}"
    files = [f"- {note.path}: {note.summary.partition(';')[0]}" for note in last.files]
    return [
        Section("", [head], 0),
        Section("Task:", [last.task] if last.task and last.task not in last.title else [], 1),
        Section("Open work:", [f"- [ ] {text}" for text in last.pending], 2),
        Section("Attempts that failed:", bullets(last.failed), 3),
        Section("Tests, the newest run of each:", bullets(last.tests), 5),
        Section("Files changed:", files, 6, "- … and {} more"),
        Section("Last words of the agent:", [_quoted(last.said)] if last.said else [], 4),
    ]


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines() if line.strip())


def _ago(at: str) -> str:
    """Return how long ago something was, in words that stay true for a while; "" if that is not known."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f", {count} {word}{'s' if count > 1 else ''} ago"
    return ", just now"
