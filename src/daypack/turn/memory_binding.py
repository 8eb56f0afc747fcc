"""The binding of a session to a memory: turns search the memory, and `capture` stores messages in it.

meta.json   "memory": {"memory_id": "…", "user": "local", "url": null, "captured_through": 12}
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from daypack.derived.raw_history import repeats_history
from daypack.errors import AccessDenied, BadInput, DaypackError, MemoryMissing, ServerFailed
from daypack.files.blobs import name_of
from daypack.history.draft import draft_event
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.postgres.address import is_address, shown
from daypack.text.injected import strip_injected
from daypack.text.redact.redact import redact_message
from daypack.turn.evidence.shown_texts import ShownTexts
from daypack.turn.ledger import BOUND
from daypack.types.authority import users_part, writer_of
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.history import Message
from daypack.types.memory import Added, Hit, Remembered
from daypack.types.names import is_visible, one_line

if TYPE_CHECKING:
    from daypack.memory.answers import Answer
    from daypack.memory.keeper import Keeper
    from daypack.memory.port import MemoryTools

CLOSING_SECONDS = 5.0  # for the document on a server or in a database; without it, the next capture writes it
_MAX_HIT_CHARS = 1_500  # of a longer entry the summary is shown
_AUTHOR_CHARS = 256  # as a memory allows
_OVERSAMPLING = 3  # request this many times more hits, because those of this session are skipped


class Binding(Struct, frozen=True):
    """The memory a session is bound to, and the last message that was captured."""

    memory_id: str
    user: str = "local"
    url: str | None = None
    captured_through: int = 0


_OpenTools = Callable[[Binding], "MemoryTools"]
Words = Callable[[Message], str]  # what of a message is worth an entry; empty: nothing


def open_tools(home: Home, binding: Binding) -> "MemoryTools":
    """Open the memories of a binding; the address in it is from a file, so that not every token is sent there."""
    if binding.url is not None and is_address(binding.url):
        hint = "set DAYPACK_STORE_URL, or url in the table [store] of config.toml; then bind it without an address"
        problem = "a session is not bound by the address of a database, which may have a password"
        raise BadInput(problem, operation="bind memory", place=shown(binding.url), hint=hint)
    if binding.url is not None:
        from daypack.memory.remote import RemoteMemories  # noqa: PLC0415 — HTTP costs 30 ms

        return RemoteMemories(binding.url, user=binding.user, named=False)
    from daypack.memory.tools import open_memory  # noqa: PLC0415

    url = home.database.url if home.database is not None else None
    return open_memory(home=home.root, uid=home.uid, user=binding.user, url=url)


convert({"memory_id": ""}, Binding)  # here, by one thread: the first conversion to a type is not safe by several


def read_binding(meta: dict[str, Any]) -> Binding | None:
    """Return the binding in meta.json; None if the session is not bound."""
    try:
        return convert(meta["memory"], Binding) if meta.get("memory") else None
    except ValidationError as error:
        hint = "bind the session again with `daypack memory bind`"
        raise BadInput(str(error), operation="read binding", place='"memory" in meta.json', hint=hint) from error


def write_binding(history: History, binding: Binding | None) -> None:
    """Bind a session to a memory, or unbind it with None; the change is recorded as an event."""
    value = to_builtins(binding) if binding else None

    def record() -> None:
        history.append_event(draft_event(BOUND, {"memory": value}))
        history.facets.write_meta({"memory": value})

    history.locked(record)


class Bound:
    """The memory of a session: turns read it, and `capture` adds the session's messages to it."""

    def __init__(self, history: History, name: str, open_tools: _OpenTools) -> None:
        self._history = history
        self._name = name  # of the session; stored with each entry
        self._open_tools = open_tools
        self._shown = ShownTexts(history)
        self._tools: MemoryTools | None = None
        self._keeper: Keeper | None = None
        self.revision = 0  # of the memory, as far as this session changed it

    @property
    def binding(self) -> Binding:
        """The current binding in meta.json."""
        binding = read_binding(self._history.facets.meta())
        if binding is None:
            hint = "`daypack memory bind SESSION MEMORY`, or session.bind_memory(memory_id)"
            problem = "the session is not bound to a memory"
            raise MemoryMissing(problem, operation="open memory", place=self._name, hint=hint)
        return binding

    @property
    def memory_id(self) -> str:
        """The id of the memory."""
        return self.binding.memory_id

    @property
    def remote(self) -> bool:
        """True if it waits for a network."""
        return self._opened().remote

    @property
    def place(self) -> str:
        """The address of the server; empty for a memory in files."""
        return self._opened().place

    def document(self) -> str | None:
        """Return the memory's document; None while it is the placeholder of a new memory."""
        return self.ask("", 0).document

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        """Return relevant entries of other sessions; this session's own past is searched in its history."""
        return self.ask(query, limit).hits

    def ask(self, query: str, limit: int, deadline: Deadline = NO_DEADLINE) -> "Answer":
        """Return the document and the relevant entries of other sessions, in one round; no query: the document."""
        from daypack.memory.answers import Answer, problem_of  # noqa: PLC0415 — only for sessions with a memory
        from daypack.search.floor import relevant  # noqa: PLC0415

        memory, opened = self.binding.memory_id, self._opened()
        tools = opened.within(deadline)
        try:
            if not query:
                return Answer(_document(tools, memory))
            try:
                found = tools.search_memories(memory, query, top_k=min(100, _OVERSAMPLING * limit))
            except (MemoryMissing, AccessDenied, ServerFailed):
                raise
            except DaypackError as error:  # the index cannot be used, or the query is too long
                return Answer(_document(tools, memory), problems=(problem_of(error),))
        finally:
            if self._tools is not opened:
                opened.close()  # closed while a thread asked
        # The floor again: what made the answer relevant may have been said in this session.
        others = relevant([hit for hit in found.entries if hit.session != self._name])
        hits = (
            Remembered(id=hit.entry_id, text=_hit_text(hit), score=hit.score, when=hit.at or hit.created_at)
            for hit in others[:limit]
        )
        return Answer(found.latest_context or None, tuple(hits))

    def capture(self, *, end: bool = False, words: Words | None = None) -> tuple[Added, ...]:
        """Add the messages since the last capture, each once; with `end` also update the document.

        `words` chooses what of a message is stored. Only raw messages are stored, not what daypack put into a window:
        neither recalled text nor fenced blocks. A message with <END_SESSION> updates the document too; what follows it
        is another conversation.
        """
        binding = self.binding
        self.revision += 1
        keeper = self._open_keeper(binding)
        added: list[Added] = []
        last = binding.captured_through
        for message in self._uncaptured(binding):
            last = message.seq
            text = message.text if words is None else words(self._without_injected(message))
            if not text:
                continue
            keeper = self._open_keeper(binding)
            answer = keeper.observe(
                message.role,
                text,
                author=_author(message),
                at=message.ts,
                session=self._name,
                source=f"messages:{message.seq}",
                client_key=_key(self._name, message),
                shared=_uuid(message) is not None,
            )
            if answer is not None:
                added.append(answer)
            if keeper.unreachable:
                break  # every further message would wait as long; they are captured the next time
        try:
            if end:
                self._keeper = None
                keeper.finish()
        finally:
            # Entries that could not be stored are captured again next time; the client key prevents duplicates.
            missed = (entry.about.source for entry in keeper.remaining if entry.about.source and not entry.refused)
            last = min([last, *(int(source.partition(":")[2]) - 1 for source in missed)])
            if last != binding.captured_through:
                self._save_progress(binding, last)
        return tuple(added)

    @property
    def has_changes(self) -> bool:
        """True if a capture left something to write: a changed document, or entries that could not be stored."""
        return self._keeper is not None and (self._keeper.is_changed or bool(self._keeper.remaining))

    def _without_injected(self, message: Message) -> Message:
        """Return a message without what daypack added to it, as one text."""
        return replace(message, content=strip_injected(message.text, self._shown.has))

    def _save_progress(self, binding: Binding, captured: int) -> None:
        """Store the last captured message, unless the binding changed or another process stored a later one."""
        self._history.refresh()
        progress = {"memory": to_builtins(replace(binding, captured_through=captured))}
        with self._history.lock:
            self._history.facets.write_meta(progress, only_if=lambda meta: read_binding(meta) == binding)

    def _uncaptured(self, binding: Binding) -> Iterator[Message]:
        # Redact secrets before text leaves this machine.
        clearing = binding.url is not None and self._history.config.redaction == "on"
        for message in self._history.messages.records(binding.captured_through + 1):
            said = _said(message)
            if said and said.text and not repeats_history(message):
                yield redact_message(said)[0] if clearing else said

    def _open_keeper(self, binding: Binding) -> "Keeper":
        if self._keeper is None or self._keeper.finished:
            from daypack.memory.keeper import Keeper  # noqa: PLC0415

            tools = self._opened()
            keeper = Keeper(tools, binding.memory_id, flush_every=tools.flush_every)
            keeper.prompts_folder = self._history.layout.prompts
            keeper.was_shown = self._shown.has
            keeper.start()
            self._keeper = keeper
        return self._keeper

    def _opened(self) -> "MemoryTools":
        if self._tools is None:
            self._tools = self._open_tools(self.binding)
        return self._tools

    def close(self, *, in_turn: bool = False, writing: bool = True) -> None:
        """Update the document if something was captured, and close the memory.

        A server has a few seconds for that; a turn does not wait for it at all. Without `writing` the document is left
        to a later capture.
        """
        try:
            waiting = in_turn and self._tools is not None and self._tools.remote
            if self._keeper is not None and writing and not waiting:
                self._keeper.wait_until(Deadline.after(CLOSING_SECONDS))
                self._keeper.finish()
        finally:
            self._keeper = None
            tools, self._tools = self._tools, None
            if tools is not None:
                tools.close()


def _said(message: Message) -> Message | None:
    """Return what the user or the assistant wrote of a message; None if another program wrote all of it."""
    if message.role == "user":
        return users_part(message)
    return message if message.role == "assistant" and writer_of(message) is None else None


def _document(tools: "MemoryTools", memory_id: str) -> str | None:
    from daypack.memory.document.document import is_placeholder  # noqa: PLC0415 — only for sessions with a memory

    content = tools.get_context(memory_id).content
    return None if is_placeholder(content) else content


def _hit_text(hit: Hit) -> str:
    text = hit.raw_entry if len(hit.raw_entry) <= _MAX_HIT_CHARS else hit.summary
    who = one_line(hit.author or hit.role or "")
    marked = f"{text} (superseded by {hit.superseded_by})" if hit.superseded_by else text
    return f"{who}: {marked}" if who else marked


def _author(message: Message) -> str | None:
    """Return the name of a message as an entry has it: on one line; None if there is nothing to see."""
    return one_line(message.name)[:_AUTHOR_CHARS] if message.name and is_visible(message.name) else None


def _key(name: str, message: Message) -> str:
    """Return a client key for this text at this place; it differs in another session of the same name.

    A message that an agent identifies has the same key in all of its sessions: a session that was forked repeats it.
    """
    uuid = _uuid(message)
    place = f"{name}#{message.seq}" if uuid is None else f"{name.partition('/')[0]}/{uuid}"
    return f"{place}:{name_of(message.text.encode('utf-8', 'replace'))[7:19]}"


def _uuid(message: Message) -> str | None:
    """Return the id that an agent gave a message in its transcript."""
    uuid = (message.meta or {}).get("uuid")
    return uuid if isinstance(uuid, str) and uuid else None
