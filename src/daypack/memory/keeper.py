"""The keeper: what an agent does with a memory, so that no agent has to remember to do it.

    start    get_context, put_context if the memory is new, list_entries(10), merge
    observe  decide, summarise, add_entry, merge; after the sixth: await_consistency, put_context
    finish   add what remains, await_consistency, put_context

It works with anything that has the nine tools. The document it keeps grows from raw text only.
"""

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from msgspec import Struct

from daypack.errors import BadInput, KeyConflict, QuotaExceeded, WriteFailed
from daypack.memory.document.document import initial_document, is_placeholder, merge, without_summary
from daypack.memory.document.markdown import fit_document
from daypack.memory.limits import FLUSH_EVERY
from daypack.memory.port import MemoryTools
from daypack.text.injected import strip_injected
from daypack.types.memory import ENTRY_MAX_BYTES, LIST_MAX_ENTRIES, About, Added, Consistency, Entry, RawEntry

if TYPE_CHECKING:
    from daypack.llm.completion.port import Completer
    from daypack.memory.prompts import Prompts

__all__ = ["END_SESSION", "FLUSH_EVERY", "Keeper", "MemoryTools", "Policy", "Told", "Unsaved"]

END_SESSION = "<END_SESSION>"
BOOTSTRAP_ENTRIES = 10
_SILENT_ROLES = frozenset({"tool", "system"})  # what machines print is not said by anybody


Policy = Literal["all", "decide"] | Callable[[str, str], bool]


class Told(TypedDict, total=False):
    """What may be known about a message beside its role and text."""

    author: str | None
    at: str | None
    session: str | None
    source: str | None
    client_key: str | None


class Unsaved(Struct, frozen=True):
    """An entry that could not be stored so far, and why; `refused`: it never can, as it is."""

    raw_entry: str
    summary: str
    about: About
    client_key: str
    problem: str
    attempts: int = 1
    refused: bool = False


class Keeper:
    """Keeps one memory for one conversation; leaving its context finishes it."""

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
            raise BadInput(f"flush_every is {flush_every}", operation="keep memory", hint="it must be 1 or more")
        if policy not in ("all", "decide") and not callable(policy):
            hint = "it is all, decide, or a function of role and text"
            raise BadInput(f"policy is {policy!r}", operation="keep memory", hint=hint)
        self.memory_id = memory_id
        self.prompts_folder: str | None = None  # of the user's own prompts; None: the one in the home
        self.notes: list[str] = []  # what went wrong and was got over: timeouts, failed writes, a model that failed
        self._tools = tools
        self._policy = policy
        self._flush_every = flush_every
        self._persona = persona
        self._completer = completer
        self._document: str | None = None
        self._written = ""  # the document as it was when it was last read or written
        self._news: list[RawEntry] = []  # stored since then
        self._before: RawEntry | None = None
        self._version = 0
        self._unsaved: list[Unsaved] = []
        self._acknowledged: dict[str, Unsaved] = {}  # since the last barrier
        self._token: str | None = None
        self._read = 0  # the newest entry the document knows
        self._newest = 0  # the newest of our own entries
        self._stored = 0
        self._finished = False
        self._prompts: Prompts | None = None

    @property
    def document(self) -> str:
        """The working document; it may know more than the one that was last written."""
        return self._document or ""

    @property
    def failed(self) -> tuple[Unsaved, ...]:
        """The entries that could not be stored although they were tried again, or that cannot be stored at all."""
        return tuple(one for one in self._unsaved if one.attempts > 1 or one.refused)

    @property
    def remaining(self) -> tuple[Unsaved, ...]:
        """All entries that are not stored yet."""
        return tuple(self._unsaved)

    def start(self) -> str:
        """Read the document and the newest entries; to be called before the first reply. Returns the document."""
        if self._document is not None:
            return self._document
        found = self._tools.get_context(self.memory_id)
        document = found.content
        if is_placeholder(document):
            document = initial_document(self._persona)
            found = self._tools.put_context(self.memory_id, document)
        self._version = found.version
        page = self._tools.list_entries(self.memory_id, limit=BOOTSTRAP_ENTRIES)
        said = [without_summary(entry) for entry in reversed(page.entries)]
        self._written = document
        self._before = said[-1] if said else None
        self._read = page.entries[0].seq if page.entries else 0
        self._document = merge(document, said)
        return self._document

    def observe(self, role: str, text: str, **told: Unpack[Told]) -> Added | None:
        """Take note of one message; returns what was added, None when nothing was (yet).

        A message that could not be stored is kept and tried again; see `remaining` and `failed`. The text <END_SESSION>
        alone ends the session.
        """
        if text.strip() == END_SESSION:
            self.finish()
            return None
        if self._finished:
            raise BadInput("the session has ended", operation="observe", place=self.memory_id, hint="make a new keeper")
        document = self.start()
        said = strip_injected(text)
        if not said.strip() or not self._decide(role, said):
            return None
        key = told.get("client_key") or f"keeper-{os.urandom(12).hex()}"
        about = About(
            session=told.get("session"),
            role=role,
            author=told.get("author"),
            at=told.get("at"),
            source=told.get("source"),
        )
        parts = _split(said)
        added: Added | None = None
        for number, part in enumerate(parts, 1):
            own = key if len(parts) == 1 else f"{key}#{number}"
            new = Unsaved(part, self._summarise(part, about, document), about, own, "", attempts=0)
            added = self._add(new) or added
            if self._stored >= self._flush_every:
                self._flush_or_note()
        return added

    def finish(self) -> None:
        """End the session: store what remains, wait until it holds, write the document. Further calls do nothing.

        Raises WriteFailed when entries could not be stored; `failed` has them.
        """
        if self._finished:
            return
        self.start()
        self._retry(self._unsaved)
        self._flush()
        self._finished = True
        if self._unsaved:
            first = self._unsaved[0]
            problem = f"{len(self._unsaved)} of the entries could not be stored: {first.problem}"
            raise WriteFailed(problem, operation="finish", place=self.memory_id, hint="they are in keeper.failed")

    def prompts(self, tool: str) -> str:
        """Return the prompts of this memory's type for the tool that is about to be called."""
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
        except Exception as another:  # the first error is the one to tell
            error.add_note(f"the memory could not be finished either: {another}")

    def _decide(self, role: str, text: str) -> bool:
        if callable(self._policy):
            return self._policy(role, text)
        if role in _SILENT_ROLES:
            return False
        return self._policy == "all" or _says_something(text)

    def _summarise(self, text: str, about: About, document: str) -> str:
        from daypack.memory.summary.summary import summarise_entry  # noqa: PLC0415 — a keeper that only reads needs none

        if self._completer is not None:
            from daypack.memory.summary.with_model import summarise_with  # noqa: PLC0415

            prompt = self._loaded().summary_prompt
            return summarise_with(self._completer, prompt, text, about, document)
        return summarise_entry(text, about, document)

    def _add(self, new: Unsaved) -> Added | None:
        """Store an entry and learn from it; one that cannot be stored is kept."""
        self._unsaved = [one for one in self._unsaved if one.client_key != new.client_key]
        try:
            added = self._stored_as(new)
        except Exception as error:  # whatever tools they are, the conversation goes on
            problem = str(error) or type(error).__name__
            refused = isinstance(error, BadInput) and not isinstance(error, QuotaExceeded)
            self.notes.append(f"add_entry failed: {problem}")
            self._unsaved.append(
                Unsaved(new.raw_entry, new.summary, new.about, new.client_key, problem, new.attempts + 1, refused)
            )
            return None
        self._acknowledged[new.client_key] = new
        self._token, self._newest = added.token, max(self._newest, added.seq)
        self._stored += 1
        self._learn(new)
        return added

    def _stored_as(self, new: Unsaved) -> Added:
        raw, summary, about, key = new.raw_entry, new.summary or None, new.about, new.client_key
        try:
            return self._tools.add_entry(self.memory_id, raw_entry=raw, summary=summary, about=about, client_key=key)
        except KeyConflict:  # the same message with the summary of an older document; any other is refused again
            return self._tools.add_entry(self.memory_id, raw_entry=raw, about=about, client_key=key)

    def _learn(self, new: Unsaved) -> None:
        about = new.about
        said = RawEntry(new.raw_entry, author=about.author, role=about.role, at=about.at, source=about.source)
        self._news.append(said)
        # With the entry before it: "done" says what is done only together with what was asked.
        self._document = merge(self.document, [said] if self._before is None else [self._before, said])
        self._before = said

    def _flush_or_note(self) -> None:
        """Write the document; when that fails the conversation goes on, and the next entry tries again."""
        try:
            self._flush()
        except Exception as error:
            self.notes.append(f"put_context failed: {error}")

    def _flush(self) -> None:
        """Wait until what was added holds, add again what does not, then write the document."""
        barrier = self._wait()
        lost = [one.client_key or "" for one in barrier.failed_writes] if barrier else []
        gone = [self._acknowledged[key] for key in lost if key in self._acknowledged]
        if self._retry([*self._unsaved, *gone]):
            self._wait()
        if self._completer is not None and self._news:
            self._document = self._merge_with_model(self._completer)
        self._put()
        self._news, self._acknowledged, self._stored = [], {}, 0

    def _put(self) -> None:
        """Write the document. If somebody else wrote one in between, what he learnt is read from the entries."""
        former, document = self._version, fit_document(self.document)
        written = self._tools.put_context(self.memory_id, document)
        if written.version > former + 1:
            self.notes.append("another keeper wrote the document: the newest entries were merged again")
            merged = merge(document, self._since())
            if merged != document:
                document = merged
                written = self._tools.put_context(self.memory_id, document)
        self._version = written.version
        self._read = max(self._read, self._newest)
        self._document = self._written = document

    def _since(self) -> list[RawEntry]:
        """Return what was stored since the document was last read or written, by whomever; at least the newest."""
        found: list[Entry] = []
        page = self._tools.list_entries(self.memory_id, limit=LIST_MAX_ENTRIES)
        newest = page.entries[0].seq if page.entries else 0
        while page.entries:
            found += page.entries
            if page.entries[-1].seq <= self._read or not page.next_before:
                break
            page = self._tools.list_entries(self.memory_id, limit=LIST_MAX_ENTRIES, before=page.next_before)
        self._read = max(self._read, newest)
        return [without_summary(entry) for entry in reversed(found)]

    def _retry(self, unsaved: Sequence[Unsaved]) -> bool:
        """Try entries again under the same keys; returns whether there was anything to try."""
        tried = [one for one in list(unsaved) if not one.refused]
        for one in tried:
            self._add(one)
        return bool(tried)

    def _wait(self) -> Consistency | None:
        """Ask the barrier; what it reports is noted. A barrier that cannot be asked is no success either."""
        try:
            barrier = self._tools.await_consistency(self.memory_id, token=self._token, level="visible")
        except Exception as error:
            self.notes.append(f"await_consistency failed: {error}")
            return None
        if barrier.status != "consistent":
            writes = "; ".join(f"{one.operation}: {one.problem}" for one in barrier.failed_writes)
            told = ": ".join(one for one in (barrier.status, writes, barrier.problem or "") if one)
            self.notes.append(f"await_consistency: {told}")
        return barrier

    def _merge_with_model(self, completer: "Completer") -> str:
        from daypack.memory.document.with_model import merge_with  # noqa: PLC0415

        return merge_with(completer, self._loaded().context_prompt, self._written, self._news)

    def _loaded(self) -> "Prompts":
        if self._prompts is None:
            from daypack.memory.prompts import load_prompts  # noqa: PLC0415

            kind = self._tools.get_memory(self.memory_id).memory_type
            folder = _own_prompts() if self.prompts_folder is None else self.prompts_folder
            self._prompts = load_prompts(kind, folder)
        return self._prompts


def _own_prompts() -> str:
    from daypack.history.layout import find_home  # noqa: PLC0415

    return os.path.join(find_home().folder, "prompts")


def _says_something(text: str) -> bool:
    """Whether a message is more than a courtesy or a word of consent."""
    from daypack.text.cues import is_acknowledgement  # noqa: PLC0415 — only for those who choose
    from daypack.text.filler import is_filler  # noqa: PLC0415
    from daypack.text.sentences import sentences  # noqa: PLC0415

    return not is_acknowledgement(text) and any(not is_filler(one.text) for one in sentences(text))


def _split(text: str) -> list[str]:
    """Return a message in parts that an entry can hold, cut between lines or words where there are any."""
    parts: list[str] = []
    while len(text.encode("utf-8", "surrogatepass")) > ENTRY_MAX_BYTES:
        head = text.encode("utf-8", "surrogatepass")[:ENTRY_MAX_BYTES].decode("utf-8", "ignore")
        cut = max(head.rfind("\n"), head.rfind(" ")) + 1
        cut = cut if cut > len(head) // 2 else len(head)
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text] if text.strip() or not parts else parts
