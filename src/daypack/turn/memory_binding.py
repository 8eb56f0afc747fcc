"""A session bound to a memory: its turns see the document and what a question finds; what was said can be captured.

meta.json   "memory": {"memory_id": "…", "user": "local", "url": null, "captured": 12}
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from daypack.derived.raw_history import is_brought_back
from daypack.errors import BadInput, MemoryMissing
from daypack.files.blobs import name_of
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.text.redact.messages import clear
from daypack.types.history import Message
from daypack.types.memory import Added, Entry, Hit, Remembered

if TYPE_CHECKING:
    from daypack.memory.keeper import Keeper
    from daypack.memory.port import MemoryTools

_CAPTURED_ROLES = ("user", "assistant")
_SHOWN_CHARS = 1_500  # of an entry among the hits; of a longer one its summary is shown
_MERELY_CLOSE = 3  # hits without a word of the question
_OWN_SHARE = 3  # times as many hits are asked for, because those of this session are passed over


class Binding(Struct, frozen=True):
    """Which memory a session is bound to, and up to which message it was captured."""

    memory_id: str
    user: str = "local"
    url: str | None = None
    captured: int = 0


_OpenTools = Callable[[Binding], "MemoryTools"]
convert({"memory_id": ""}, Binding)  # here, by one thread: the first conversion to a type is not safe by several


def read_binding(meta: dict[str, Any]) -> Binding | None:
    """Return what meta.json says; None for a session that is bound to nothing."""
    try:
        return convert(meta["memory"], Binding) if meta.get("memory") else None
    except ValidationError as error:
        hint = "`daypack memory bind` writes it anew"
        raise BadInput(str(error), operation="read binding", place='"memory" in meta.json', hint=hint) from error


def write_binding(history: History, binding: Binding | None) -> None:
    """Bind a session, or let go of its memory; the change stands in its events too."""
    told = to_builtins(binding) if binding else None
    with history.lock:
        history.append_event(draft_event("memory.bound", {"memory": told}))
        history.facets.write_meta({"memory": told})


class Bound:
    """The port of a turn to the memory of its session, and the way from the session into the memory."""

    def __init__(self, history: History, name: str, open_tools: _OpenTools) -> None:
        self._history = history
        self._name = name  # of the session, as entries tell where they are from
        self._open_tools = open_tools
        self._tools: MemoryTools | None = None
        self._keeper: Keeper | None = None

    @property
    def binding(self) -> Binding:
        """What meta.json says now."""
        binding = read_binding(self._history.facets.meta())
        if binding is None:
            hint = "`daypack memory bind SESSION MEMORY`, or session.bind_memory(memory_id)"
            raise MemoryMissing("the session is bound to none", operation="open memory", place=self._name, hint=hint)
        return binding

    def document(self) -> str | None:
        """Return the memory's document; None while there is only what stands in a new memory."""
        from daypack.memory.document.document import is_placeholder  # noqa: PLC0415 — only for sessions with a memory

        content = self._opened().get_context(self.binding.memory_id).content
        return None if is_placeholder(content) else content

    def search(self, query: str, limit: int) -> list[Remembered]:
        """Return what other sessions said; the past of this one is searched in its own history."""
        asked = min(100, _OWN_SHARE * limit)
        found = self._opened().search_memories(self.binding.memory_id, query, top_k=asked, explain=True)
        others = [hit for hit in found.entries if hit.session != self._name]
        # Something is always the closest in meaning: of what shares no word with the question, only a few are shown.
        merely_close = [hit for hit in others if not _shares_words(hit)][_MERELY_CLOSE:]
        return [
            Remembered(id=hit.entry_id, text=_shown(hit), score=hit.score, when=hit.at or hit.created_at)
            for hit in [hit for hit in others if hit not in merely_close][:limit]
        ]

    def capture(self, *, end: bool = False) -> tuple[Added, ...]:
        """Add what was said since the last time, each message once; with `end` also write the document.

        Raw messages go in, nothing that daypack put into a window: neither recalled text nor fenced blocks.
        """
        binding = self.binding
        keeper = self._kept(binding)
        added: list[Added] = []
        last = binding.captured
        for message in self._news(binding):
            last = message.seq
            answer = keeper.observe(
                message.role,
                message.text,
                author=message.name,
                at=message.ts,
                session=self._name,
                source=f"messages:{message.seq}",
                client_key=_key(self._name, message),
            )
            if answer is not None:
                added.append(answer)
        try:
            if end:
                self._keeper = None
                keeper.finish()
        finally:
            # What could not be stored is captured again the next time: its key makes it one entry.
            missed = (one.about.source for one in keeper.remaining if one.about.source and not one.refused)
            last = min([last, *(int(source.partition(":")[2]) - 1 for source in missed)])
            if last != binding.captured:
                self._note(binding, last)
        return tuple(added)

    def _note(self, binding: Binding, captured: int) -> None:
        """Remember how far it got; not if the session was bound anew meanwhile, or another process has noted more."""
        with self._history.lock:
            if read_binding(self._history.facets.meta()) == binding:
                self._history.facets.write_meta({"memory": to_builtins(replace(binding, captured=captured))})

    def _news(self, binding: Binding) -> Iterator[Message]:
        # What leaves this machine leaves it as everything does that is shown: without secrets.
        clearing = binding.url is not None and self._history.config.redaction == "on"
        for message in self._history.messages.records(binding.captured + 1):
            if message.role in _CAPTURED_ROLES and message.text and not is_brought_back(message):
                yield clear(message)[0] if clearing else message

    def _kept(self, binding: Binding) -> "Keeper":
        if self._keeper is None:
            from daypack.memory.keeper import Keeper  # noqa: PLC0415

            tools = self._opened()
            self._keeper = Keeper(tools, binding.memory_id, flush_every=tools.flush_every)
            self._keeper.prompts_folder = self._history.layout.prompts
            self._keeper.start()
        return self._keeper

    def _opened(self) -> "MemoryTools":
        if self._tools is None:
            self._tools = self._open_tools(self.binding)
        return self._tools

    def close(self) -> None:
        """Write the document when something was captured, and let go of the memory."""
        try:
            if self._keeper is not None:
                self._keeper.finish()
        finally:
            self._keeper = None
            tools, self._tools = self._tools, None
            if tools is not None:
                tools.close()


def _shares_words(hit: Hit) -> bool:
    """Whether an entry, or one beside it, has a word of the query."""
    parts = hit.score_parts or {}
    return parts.get("lexical", 0.0) + parts.get("near", 0.0) > 0


def _shown(entry: Entry) -> str:
    text = entry.raw_entry if len(entry.raw_entry) <= _SHOWN_CHARS else entry.summary
    who = entry.author or entry.role
    return f"{who}: {text}" if who else text


def _key(name: str, message: Message) -> str:
    """Return a key that stands for this text at this place: another session of the same name has others."""
    return f"{name}#{message.seq}:{name_of(message.text.encode('utf-8', 'replace'))[7:19]}"
