"""One turn: survey, select, fit, assemble, inject, record."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec.structs import replace

from daypack.config import Config
from daypack.derived.tiers import Projection, project
from daypack.errors import BadInput, DaypackError, SourceMissing, StorageFailed
from daypack.files import atomic
from daypack.forks import ThreadLock, cached_property
from daypack.history.session import History
from daypack.text.tokens import counter_named
from daypack.turn.budget import DEFAULT_LIMITS, Limits, limits_from
from daypack.turn.compaction import Compactions
from daypack.turn.evidence.pack_files import render_pack_json, render_pack_md
from daypack.turn.evidence.record import Packed, append_record, describe, is_current
from daypack.turn.evidence.replay import check_version, read_additions, read_epoch, read_turn, replay_parts, verify
from daypack.turn.evidence.view import Parts
from daypack.turn.hand_edits import HandEdits
from daypack.turn.items import SEEN_BY_DEFAULT
from daypack.turn.ledger import RecordedTurn
from daypack.turn.pack.assemble import Assembly, assemble
from daypack.turn.pack.fit import Fitted, fit
from daypack.turn.pack.inject import inject
from daypack.turn.pack.select import select
from daypack.turn.replies.replies import Replies
from daypack.turn.surface import Addition, Epoch, LastTurn, Request, Surface
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.memory import MemoryPort
from daypack.turn.survey.survey import after_compaction, survey
from daypack.turn.turn import Turn
from daypack.types.context import ContextItem
from daypack.types.deadline import Deadline
from daypack.types.history import Message
from daypack.types.kinds import TARGETS, Target, check_target

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from daypack.turn.caller.ids import TurnIds
    from daypack.turn.evidence.calls.fold import CallFold
    from daypack.turn.questions import Questions
    from daypack.turn.replies.reception import Reception
    from daypack.turn.replies.stream import ReplyStream
    from daypack.turn.tools import Tools

Budget = int | str | Mapping[str, Any] | Limits | None


class TurnOptions(TypedDict, total=False):
    """The arguments of `prepare`."""

    budget: Budget
    model: str | None
    target: str
    items: Iterable[ContextItem | Mapping[str, Any]] | None
    protocol: bool | None
    tools: Iterable[object] | None
    ids: "TurnIds | None"
    dry_run: bool


_MAX_COMPACTIONS = 2  # in one turn


class Turns:
    """Prepares the turns of one session and replays them."""

    def __init__(
        self, history: History, config: Config, *, name: str, agent: str, receptions: "list[Reception] | None" = None
    ) -> None:
        self._history = history
        self._name = name
        self._agent = agent
        self.inputs = TurnInputs(history, config)
        self._edits = HandEdits(history, self.inputs.ledger)
        self._epochs: dict[str, Epoch] = {}
        self._additions: dict[str, tuple[Addition, ...]] = {}  # event of a turn -> those in its tail
        self._refreshing: set[Target] = set()  # targets whose next turn begins an epoch
        self._threads = ThreadLock()
        self._replies = Replies(self.inputs, self._threads, [] if receptions is None else receptions)
        self.compactions = Compactions(self.inputs, self._edits, self._threads)

    @cached_property
    def calls(self) -> "CallFold":
        """All calls so far as rows: the turns that daypack prepared, and the calls of other programs."""
        from daypack.turn.evidence.calls.fold import CallFold  # noqa: PLC0415 — no turn needs it

        return CallFold(self._history)

    @property
    def memory(self) -> MemoryPort | None:
        """The memory across sessions that turns use; None if there is none."""
        return self.inputs.memory

    @memory.setter
    def memory(self, port: MemoryPort | None) -> None:
        self.inputs.memory = port

    def prepare(self, **options: Unpack[TurnOptions]) -> Turn:
        """Prepare one turn and record it; a dry run records nothing and compacts nothing."""
        if unknown := options.keys() - TurnOptions.__annotations__.keys():
            raise TypeError(f"prepare() got an unexpected keyword argument {min(unknown)!r}")
        target, dry_run = options.get("target", "model"), options.get("dry_run", False)
        target = target if target == "model" else check_target(target)
        request = self._request(options.get("budget"), target, options.get("items"))
        request = replace(request, model=options.get("model"), protocol=options.get("protocol"))
        if ids := options.get("ids"):
            request = replace(request, ids=self._read_ids(ids))
        given, tools = options.get("tools"), None
        if given is not None and (tools := self._read_tools(given, request)):
            request = replace(request, tools=tools.cost)
        with self._threads:
            if not dry_run and (self._replies.unrecorded or self.inputs.ledger.read().protocol_used):
                self._replies.settle()  # records what could not be recorded when replies arrived
            while (turn := self._prepare(request, tools, recording=not dry_run)) is None:
                continue  # something was erased in the meantime
        if self.inputs.history_search.index.requested:
            self.inputs.history_search.index.start_requested()
        if not dry_run and request.target == "model":
            stable_tokens, room_tokens = turn.record.stable.tokens, request.limits.room.tokens
            filling_up = stable_tokens >= request.policy.soft_share * room_tokens  # never right after an epoch began
            filling_up = filling_up and stable_tokens >= request.policy.background_share(room_tokens) * room_tokens
            self.compactions.start_in_background(turn.parts.epoch.event, filling_up=filling_up)
        return turn

    def _prepare(self, request: Request, tools: "Tools | None", *, recording: bool) -> Turn | None:
        """Pass a request through the six stages; an overflow compacts what leaves the window and fits again.

        Return None if something was erased in the meantime: the turn would bring it back.
        """
        compacting = recording and request.target == "model"
        ledger = self.inputs.ledger.read()
        recorded, erased = ledger.turns.get(request.target), ledger.erased
        surface = survey(self.inputs, request, self._last_turn(recorded, request.target))
        selection = select(surface)
        fitted = fit(surface, selection, compacting=compacting)
        if fitted.reason and fitted.start > surface.first:
            surface, fitted = self._with_rules(request, surface, fitted, recording=recording)
        rounds = _MAX_COMPACTIONS if compacting else 0
        while fitted.reason and rounds and self.compactions.make_room(surface, fitted):
            rounds -= 1  # the document takes space too: once more for what it pushed out
            surface = after_compaction(self.inputs, request, surface, fitted.reason)
            fitted = fit(surface, select(surface), compacting=True)
            surface, fitted = self._with_rules(request, surface, fitted, recording=True)
        assembly = assemble(
            surface.target, fitted.prefix, fitted.messages, fitted.additions, fitted.volatile, fitted.redacted
        )
        injection = inject(assembly, (*fitted.prefix, *fitted.volatile))
        tools_changed = bool(recorded) and recorded.tools != (tools.digest if tools else "")
        expected = 0 if tools_changed else self._expected_cached(recorded, surface, fitted, assembly)
        packed = Packed(
            session=self._name,
            agent=self._agent,
            surface=surface,
            fitted=fitted,
            assembly=assembly,
            injection=injection,
            carries=(recorded.added or None) if recorded and fitted.reason is None else None,
            expected_cached_tokens=expected,
            redacting=self.inputs.redacting,
            tools=tools,
            cache_lost="tools_changed" if tools_changed else "",
            ids=request.ids,
        )
        if not recording:
            return self._record(packed, None)
        return self._history.locked(partial(self._record, packed, erased))

    def _with_rules(
        self, request: Request, surface: Surface, fitted: Fitted, *, recording: bool
    ) -> tuple[Surface, Fitted]:
        """Add the standing rules of the messages outside the tail. They shorten it, so that more may be outside."""
        from daypack.turn.survey.rules import with_rules  # noqa: PLC0415 — only when messages leave the window

        meter = self.inputs.meter(request.model)
        while fitted.reason and fitted.start > surface.first and surface.target in SEEN_BY_DEFAULT:
            shown = with_rules(self.inputs.rules, surface, fitted.start, meter, recording=recording)
            if shown is surface:
                break
            surface = shown
            fitted = fit(surface, select(surface), compacting=recording and request.target == "model")
        self.compactions.left_rules = recording and self.inputs.rules.unread > 0
        return surface, fitted

    def _record(self, packed: Packed, erased: int | None) -> Turn | None:
        """Append the evidence of a turn and write the pack; None: something was erased since the turn began.

        Called under the lock: an erasure waits until the texts of this turn can be found. `erased` is the newest
        erasure when the turn began; None for a dry run, which records nothing.
        """
        recording = erased is not None
        if recording and self.inputs.ledger.read().erased != erased:
            return None
        record, epoch = describe(packed)
        event_id = None
        if recording:
            if packed.surface.budget_from_file:
                self._edits.record_budget()
            if packed.surface.pins_edited:
                self._edits.record_pins()
            if packed.tools:
                from daypack.turn.tools import store_tools  # noqa: PLC0415 — not every agent has tools

                store_tools(self._history, packed.tools)
            event_id = append_record(self._history, record)
            if record.opening:  # the event of its first turn is the epoch's name
                epoch = self._epochs[event_id] = replace(epoch, event=event_id)
            self._remember(event_id, packed.fitted.additions)
        parts = Parts(
            session=self._name,
            agent=self._agent,
            epoch=epoch,
            messages=packed.fitted.messages,
            repeats=packed.fitted.repeats,
            additions=packed.fitted.additions,
            volatile=packed.fitted.volatile,
            tools=packed.tools.definitions if packed.tools else (),
        )
        turn = Turn(parts, record, event_id)
        turn.assembly = packed.assembly
        if recording:
            self._refreshing.discard(record.target)
            if record.target == "model":
                self._replies.prepared = turn
                try:
                    self.write_pack(turn)
                except StorageFailed as error:
                    turn.unwritten = str(error)  # the turn is recorded and can be sent
            self.inputs.ledger.read()
            self.inputs.ledger.save()
        return turn

    def accept(self, reply: object, usage: object = None, owner: object = None) -> "Message | Awaitable[Message]":
        """Append a reply, its usage and the snapshot it carries; return the message as stored."""
        return self._replies.accept(reply, usage, owner)

    def record_usage(self, message: Message, usage: object) -> None:
        """Record what the provider counted for a reply that is stored already."""
        self._replies.record_usage(message, usage)

    def stream(self, source: object, usage: object = None, owner: object = None) -> "ReplyStream":
        """Return the text of a reply as it arrives; its end stores the reply. A stream keeps its `owner` alive."""
        return self._replies.stream(source, usage, owner)

    def store_abandoned(self) -> None:
        """Store what came of the streams that are no longer read."""
        self._replies.store_abandoned()

    def tiers(self) -> Projection:
        """Return the blocks that turns show now, and those they do not show."""
        folded = self.inputs.ledger.read()
        return project(folded.tiers, folded.rounds, self.inputs.policies, redacting=self.inputs.redacting)

    def refresh(self) -> None:
        """Make the next turn of every target begin a new epoch."""
        self._refreshing.update(TARGETS)
        self.inputs.forget_answers()

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a block of instructions on or off."""
        from daypack.turn.switches import switch  # noqa: PLC0415 — a turn need not load it

        switch(self._history, self.inputs.ledger, name, on=on)

    @property
    def questions(self) -> "Questions":
        """The questions of the session, open and ended."""
        from daypack.turn.questions import Questions  # noqa: PLC0415 — few sessions have some

        return Questions(self.inputs)

    def limits(self, target: Target) -> Limits:
        """Return the session's own limits: those that were set, else those of its newest turn, else the default."""
        limits = self._edits.limits(target)
        if limits is None:
            turns = self.inputs.ledger.read().turns
            newest = turns.get(target) or turns.get("model")
            with suppress(DaypackError):  # a damaged record: `replay` reports it
                limits = self._load_epoch(newest.opening).limits if newest else None
        return limits or DEFAULT_LIMITS

    @property
    def budget_text(self) -> str | None:
        """The text of the budget that was set; None if none was."""
        return self._edits.budget_text

    def set_budget(self, budget: int | str | Mapping[str, Any] | None) -> None:
        """Write context/budget and record it."""
        self._edits.set_budget(budget)

    def replay(self, event_id: str, *, verify_digests: bool = True) -> Turn:
        """Rebuild a recorded turn from history alone and check its digests."""
        record = read_turn(self._history, event_id)
        if verify_digests:
            check_version(self._history, record, event_id)
        meter = self.inputs.meter_of(counter_named(record.tokenizer), record.model)
        parts = replay_parts(self._history, record, event_id, meter, session=self._name, agent=self._agent)
        turn = Turn(parts, record, event_id)
        if verify_digests:
            verify(self._history, turn)
        return turn

    def newest(self, target: str = "model") -> str:
        """Return the event of the newest turn for a target."""
        recorded = self.inputs.ledger.read().turns.get(check_target(target))
        if recorded is None:
            from shlex import quote  # noqa: PLC0415 — only for this error

            raise SourceMissing(
                f"no turn for {target} is recorded yet",
                operation="find turn",
                place=self._history.layout.folder,
                hint=f"prepare one with `daypack prepare {quote(self._name)}`",
            )
        return recorded.event

    def write_pack(self, turn: Turn) -> None:
        """Write pack.json and pack.md; both are derived, so they are not synced."""
        layout = self._history.layout
        atomic.make_folders(layout.context, durable=False)
        atomic.replace(layout.derived("pack"), render_pack_json(turn), durable=False)
        atomic.replace(layout.derived("pack_text"), render_pack_md(turn).encode("utf-8", "replace"), durable=False)

    def close(self) -> None:
        """Close open files; the next turn opens them again."""
        self.inputs.close()

    def _request(
        self, budget: Budget, target: Target, items: Iterable[ContextItem | Mapping[str, Any]] | None
    ) -> Request:
        seconds = self._history.clock()
        limits = limits_from(budget, target) if budget is not None else self.limits(target)
        request = Request(
            target=target,
            limits=limits,
            policy=self.inputs.window,
            start_seconds=seconds,
            budget_from_file=budget is None,
        )
        if limits.ms is not None:
            request = replace(request, deadline=Deadline.after(limits.ms / 1000, self.inputs.timer))
        if items is None:
            return request
        from daypack.turn.caller.items import read_items  # noqa: PLC0415 — few callers pass items

        return replace(request, items=tuple(read_items(items, self._history, target, self._recall)))

    def _recall(self, name: str) -> tuple[str, str]:
        from daypack.turn.recall import Lookup  # noqa: PLC0415 — few items are references to this session

        recalled = Lookup(self.inputs).recall(name)
        return recalled.source, recalled.text

    def _read_ids(self, ids: "TurnIds") -> dict[str, Any]:
        from daypack.turn.caller.ids import read_ids  # noqa: PLC0415 — few callers pass ids

        return read_ids(ids, redacting=self.inputs.redacting)

    def _read_tools(self, tools: Iterable[object], request: Request) -> "Tools | None":
        from daypack.turn.tools import read_tools, require_space  # noqa: PLC0415 — not every agent has tools

        read = read_tools(tools, self.inputs.counter(request.model))
        if read and request.target != "model":
            problem = f"a turn for {request.target} carries no tools"
            raise BadInput(problem, operation="prepare", place="tools", hint="pass tools to a turn for the model only")
        if read:
            require_space(read, request.limits)
        return read

    def _last_turn(self, recorded: RecordedTurn | None, target: Target) -> LastTurn:
        """Return the epoch of the newest turn, or the reason why it cannot continue."""
        if recorded is None:
            return LastTurn(reason="first")
        last_turn = LastTurn(last=recorded.last, tail=recorded.tail, unsearched=recorded.unsearched)
        compactions = self.inputs.ledger.read().compactions
        if recorded.erased:
            return replace(last_turn, reason="erased")
        if target in self._refreshing:
            return replace(last_turn, reason="refresh")
        if target in SEEN_BY_DEFAULT and compactions and compactions[-1] > recorded.opening_seq:
            return replace(last_turn, reason="compaction")
        if recorded.redacting != self.inputs.redacting:
            return replace(last_turn, reason="redaction_changed")  # a frozen prefix may contain secrets
        if not is_current(recorded.renderer):
            return replace(last_turn, reason="renderer_changed")
        try:
            epoch = self._epochs.get(recorded.opening) or self._load_epoch(recorded.opening)
            return replace(last_turn, epoch=epoch, additions=self._additions_of(recorded))
        except DaypackError:
            return replace(last_turn, reason="damaged")  # its event or texts; `replay` reports which

    def _expected_cached(
        self, recorded: RecordedTurn | None, surface: Surface, fitted: Fitted, assembly: Assembly
    ) -> int:
        """Return the tokens of the last turn that this one starts with."""
        if recorded is None:
            return 0
        if fitted.reason is None:
            return recorded.stable_tokens
        if recorded.prefix_sha256 != assembly.prefix_sha256:
            return 0
        same = self._same_tail(recorded, surface.tokenizer, fitted, assembly)
        return recorded.stable_tokens if same else recorded.prefix_tokens

    def _same_tail(self, recorded: RecordedTurn, tokenizer: str, fitted: Fitted, assembly: Assembly) -> bool:
        """Return True if the tail of a new epoch starts with that of the last turn, which also had additions."""
        try:
            former = self._load_epoch(recorded.opening)
            if (former.start, former.head, former.tokenizer) != (fitted.start, fitted.head, tokenizer):
                return False
            sent = self.replay(recorded.event, verify_digests=False).assembly.given.messages
        except DaypackError:
            return False
        return assembly.given.messages[: len(sent)] == sent

    def _additions_of(self, recorded: RecordedTurn) -> tuple[Addition, ...]:
        """Return what the turns of an epoch up to the newest added to its tail."""
        if not recorded.added:
            return ()
        additions = self._additions.get(recorded.event)
        if additions is None:
            record = read_turn(self._history, recorded.event)
            meter = self.inputs.meter_of(counter_named(record.tokenizer), record.model)
            additions = self._remember(recorded.event, read_additions(self._history, record, meter))
        return additions

    def _remember(self, event_id: str, additions: tuple[Addition, ...]) -> tuple[Addition, ...]:
        if len(self._additions) > 16:
            self._additions.clear()
        self._additions[event_id] = additions
        return additions

    def _load_epoch(self, event_id: str) -> Epoch:
        epoch = self._epochs.get(event_id)
        if epoch is None:
            if len(self._epochs) > 16:
                self._epochs.clear()
            epoch = self._epochs[event_id] = read_epoch(self._history, event_id)
        return epoch
