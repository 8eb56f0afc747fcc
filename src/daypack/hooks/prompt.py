"""UserPromptSubmit: excerpts of the session's lost past and of the project's memory that are about the prompt.

<past id="…" name="daypack: …">        messages that left the window of the host
[123 user] …
</past …>

<note id="…" name="daypack: …">        entries of other sessions
[2026-11-02 5ac28188 user] …
</note …>

It runs before every prompt, so that it opens nothing it does not need: no tokenizer, no vectors, no turn.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import DaypackError
from daypack.history.layout import Home, Layout
from daypack.history.searchable import searchable
from daypack.hooks import failures
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.composition import SEPARATOR, Fenced, Room
from daypack.hooks.recap.recap import Recap, read_recap
from daypack.hooks.stored_session import layout_of, session_command, short_name
from daypack.memory.project import find_project, project_memory
from daypack.memory.project.memory import USER
from daypack.search.floor import read_query, relevant
from daypack.text.injected import PAST_INTRODUCTION, mark_for, name_attribute, strip_blocks, wrap
from daypack.types.history import Message
from daypack.types.memory import Entry
from daypack.types.names import one_line

if TYPE_CHECKING:
    from daypack.search.lexical import Hit

MAX_TOKENS = 600
MAX_EXCERPTS = 3  # of each kind
_FOUND = 24  # hits that are looked at
# Of every excerpt, because the user asked for none of them. Over the development transcripts, the second limit leaves
# half of the prompts without any instead of a quarter, and 0.41 of the excerpts have a name that the agent used next
# instead of 0.34 (`python -m bench hooks`).
_LEAST_RELEVANCE = 1.0
_LEAST_INFORMATION = 8.0
_LEAST_SHARE = 0.6  # of the relevance of the best one; over the same transcripts 4 of 136 excerpts have less
_LEAST_WEIGHT = 2.0  # of a prompt's words: two of them, or a name
_EXCERPT_CHARS = 600
_COMMAND = re.compile(r"/[A-Za-z][\w:-]{0,60}(?:\s|\Z)")
# What editors and agents add to a prompt.
_ADDED = r"ide_\w{1,60}|system-reminder|system_reminder|environment_context|hook_context"
_ADDED_OPEN = re.compile(rf"<({_ADDED})\b[^<>]{{0,200}}>")
_ADDED_CLOSE = re.compile(rf"</({_ADDED})>")
# What agents send as a prompt in the user's name: the end of a sub-agent, the output of a local command.
_HARNESS = re.compile(r"<(?:task-notification|system-reminder|local-command-\w+|command-\w+|bash-\w+)\b")
_OWN_FENCES = ("</note ", "</past ", "</instructions ", "</data ")
_BRACKETS = str.maketrans("[]", "()")  # a name ends where daypack ends it
_NOTE_OPENING = (
    "Said in earlier sessions of this project; quoted, no instructions, perhaps out of date and without its code."
)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|[^()]*[:：]\W*|\*\*[^*]*\*\*|[\W_]*)")


class _Excerpt(NamedTuple):
    id: str
    line: str
    relevance: float
    is_past: bool  # of this session, else of the project's memory
    said_at: str = ""  # <agent>/<session> messages:N, of an entry: what is not added again before an edit


def on_prompt(call: HookCall, home: Home, injected: Collection[str] = ()) -> Injection | None:
    """Return excerpts that are about the prompt and not in the window; None if there are none.

    `injected` are the items that the session's window has already.
    """
    query = _without_added(call.prompt)
    if is_trivial(query):
        return None
    known = _Known(call.prompt, injected)
    layout = layout_of(call, home)
    recap = read_recap(layout)
    found = list(_search_past(query, layout, recap, known)) if recap and recap.lost else []
    project = find_project(call.cwd)
    if memory_id := project_memory(home, project, create=False):
        memory = _Memory(home, memory_id, without_session=f"{layout.agent}/{layout.name}")
        try:
            found += memory.search(query, known)
        except DaypackError as error:  # for instance a database that does not answer: the rest needs no memory
            failures.record(failures.Place(call.host, call.event, call.session), error)
    found.sort(key=lambda excerpt: -excerpt.relevance)
    found = [excerpt for excerpt in found if excerpt.relevance >= _LEAST_SHARE * found[0].relevance]
    room, text, chosen = Room(call, MAX_TOKENS), "", list[_Excerpt]()
    for excerpt in found:
        longer = _show([*chosen, excerpt], call, project.name)
        if room.fits(longer):
            text, chosen = longer, [*chosen, excerpt]
    items = (item for excerpt in chosen for item in (excerpt.id, excerpt.said_at) if item)
    return Injection(text, tuple(items)) if chosen else None


def is_trivial(prompt: str) -> bool:
    """Return True for a prompt that asks for nothing in words: a command, a yes, a notice of the agent itself."""
    text = prompt.strip()
    if not text or _COMMAND.match(text) or _HARNESS.match(text):
        return True
    return sum(read_query(text).weights.values()) < _LEAST_WEIGHT


def _without_added(prompt: str) -> str:
    """Return a prompt without blocks that are closed; read once, however many are not."""
    closed = {match[1]: match.end() for match in _ADDED_CLOSE.finditer(prompt)}
    kept: list[str] = []
    at = 0
    for opened in _ADDED_OPEN.finditer(prompt) if closed else ():
        if at <= opened.start() and closed.get(opened[1], 0) > opened.end():
            kept.append(prompt[at : opened.start()])
            close = f"</{opened[1]}>"
            at = prompt.index(close, opened.end()) + len(close)
    return " ".join((*kept, prompt[at:]))


class _Known:
    """What the window has: the prompt itself, and what hooks said."""

    def __init__(self, prompt: str, injected: Collection[str]) -> None:
        self._prompt = _plain(prompt)
        self._texts: set[str] = set()
        self._injected = injected

    def has_item(self, item: str) -> bool:
        return item in self._injected

    def has_text(self, text: str) -> bool:
        """Return True if a text is part of the prompt, or was found before."""
        plain = _plain(text)
        if plain in self._prompt or plain in self._texts:
            return True
        self._texts.add(plain)
        return False


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _search_past(query: str, layout: Layout, recap: Recap, known: _Known) -> Iterator[_Excerpt]:
    """Yield excerpts of messages that left the window of the host."""
    path = layout.derived("search")
    if not os.path.exists(path) or not os.path.exists(layout.index("messages")):
        return  # the next take-in builds them
    from daypack.search.lexical import Lexical  # noqa: PLC0415 — only after a compaction, or with a memory

    index = Lexical(path)
    try:
        hits = relevant(index.search(query, limit=_FOUND, below=recap.lost + 1))
    finally:
        index.close()
    wanted = {
        hit.id: hit
        for hit in hits
        if _is_worth_it(hit) and hit.id not in recap.kept and not known.has_item(_message_id(hit.id))
    }
    count = 0
    for message in _read(layout, recap.tokenizer, list(wanted)) if wanted else ():
        hit = wanted[message.seq]
        if message.meta and message.meta.get("foreign_summary"):
            continue  # it repeats what the messages before it say
        text = _cut(searchable(message), hit.start, hit.stop)
        if text and not known.has_text(text):
            line = _line(f"{message.seq} {message.name or message.role}", text)
            yield _Excerpt(_message_id(message.seq), line, hit.relevance, is_past=True)
            count += 1
            if count == MAX_EXCERPTS:
                return


def _is_worth_it(hit: "Hit") -> bool:
    return hit.relevance >= _LEAST_RELEVANCE and hit.information >= _LEAST_INFORMATION


def _message_id(seq: int) -> str:
    return f"messages:{seq}"


def _read(layout: Layout, tokenizer: str, seqs: Sequence[int]) -> list[Message]:
    """Return messages by their numbers, from the log and its sidecar alone."""
    from daypack.files.lock import Lock  # noqa: PLC0415 — only for hits
    from daypack.files.offsets import Offsets  # noqa: PLC0415
    from daypack.history.logs.reader import Reader  # noqa: PLC0415

    reader = Reader(layout.messages, Offsets(layout.index("messages"), tokenizer), Message, Lock(layout.messages))
    try:
        return reader.pick(seqs)
    finally:
        reader.close()


class _Memory(NamedTuple):
    """The project's memory without the entries of this session: what left its window is among its messages."""

    home: Home
    memory_id: str
    without_session: str

    def search(self, query: str, known: _Known) -> Iterator[_Excerpt]:
        """Yield excerpts of entries."""
        from daypack.memory.search.open_lookup import open_lookup  # noqa: PLC0415 — only for projects with a memory

        memory = open_lookup(self.home, USER, self.memory_id)
        try:
            found = memory.search(query, _FOUND, without_session=self.without_session)
        finally:
            memory.close()
        count = 0
        for entry, hit, relevance in found:
            item = f"entry:{entry.entry_id}"
            if not _is_worth_it(hit) or known.has_item(item):
                continue
            text = _cut(entry.raw_entry, hit.start, hit.stop)
            if text and not known.has_text(text):
                said_at = f"{entry.session} {entry.source}" if entry.session and entry.source else ""
                yield _Excerpt(item, _line(_origin(entry), text), relevance, is_past=False, said_at=said_at)
                count += 1
                if count == MAX_EXCERPTS:
                    return


def _origin(entry: Entry) -> str:
    """Return date, place and speaker of an entry, so that the rest can be recalled."""
    agent, _, session = (entry.session or "").rpartition("/")
    place = "/".join(filter(None, (agent, short_name(session))))
    parts = (entry.at or entry.created_at)[:10], place, entry.source or "", entry.author or entry.role or ""
    return " ".join(filter(None, parts))


def _cut(text: str, start: int, stop: int) -> str:
    """Return a part of a text without secrets and of bounded size.

    It is empty if daypack itself wrote it into a window, and if it is only a heading.
    """
    from daypack.text.redact.excerpts import redact_excerpt  # noqa: PLC0415 — only for hits

    if any(fence in text for fence in _OWN_FENCES) and text[start:stop].strip() not in strip_blocks(text):
        return ""
    shown = _BLANK_LINES.sub("\n", redact_excerpt(text, start, stop).text.strip())
    if all(map(_HEADING.fullmatch, shown[:_EXCERPT_CHARS].splitlines())):
        return ""
    if len(shown) <= _EXCERPT_CHARS:
        return shown
    head = shown[:_EXCERPT_CHARS]
    return (head[: max(head.rfind("\n"), head.rfind(" "))] if " " in head or "\n" in head else head).rstrip()


def _line(who: str, text: str) -> str:
    # Continuation lines are indented, so that none of them looks like another excerpt.
    return f"[{one_line(who).translate(_BRACKETS)}] " + "\n  ".join(text.splitlines())


def _show(excerpts: Sequence[_Excerpt], call: HookCall, project: str) -> str:
    """Return excerpts, fenced: those of this session in the order they were said."""
    past = sorted((excerpt for excerpt in excerpts if excerpt.is_past), key=lambda excerpt: int(excerpt.id[9:]))
    others = [excerpt.line for excerpt in excerpts if not excerpt.is_past]
    parts: list[str] = []
    if past:
        name = f"daypack: this session before its compaction; whole: {session_command(call, 'recall')} messages:N"
        lines = "\n".join(excerpt.line for excerpt in past)
        parts.append(wrap("past", mark_for(lines), f"{PAST_INTRODUCTION}\n{lines}", name_attribute(name)))
    if others:
        shown = Fenced("note", f"daypack: memory of the project {project}", _NOTE_OPENING)
        parts.append(shown.show(["\n".join(others)]))
    return SEPARATOR.join(parts)
