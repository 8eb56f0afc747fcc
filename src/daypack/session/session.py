"""The public session: the interface for agent loops, hooks and notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack, cast
from weakref import finalize

from daypack.errors import StorageFailed
from daypack.history.draft import draft_event, draft_message, drafts_from
from daypack.history.facets import place_of
from daypack.history.logs.records import Records
from daypack.history.session import History
from daypack.session.closing import close_dropped, closed_error, end_receptions
from daypack.types.history import Damage, Event, Message
from daypack.types.kinds import SessionState

if TYPE_CHECKING:
    from pathlib import Path

    from daypack.derived.children import Child, ChildUpdate
    from daypack.derived.tiers import Projection
    from daypack.history.layout import Layout
    from daypack.memory.port import MemoryTools
    from daypack.turn.compaction import Compacted
    from daypack.turn.memory_binding import Binding, Bound, Words
    from daypack.turn.prepare import TurnOptions, Turns
    from daypack.turn.questions import Answer, QuestionDetails
    from daypack.turn.recall import Lookup, Recalled
    from daypack.turn.replies.reception import Reception
    from daypack.turn.replies.stream import ReplyStream
    from daypack.turn.survey.memory import MemoryPort
    from daypack.turn.turn import Turn
    from daypack.types.compaction import Compaction
    from daypack.types.memory import Added
    from daypack.types.records import HistoryHit, Ref, Rule


class Session:
    """One conversation of one agent. Any thread or process can append to it and read it.

    A closed session raises SessionClosed whatever is done with it, except for closing it again.
    """

    def __init__(self, history: History, *, name: str, agent: str) -> None:
        self.name = name
        self.agent = agent
        self._history = history
        self._closed = False
        self._turns: Turns | None = None
        self._bound: Bound | None = None
        self._bound_to: object = None  # the place in meta.json of the memory that turns use
        self._receptions: list[Reception] = []  # streams that have not ended
        self._closing = finalize(self, close_dropped, history, self._receptions)

    @property
    def path(self) -> "Path":
        """The session's folder."""
        from pathlib import Path  # noqa: PLC0415 — 14 ms that a hook need not pay

        return Path(self.layout.folder)

    @property
    def layout(self) -> "Layout":
        """The paths of the session's files."""
        return self._history.layout

    @property
    def history(self) -> History:
        """The layer below `append`: the logs, pins and small files."""
        self._require_open()
        return self._history

    def _require_open(self) -> None:
        if self._closed:
            raise closed_error(f"{self.agent}/{self.name}")

    def _read(self) -> History:
        """Return the history with what other workers appended up to now."""
        self.history.refresh()
        return self._history

    def _read_stored(self) -> History:
        with suppress(StorageFailed):  # reading works on a full disk; the next append or turn reports it
            self._store_abandoned()
        return self._read()

    # Append

    def append(self, role: str, content: Any = "", **fields: Any) -> Message:  # noqa: ANN401 — parsed here, once
        """Append one message and return it as stored.

        `content` is text or a list of parts. Fields: tool_calls, tool_call_id, name, client_key, meta, ts.
        """
        self._store_abandoned()
        draft = draft_message(role, content, fields)
        self._require_shown((draft,))
        return self.history.append((draft,))[0]

    def append_many(self, messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
        """Append messages, all or none, with one sync."""
        self._store_abandoned()
        drafts = drafts_from(messages)
        self._require_shown(drafts)
        return self.history.append(drafts)

    def _require_shown(self, drafts: Sequence[Message]) -> None:
        """Refuse what no turn would show, before any of it is stored."""
        if any(draft.content.__class__ is not str or draft.role == "tool" for draft in drafts):
            from daypack.history.calls import require_calls  # noqa: PLC0415 — most messages are one text
            from daypack.history.parts import require_parts  # noqa: PLC0415

            require_parts(drafts)
            require_calls(self.history, drafts)

    def append_event(self, type: str, data: Mapping[str, Any] | None = None, *, run: str | None = None) -> Event:  # noqa: A002
        """Append one event: something that happened and is not a message."""
        return self.history.append_event(draft_event(type, data, run))

    def pin(self, name: str, text: str) -> None:
        """Pin a text under a name; it replaces an earlier text of that name."""
        self.history.pin(name, text)

    def unpin(self, name: str) -> bool:
        """Remove a pinned text; return True if there was one."""
        return self.history.unpin(name) is not None

    def rules(self) -> "tuple[Rule, ...]":
        """Return the standing rules of the user that are in force, in the order given."""
        return self.turns.inputs.rules.read()

    def add_rule(self, text: str) -> "Rule":
        """Add a standing rule; it counts from the next turn on, in place of an earlier rule on the same matter."""
        return self.turns.inputs.rules.add(text)

    def drop_rule(self, rule_id: str) -> "Rule":
        """Drop a standing rule for good."""
        return self.turns.inputs.rules.drop(rule_id)

    def pin_rule(self, rule_id: str, *, on: bool = True) -> "Rule":
        """Pin a standing rule: no later rule supersedes it, and no cap cuts it. `on` false unpins it."""
        return self.turns.inputs.rules.pin(rule_id, on=on)

    def set_state(self, state: SessionState) -> None:
        """Change the session's state: active, idle, done, error or cancelled."""
        self.history.set_state(state)

    def set_budget(self, budget: "int | str | Mapping[str, Any] | None") -> None:
        """Write context/budget, the default of packs: tokens (32000 or "32k"), or a mapping; 0 or None: no limit."""
        self.turns.set_budget(budget)

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a block of instructions on or off: protocol, voice, provenance, identity, or a block you wrote."""
        self.turns.switch(name, on=on)

    def put_child(
        self,
        name: str,
        update: "ChildUpdate | None" = None,
        *,
        handoff: str | None = None,
        result: str | None = None,
        refs: "Iterable[Ref]" = (),
    ) -> None:
        """Record the handoff, result and references of a child agent.

        An `update` can also have its agent, session, status and artifacts.
        """
        from daypack.derived.children import put_child  # noqa: PLC0415 — few sessions have children

        put_child(self.history, name, update, handoff=handoff, result=result, refs=tuple(refs))

    @property
    def children(self) -> "tuple[Child, ...]":
        """The child agents, in order of name."""
        from daypack.derived.children import read_children  # noqa: PLC0415

        return read_children(self._read())

    def add_question(self, question: str, **details: "Unpack[QuestionDetails]") -> str:
        """Record an open question and return its id; turns report it as missing until it is resolved."""
        return self.turns.questions.add(question, **details)

    def resolve_question(self, missing_id: str, **answer: "Unpack[Answer]") -> None:
        """Record how an open question ended: `answer` or `answer_ref`, `status` (resolved, declined, expired)."""
        self.turns.questions.resolve(missing_id, **answer)

    # One turn

    def prepare(self, **options: "Unpack[TurnOptions]") -> "Turn":
        """Pack what the next call needs, and record what was packed and what was omitted.

        Append the newest user message first. The options, all by name:

        - `budget`: tokens of the whole window (8000 or "8k"), or a mapping with tokens, bytes, items, ms. None uses the
          session's own: context/budget, else that of its newest turn.
        - `model`: the name of the model to be called, which decides how tokens are counted.
        - `tools`: the definitions that the call passes, in the shape of any provider. They count in the budget and are
          in `turn.request(dialect)`, so do not pass them to the client as well.
        - `items`: context of your own for this turn; `ids`: your ids of it (thread, task, run …); `target`: its reader.
        - `protocol`: ask the reply for a snapshot of the model's own memory; None follows the switch of that name.
        - `dry_run`: record nothing.
        """
        turns = self.turns
        if self._receptions:
            turns.store_abandoned()
        self._follow_binding(turns)
        return turns.prepare(**options)

    def refresh(self) -> None:
        """Make the next turn begin a new epoch, with a prefix that has all changes."""
        self.turns.refresh()

    def accept(self, reply: object, usage: object = None) -> Message:
        """Append a model's reply and record its usage and snapshot.

        `reply` is a text, a message, a client library's response, a `Splitter` reply, or a stream, which is read to its
        end. An asynchronous stream is awaited: `await session.stream(source)`, or `await session.accept(source)`.
        """
        self._store_abandoned()
        # Overloads would cost completion: type checkers do not know what a client returns for an unpacked request.
        return cast(Message, self.turns.accept(reply, usage, self))

    def stream(self, source: object, usage: object = None) -> "ReplyStream":
        """Return the text of a reply as it arrives, for `for` or `async for`; its end stores the reply with its usage.

        `source` is the stream of openai (chat completions or responses) or anthropic, or an iterable of texts. A stream
        that breaks off or is left stores what came, marked incomplete (`message.incomplete` says why).
        `await session.stream(source)` reads an asynchronous stream to its end and returns the message.
        """
        self._store_abandoned()
        return self.turns.stream(source, usage, self)

    def _store_abandoned(self) -> None:
        """Store what came of the streams that are no longer read, before anything else is written."""
        if self._receptions:
            self.turns.store_abandoned()

    @property
    def tiers(self) -> "Projection":
        """The model's own memory, from the snapshots of its replies: the blocks that turns show, and the others."""
        return self.turns.tiers()

    def replay(self, event_id: str) -> "Turn":
        """Rebuild a recorded turn from history alone and check that every byte is the same."""
        return self.turns.replay(event_id)

    # Compaction

    def compact(
        self, *, model: str | None = None, keep_tokens: int | None = None, dry_run: bool = False
    ) -> "Compacted":
        """Replace older messages in the window by CONTEXT.md and its records; history does not change.

        `model`: none, openai:URL#NAME or llama:PATH; None uses the configured one. `keep_tokens`: the size of the
        newest messages that stay. The next turn begins a new epoch. A dry run returns the result and records nothing.
        """
        return self.turns.compactions.compact(model=model, keep_tokens=keep_tokens, dry_run=dry_run)

    def compact_on_overflow(self) -> "Compacted":
        """Compact to a fifth of the window, without a model, after a provider refused a request as too long."""
        return self.turns.compactions.compact_on_overflow()

    @property
    def compactions(self) -> "tuple[Compaction, ...]":
        """The compactions in effect, oldest first."""
        return tuple(self.turns.compactions.read().accepted)

    def undo(self, compaction_id: str | None = None) -> "Compaction":
        """Undo the newest compaction, or a named one, by appending an event; return it."""
        return self.turns.compactions.undo(compaction_id)

    def search_history(self, query: str, k: int = 5) -> "tuple[HistoryHit, ...]":
        """Return the `k` places of this session that match a query best, in the window or not."""
        return self.lookup.search(query, k)

    def recall(self, id: str, lines: "str | Sequence[int] | None" = None) -> "Recalled":  # noqa: A002 — the tool's own name
        """Return the text of an id (sha256-…, msg-12, messages:12-18, f3, r2), or some of its lines ("1-40")."""
        return self.lookup.recall(id, lines)

    def tools(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the definitions of `recall` and `search_history` for a provider's request."""
        from daypack.turn import recall_tools as tools  # noqa: PLC0415 — only for agents that are given them

        return tools.definitions(dialect)

    def call(self, name: str, arguments: "str | Mapping[str, Any]") -> str:
        """Answer a model's call of `recall` or `search_history`; the answer is marked, so that capture skips it."""
        from daypack.turn import recall_tools as tools  # noqa: PLC0415

        return tools.answer(self.lookup, name, arguments)

    @property
    def lookup(self) -> "Lookup":
        """The layer below `recall` and `search_history`."""
        from daypack.turn.recall import Lookup  # noqa: PLC0415

        return Lookup(self.turns.inputs)

    @property
    def turns(self) -> "Turns":
        """The layer below `prepare` and `replay`."""
        self._require_open()
        if self._history.is_cache:
            self._history.refresh()
        if self._turns is None:
            from daypack.turn.prepare import Turns  # noqa: PLC0415 — 20 ms that an append need not pay

            self._turns = Turns(
                self.history, self.history.config, name=self.name, agent=self.agent, receptions=self._receptions
            )
            if memory := self._history.facets.meta().get("memory"):
                self._bound_to = place_of(memory)
                self._turns.memory = self.bound
        return self._turns

    @property
    def memory(self) -> "MemoryPort | None":
        """The memory across sessions that turns use; None if there is none."""
        return self.turns.memory

    @memory.setter
    def memory(self, port: "MemoryPort | None") -> None:
        self.turns.memory = port

    def bind_memory(self, memory_id: str, *, user: str = "local", url: str | None = None) -> None:
        """Bind the session to a memory, also in its meta.json: turns show its document and search it."""
        from daypack.turn.memory_binding import Binding, write_binding  # noqa: PLC0415 — few sessions have one

        binding = Binding(memory_id=memory_id, user=user, url=url)
        tools = self._open_tools(binding)
        try:
            tools.get_memory(memory_id)  # it must exist and belong to this user
        finally:
            tools.close()
        self._close_memory()
        write_binding(self.history, binding)
        self._bound_to = place_of(self.meta.get("memory"))
        self.memory = self.bound

    def unbind_memory(self) -> None:
        """Remove the binding; captured entries stay in the memory."""
        from daypack.turn.memory_binding import write_binding  # noqa: PLC0415

        self._close_memory()
        write_binding(self.history, None)
        self._bound_to = None
        self.memory = None

    def _follow_binding(self, turns: "Turns") -> None:
        """Use the memory that another process bound the session to since; one that the caller assigned stays."""
        if not turns.inputs.ledger.read().bound:
            return
        # Not by the event, which is written before meta.json: a turn between the two would use the former memory.
        place = place_of(self._history.facets.meta().get("memory"))
        if place != self._bound_to:
            self._bound_to = place
            if turns.memory is None or turns.memory is self._bound:
                self._close_memory(in_turn=True)
                turns.memory = self.bound if place else None

    def capture(self, *, end: bool = False, words: "Words | None" = None) -> "tuple[Added, ...]":
        """Add the messages since the last capture to the bound memory, each once.

        With `end` the memory's document is updated too, as when the session is closed. `words` returns what of a
        message is stored, empty for nothing; default: all of every message of the user and the assistant.
        """
        return self.bound.capture(end=end, words=words)

    @property
    def bound(self) -> "Bound":
        """The layer below `capture`; raises MemoryMissing if the session is not bound."""
        self._require_open()
        if self._bound is None:
            from daypack.turn.memory_binding import Bound  # noqa: PLC0415

            self._bound = Bound(self.history, f"{self.agent}/{self.name}", self._open_tools)
        return self._bound

    def _open_tools(self, binding: "Binding") -> "MemoryTools":
        from daypack.turn.memory_binding import open_tools  # noqa: PLC0415

        return open_tools(self.history.layout.home, binding)

    def _close_memory(self, *, in_turn: bool = False) -> None:
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.close(in_turn=in_turn)

    # Read

    def tail(self, count: int) -> tuple[Message, ...]:
        """Return the newest `count` messages, oldest first."""
        return self._read_stored().messages.tail(count)

    def messages(self, start: int = 1, stop: int | None = None) -> Records[Message]:
        """Return the messages numbered `start` to `stop`, both included, read lazily while iterating."""
        return self._read_stored().messages.records(start, stop)

    def events(self, start: int = 1, stop: int | None = None) -> Records[Event]:
        """Return the events numbered `start` to `stop`, both included, read lazily while iterating."""
        return self._read().events.records(start, stop)

    def newest_within(self, tokens: int) -> int:
        """Return how many of the newest messages fit into `tokens`."""
        return self._read().newest_within(tokens)

    @property
    def pins(self) -> dict[str, str]:
        """The pinned texts by file name."""
        return self._read().pins()

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self._read().facets.state()

    @property
    def meta(self) -> dict[str, Any]:
        """The session's meta.json."""
        return self._read().facets.meta()

    @property
    def damage(self) -> list[Damage]:
        """The damaged lines met so far while reading."""
        logs = (self.history.messages, self.history.events)
        return [damage for log in logs for _, damage in sorted(log.reader.damage.items())]

    def close(self) -> None:
        """Write counters and metadata, and close the files. Closing twice is fine, any other use is not."""
        if self._closed:
            return
        try:
            end_receptions(self._receptions)  # if what came cannot be stored, closing again tries again
            self._closed = True
            if self._bound:
                self._bound.close()
        finally:
            if self._turns:
                self._turns.close()
            self._history.close()

    def __enter__(self) -> "Session":
        self._require_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<daypack session {self.agent}/{self.name}>"
