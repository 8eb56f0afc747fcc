"""The keeper: the memory workflow of an agent, so that no agent has to remember its steps.

    start    get_context, put_context if the memory is new, list_entries(10), merge
    observe  decide, summarise, add_entry, merge; after every sixth entry: await_consistency, put_context
    finish   add the remaining entries, await_consistency, put_context

It works with local and remote memories. The document grows from raw text only.
"""

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BadInput, KeyConflict, QuotaExceeded, ServerUnreachable, WriteFailed
from daypack.memory.document.document import initial_document, is_placeholder, merge, without_summary
from daypack.memory.document.markdown import fit_document
from daypack.memory.exit_signal import END_SESSION, read_signal
from daypack.memory.limits import FLUSH_EVERY
from daypack.memory.port import MemoryTools
from daypack.text.injected import strip_injected
from daypack.types.deadline import Deadline
from daypack.types.memory import ENTRY_MAX_BYTES, LIST_MAX_ENTRIES, About, Added, Consistency, Entry, RawEntry

if TYPE_CHECKING:
    from daypack.llm.completion.port import Completer
    from daypack.memory.prompts import Prompts

__all__ = [
    "END_SESSION",
    "FLUSH_EVERY",
    "Keeper",
    "MemoryTools",
    "MessageFields",
    "Policy",
    "Unsaved",
    "is_informative",
]

BOOTSTRAP_ENTRIES = 10
_IGNORED_ROLES = frozenset({"tool", "system"})  # their output is not conversation


Policy = Literal["all", "decide"] | Callable[[str, str], bool]


class MessageFields(TypedDict, total=False):
    """Optional fields of a message beside its role and text.

    `shared`: other sessions use this client key for the same message, which is stored once, as the first had it.
    """

    author: str | None
    at: str | None
    session: str | None
    source: str | None
    client_key: str | None
    shared: bool


class Unsaved(Struct, frozen=True):
    """An entry that could not be stored yet, and why; `refused`: the memory will never accept it."""

    raw_entry: str
    summary: str
    about: About
    client_key: str
    problem: str
    attempts: int = 1
    refused: bool = False
    shared: bool = False


class Keeper:
    """Maintains one memory during one conversation; use it as a context manager or call `finish`."""

    def __init__(
        self,
        tools: MemoryTools,
        memory_id: str,
        *,
        policy: Policy = "all",
        flush_every: int = FLUSH_EVERY,
        persona: str | None = None,
        completer: "Completer | None" = None,
    ) -> None:
        if flush_every < 1:
            raise BadInput(
                f"flush_every is {flush_every}", operation="keep memory", hint="flush_every must be 1 or more"
            )
        if policy not in ("all", "decide") and not callable(policy):
            hint = 'policy must be "all", "decide" or a function of role and text'
            raise BadInput(f"policy is {policy!r}", operation="keep memory", hint=hint)
        self.memory_id = memory_id
        self.prompts_folder: str | None = None  # the user's own prompts; None: the folder in the home
        self.unreachable = False  # the server of the memory did not answer the last call
        # Says by its digest whether daypack put a text into a window: such text is not stored again.
        self.was_shown: Callable[[str], bool] = lambda _: False
        self.notes: list[str] = []  # problems that did not stop the conversation: timeouts, failed writes
        self._tools = tools
        self._policy = policy
        self._flush_every = flush_every
        self._persona = persona
        self._completer = completer
        self._document: str | None = None
        self._written = ""  # the document as last read or written
        self._unwritten: list[RawEntry] = []  # stored since then
        self._previous: RawEntry | None = None
        self._version = 0
        self._unsaved: list[Unsaved] = []
        self._acknowledged: dict[str, Unsaved] = {}  # since the last barrier
        self._token: str | None = None
        self._merged_seq = 0  # the newest entry merged into the document
        self._newest_seq = 0  # the newest entry this keeper has added
        self._since_flush = 0  # entries added since the document was written
        self._finished = False
        self._prompts: Prompts | None = None

    @property
    def document(self) -> str:
        """The working document; it may be ahead of the version last written."""
        return self._document or ""

    @property
    def is_changed(self) -> bool:
        """True if the working document differs from the version last read or written."""
        return self._document is not None and fit_document(self._document) != self._written

    @property
    def finished(self) -> bool:
        """True after `finish`, and after a message with <END_SESSION>."""
        return self._finished

    @property
    def failed(self) -> tuple[Unsaved, ...]:
        """The entries that failed again when retried, or that the memory refuses."""
        return tuple(entry for entry in self._unsaved if entry.attempts > 1 or entry.refused)

    @property
    def remaining(self) -> tuple[Unsaved, ...]:
        """All entries that are not stored yet."""
        return tuple(self._unsaved)

    def start(self) -> str:
        """Read the document and the newest entries, and return the document. Call it before the first reply."""
        if self._document is not None:
            return self._document
        stored = self._tools.get_context(self.memory_id)
        document = stored.content
        if is_placeholder(document):
            document = initial_document(self._persona)
            stored = self._tools.put_context(self.memory_id, document)
        self._version = stored.version
        page = self._tools.list_entries(self.memory_id, limit=BOOTSTRAP_ENTRIES)
        recent = [without_summary(entry) for entry in reversed(page.entries)]
        self._written = document
        self._previous = recent[-1] if recent else None
        self._merged_seq = page.entries[0].seq if page.entries else 0
        self._document = merge(document, recent)
        return self._document

    def observe(self, role: str, text: str, **fields: Unpack[MessageFields]) -> Added | None:
        """Store one message if it is worth it, and return what was added; None if nothing was added (yet).

        A message that could not be stored is retried later; see `remaining` and `failed`. <END_SESSION> in a message
        finishes the conversation after its other words are stored; in a tool's output it means nothing.
        """
        message = strip_injected(text, self.was_shown)
        own_text, ends = read_signal(message)
        if own_text and role in _IGNORED_ROLES:
            own_text, ends = message, False
        added = None if ends and not own_text else self._store(role, own_text, fields)
        if ends:
            self.finish()
        return added

    def _store(self, role: str, text: str, fields: MessageFields) -> Added | None:
        if self._finished:
            hint = "create a new Keeper for the next conversation"
            raise BadInput("the conversation is finished", operation="observe", place=self.memory_id, hint=hint)
        document = self.start()
        if not text.strip() or not self._should_store(role, text):
            return None
        key = fields.get("client_key") or f"keeper-{os.urandom(12).hex()}"
        about = About(
            session=fields.get("session"),
            role=role,
            author=fields.get("author"),
            at=fields.get("at"),
            source=fields.get("source"),
        )
        parts = _split(text)
        added: Added | None = None
        for number, part in enumerate(parts, 1):
            part_key = key if len(parts) == 1 else f"{key}#{number}"
            summary, shared = self._summarise(part, about, document), fields.get("shared", False)
            new = Unsaved(part, summary, about, part_key, "", attempts=0, shared=shared)
            added = self._add(new) or added
            if self._since_flush >= self._flush_every:
                self._flush_or_note()
        return added

    def finish(self) -> None:
        """Store the remaining entries, wait until they are consistent and write the document; safe to call twice.

        Raises WriteFailed if entries could not be stored; `failed` has them.
        """
        if self._finished:
            return
        self.start()
        self._retry(self._unsaved)
        if not self.unreachable:
            self._flush()
        self._finished = True
        if self._unsaved:
            first = self._unsaved[0]
            problem = f"entries not stored: {len(self._unsaved)}; the first one: {first.problem}"
            raise WriteFailed(problem, operation="finish", place=self.memory_id, hint="see keeper.failed")

    def wait_until(self, deadline: Deadline) -> None:
        """Let calls over a network fail when a deadline has passed."""
        self._tools = self._tools.within(deadline)

    def prompts(self, tool: str) -> str:
        """Return the prompts of this memory's type for one tool."""
        return self._loaded().for_tool(tool)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
            return
        try:
            self.finish()
        except Exception as later:  # the first error is the one to raise
            error.add_note(f"finishing the memory failed as well: {later}")

    def _should_store(self, role: str, text: str) -> bool:
        if callable(self._policy):
            return self._policy(role, text)
        if role in _IGNORED_ROLES:
            return False
        return self._policy == "all" or is_informative(text)

    def _summarise(self, text: str, about: About, document: str) -> str:
        from daypack.memory.summary.summary import summarise_entry  # noqa: PLC0415 — a keeper that only reads does not need it

        if self._completer is not None:
            from daypack.memory.summary.with_model import summarise_with  # noqa: PLC0415

            prompt = self._loaded().summary_prompt
            return summarise_with(self._completer, prompt, text, about, document)
        return summarise_entry(text, about, document)

    def _add(self, new: Unsaved) -> Added | None:
        """Store an entry and merge it into the document; an entry that fails is kept for a retry."""
        self._unsaved = [entry for entry in self._unsaved if entry.client_key != new.client_key]
        try:
            added = self._add_entry(new)
        except Exception as error:  # of any kind of tools: the conversation must not fail
            if new.shared and isinstance(error, KeyConflict):
                return None
            problem = str(error) or type(error).__name__
            refused = isinstance(error, BadInput) and not isinstance(error, QuotaExceeded)
            self.unreachable = isinstance(error, ServerUnreachable)
            self.notes.append(f"add_entry failed: {problem}")
            self._unsaved.append(replace(new, problem=problem, attempts=new.attempts + 1, refused=refused))
            return None
        self.unreachable = False
        self._acknowledged[new.client_key] = new
        self._token, self._newest = added.token, max(self._newest_seq, added.seq)
        self._since_flush += 1
        self._merge_entry(new)
        return added

    def _add_entry(self, new: Unsaved) -> Added:
        raw, summary, about, key = new.raw_entry, new.summary or None, new.about, new.client_key
        try:
            return self._tools.add_entry(self.memory_id, raw_entry=raw, summary=summary, about=about, client_key=key)
        except KeyConflict:  # stored before with a different generated summary; another message fails again
            return self._tools.add_entry(self.memory_id, raw_entry=raw, about=about, client_key=key)

    def _merge_entry(self, new: Unsaved) -> None:
        about = new.about
        entry = RawEntry(new.raw_entry, author=about.author, role=about.role, at=about.at, source=about.source)
        self._unwritten.append(entry)
        # Together with the entry before it: a bare "done" refers to the request before it.
        self._document = merge(self.document, [entry] if self._previous is None else [self._previous, entry])
        self._previous = entry

    def _flush_or_note(self) -> None:
        """Write the document; a failure is noted, and the next entry tries again."""
        try:
            self._flush()
        except Exception as error:
            self.unreachable = isinstance(error, ServerUnreachable)
            self.notes.append(f"put_context failed: {error}")

    def _flush(self) -> None:
        """Wait until the added entries are consistent, add lost ones again, then write the document."""
        barrier = self._wait()
        failed_keys = [write.client_key or "" for write in barrier.failed_writes] if barrier else []
        lost = [self._acknowledged[key] for key in failed_keys if key in self._acknowledged]
        if self._retry([*self._unsaved, *lost]):
            self._wait()
        if self._completer is not None and self._unwritten:
            self._document = self._merge_with_model(self._completer)
        self._put()
        self._unwritten, self._acknowledged, self._since_flush = [], {}, 0

    def _put(self) -> None:
        """Write the document. If another keeper wrote a version in between, merge the entries it has added."""
        former, document = self._version, fit_document(self.document)
        written = self._tools.put_context(self.memory_id, document)
        if written.version > former + 1:
            self.notes.append("another keeper wrote the document: merged the newest entries again")
            merged = merge(document, self._entries_since_merge())
            if merged != document:
                document = merged
                written = self._tools.put_context(self.memory_id, document)
        self._version = written.version
        self._merged_seq = max(self._merged_seq, self._newest_seq)
        self._document = self._written = document

    def _entries_since_merge(self) -> list[RawEntry]:
        """Return the entries of all writers since the document was last merged; at least the newest page."""
        entries: list[Entry] = []
        page = self._tools.list_entries(self.memory_id, limit=LIST_MAX_ENTRIES)
        newest = page.entries[0].seq if page.entries else 0
        while page.entries:
            entries += page.entries
            if page.entries[-1].seq <= self._merged_seq or not page.next_before:
                break
            page = self._tools.list_entries(self.memory_id, limit=LIST_MAX_ENTRIES, before=page.next_before)
        self._merged_seq = max(self._merged_seq, newest)
        return [without_summary(entry) for entry in reversed(entries)]

    def _retry(self, unsaved: Sequence[Unsaved]) -> bool:
        """Add entries again under the same keys, until the server does not answer; return True if there were any."""
        retried = [entry for entry in unsaved if not entry.refused]
        for entry in retried:
            self._add(entry)
            if self.unreachable:
                break
        return bool(retried)

    def _wait(self) -> Consistency | None:
        """Call await_consistency and note what it reports; None if the call failed."""
        try:
            barrier = self._tools.await_consistency(self.memory_id, token=self._token, level="visible")
        except ServerUnreachable:
            raise  # nor would it take the document
        except Exception as error:
            self.notes.append(f"await_consistency failed: {error}")
            return None
        if barrier.status != "consistent":
            writes = "; ".join(f"{write.operation}: {write.problem}" for write in barrier.failed_writes)
            report = ": ".join(filter(None, (barrier.status, writes, barrier.problem)))
            self.notes.append(f"await_consistency: {report}")
        return barrier

    def _merge_with_model(self, completer: "Completer") -> str:
        from daypack.memory.document.with_model import merge_with  # noqa: PLC0415

        return merge_with(completer, self._loaded().context_prompt, self._written, self._unwritten)

    def _loaded(self) -> "Prompts":
        if self._prompts is None:
            from daypack.memory.prompts import load_prompts  # noqa: PLC0415

            kind = self._tools.get_memory(self.memory_id).memory_type
            folder = _prompts_in_home() if self.prompts_folder is None else self.prompts_folder
            self._prompts = load_prompts(kind, folder)
        return self._prompts


def _prompts_in_home() -> str:
    from daypack.history.home import find_home  # noqa: PLC0415

    return os.path.join(find_home().folder, "prompts")


def is_informative(text: str) -> bool:
    """Return True if a message is more than a courtesy or an acknowledgement."""
    from daypack.text.cues.cues import is_acknowledgement  # noqa: PLC0415 — only with policy "decide"
    from daypack.text.filler import is_filler  # noqa: PLC0415
    from daypack.text.sentences import sentences  # noqa: PLC0415

    return not is_acknowledgement(text) and any(not is_filler(sentence.text) for sentence in sentences(text))


def _split(text: str) -> list[str]:
    """Split a message into parts that fit an entry, between lines or words where possible."""
    parts: list[str] = []
    while len(text.encode("utf-8", "surrogatepass")) > ENTRY_MAX_BYTES:
        head = text.encode("utf-8", "surrogatepass")[:ENTRY_MAX_BYTES].decode("utf-8", "ignore")
        cut = max(head.rfind("\n"), head.rfind(" ")) + 1
        cut = cut if cut > len(head) // 2 else len(head)
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text] if text.strip() or not parts else parts
