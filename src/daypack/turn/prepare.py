"""The turns of one session: prepare one, replay one, keep the proof."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from daypack.config import Config
from daypack.derived.tiers import Projection, project
from daypack.errors import DaypackError, ReplayMismatch, SourceMissing, StorageFailed
from daypack.files import atomic
from daypack.files.lock import ThreadLock
from daypack.history.draft import draft_event
from daypack.history.layout import check_name
from daypack.history.session import History
from daypack.text.redact.redact import RULES_VERSION
from daypack.text.tokens import counter_named
from daypack.turn import questions
from daypack.turn.compaction import LEAST_ROOM, Compactions, reserve
from daypack.turn.dialects import RENDERER
from daypack.turn.evidence import record as evidence
from daypack.turn.evidence.record import Stable, TurnRecord
from daypack.turn.evidence.view import Parts
from daypack.turn.hand_edits import Edits
from daypack.turn.items import SEEN_BY_DEFAULT, Item
from daypack.turn.ledger import NOT_REDACTED, SWITCH, TURN, Newest
from daypack.turn.limits import Limits, limits_from
from daypack.turn.pack.assemble import assemble
from daypack.turn.pack.fit import Fitted, fit
from daypack.turn.pack.inject import rendered
from daypack.turn.pack.select import select
from daypack.turn.pack.stubs import masked, referring, repeated
from daypack.turn.pack.tail import settle
from daypack.turn.pack.volatile import following_order
from daypack.turn.ports import MemoryPort
from daypack.turn.replies import Replies
from daypack.turn.survey.caller_items import read_items
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.messages import MESSAGE_TOKENS, Recent
from daypack.turn.survey.surface import Epoch, Request, Surface
from daypack.turn.survey.survey import as_seen, hides, survey
from daypack.turn.turn import Turn
from daypack.types.context import ContextItem
from daypack.types.history import Message
from daypack.types.kinds import TARGETS, Target, check_target

VERSION = f"{RENDERER}.{RULES_VERSION}"
Given = int | Mapping[str, Any] | Limits | None


class Turns:
    """Prepares and replays."""

    def __init__(self, history: History, config: Config, *, name: str, agent: str) -> None:
        self._history = history
        self._name = name
        self._agent = agent
        self.inputs = TurnInputs(history, config)
        self._edits = Edits(history, self.inputs.ledger)
        self._epochs: dict[str, Epoch] = {}
        self._refreshing: set[Target] = set()  # whose next turn begins an epoch
        self._threads = ThreadLock()
        self._replies = Replies(self.inputs, self._threads)
        self.compactions = Compactions(self.inputs, self._edits, self._threads)

    @property
    def memory(self) -> MemoryPort | None:
        """The memory across sessions that turns ask, if there is one."""
        return self.inputs.memory

    @memory.setter
    def memory(self, port: MemoryPort | None) -> None:
        self.inputs.memory = port

    def prepare(
        self,
        *,
        budget: Given = None,
        model: str | None = None,
        target: str = "model",
        items: Iterable[ContextItem | Mapping[str, Any]] | None = None,
        protocol: bool | None = None,
        dry_run: bool = False,
    ) -> Turn:
        """Survey, select, fit, assemble, inject and record one turn."""
        known = check_target(target)
        seconds = self._history.clock()
        limits = limits_from(budget, known) if budget is not None else self._edits.limits(known)
        own = tuple(read_items(items or (), self._history, known))
        request = Request(target=known, limits=limits, model=model, items=own, start_seconds=seconds, protocol=protocol)
        with self._threads:
            if not dry_run:
                self._replies.settle()
            turn, surface = self._pass(request, dry_run=dry_run)
            if not dry_run:
                self._record(turn, surface, filed=budget is None)
                self._refreshing.discard(known)
                if known == "model":
                    self._replies.prepared = turn
        if not dry_run and known == "model":
            self.compactions.look_after(turn)
        return turn

    def _pass(self, request: Request, *, dry_run: bool) -> tuple[Turn, Surface]:
        """The stages before the record, one after the other."""
        newest = self.inputs.ledger.read().turns.get(request.target)
        request = msgspec.structs.replace(request, shown=newest.last if newest else 0)
        epoch, reason = self._epoch(newest, request.target)
        surface = survey(self.inputs, request, epoch)
        fitted = fit(surface, select(surface))
        if not fitted.reason and newest and not _begins(fitted.messages, newest.shown):
            fitted = msgspec.structs.replace(fitted, reason="damaged")  # a message of the tail was lost since
        if fitted.reason in ("overflow", "withdrawn", "damaged"):
            # What leaves the window now can be looked for at once.
            reason = fitted.reason
            wanted = reason == "overflow" and request.target == "model" and not dry_run
            request = msgspec.structs.replace(request, reserved_tokens=reserve(request.limits) if wanted else 0)
            surface = survey(self.inputs, request, None)
            fitted = msgspec.structs.replace(fit(surface, select(surface)), reason=reason)
            if wanted and self.compactions.make_room(surface, fitted):
                surface = survey(self.inputs, request, None)
                fitted = msgspec.structs.replace(fit(surface, select(surface)), reason=reason)
        else:
            reason = reason or fitted.reason
            fitted = msgspec.structs.replace(fitted, reason=reason)
            wanted = request.target == "model" and not dry_run and request.limits.room.tokens >= LEAST_ROOM
            if reason and wanted and self.compactions.make_room(surface, fitted):
                surface = survey(self.inputs, request, None)
                fitted = msgspec.structs.replace(fit(surface, select(surface)), reason=reason)
        return self._assemble(surface, fitted, newest), surface

    def accept(self, reply: object, usage: object = None) -> Message:
        """Append a reply, what it cost and the snapshot it carries; the answer is the message as stored."""
        return self._replies.accept(reply, usage)

    def tiers(self) -> Projection:
        """Return what the model's own memory shows now, and what it does not."""
        folded = self.inputs.ledger.read()
        return project(folded.tiers, folded.rounds, self.inputs.policies, redacting=self.inputs.redacting)

    def refresh(self) -> None:
        """Let the next turn begin a new epoch."""
        self._refreshing.update(TARGETS)

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a conditional block on or off."""
        self._history.append_event(draft_event(SWITCH, {"name": check_name(name, "switch"), "on": bool(on)}))

    def add_question(self, question: str, *, severity: str = "medium", requested_from: str | None = None) -> str:
        """Record an open question and return its id."""
        return questions.add_question(self._history, question, severity=severity, requested_from=requested_from)

    def resolve_question(self, missing_id: str) -> None:
        """Record that a question is answered."""
        questions.resolve_question(self._history, self.inputs.ledger, missing_id)

    def set_budget(self, budget: int | Mapping[str, Any] | None) -> None:
        """Write context/budget and record it."""
        self._edits.set_budget(budget)

    def replay(self, event_id: str, *, verify: bool = True) -> Turn:
        """Make a recorded turn again, from history alone, and prove that it is the same."""
        record = evidence.read_turn(self._history, event_id)
        if record.renderer != VERSION and verify:
            raise ReplayMismatch(
                f"{event_id} was rendered by version {record.renderer}, this is {VERSION}",
                operation="replay",
                place=self._history.layout.events,
                hint="replay it with the daypack that made it",
            )
        epoch = evidence.read_epoch(self._history, record.epoch or event_id)  # not from memory: what is kept is proved
        inputs = self.inputs
        scales = inputs.scales(counter_named(record.tokenizer))
        redacting = NOT_REDACTED not in record.redacted
        past = evidence.recall_past(self._history, record.past, scales, redacting=redacting)
        volatile = sorted((*evidence.restore(self._history, record.items), *past), key=following_order)
        recent = Recent(self._history, scales, redacting=redacting)
        raw = evidence.messages_of(self._history, epoch, record.last)
        cleared = ((one, _shown(recent, one)) for one in raw if not hides(one, record.target))
        seen = (masked(one, shown) if one.seq in epoch.masked else shown for one, shown in cleared)
        shown = [as_seen(one, record.target) for one in seen]
        if record.target in SEEN_BY_DEFAULT:
            first = repeated(shown, epoch.last)
            shown = [referring(one, first) for one in shown]
        head = 1 if epoch.head is not None and shown else 0
        messages = (*shown[:head], *settle(shown[head:]).messages)
        parts = Parts(session=self._name, agent=self._agent, epoch=epoch, messages=messages, volatile=tuple(volatile))
        turn = Turn(parts, record, event_id)
        if verify:
            self._verify(turn)
        return turn

    def newest(self, target: str = "model") -> str:
        """Return the event of the newest turn for a target."""
        found = self.inputs.ledger.read().turns.get(check_target(target))
        if found is None:
            raise SourceMissing(
                f"no turn for {target} was recorded yet",
                operation="find turn",
                place=self._history.layout.folder,
                hint=f"make one with `daypack pack {self._name}`",
            )
        return found.event

    def write_pack(self, turn: Turn) -> None:
        """Write pack.json and pack.md; both are derived, and no power cut is worth a sync."""
        layout = self._history.layout
        atomic.make_folders(layout.context, durable=False)
        atomic.replace(layout.derived("pack"), turn.pack_json, durable=False)
        atomic.replace(layout.derived("pack_text"), turn.pack_md.encode("utf-8", "replace"), durable=False)

    def close(self) -> None:
        """Close what is open; the next turn opens it again."""
        self.inputs.close()

    def _epoch(self, newest: Newest | None, target: Target) -> tuple[Epoch | None, str]:
        """Return the epoch of the newest turn if it can go on, else why a new one begins."""
        if newest is None:
            return None, "first"
        if target in self._refreshing:
            return None, "refresh"
        if target in SEEN_BY_DEFAULT and self.inputs.working.newest_seq > int(newest.opening.removeprefix("ev-")):
            return None, "compaction"
        if newest.redacting != self.inputs.redacting:
            return None, "redaction_changed"  # a frozen prefix must not hold what is to be hidden from now on
        if newest.renderer != VERSION:
            return None, "renderer_changed"
        try:
            return self._load_epoch(newest.opening), ""
        except DaypackError:
            return None, "damaged"  # its event or texts; replay tells which

    def _same_tail(self, newest: Newest, epoch: Epoch, fitted: Fitted) -> bool:
        """Whether a new epoch sends what the turn before sent all the same."""
        try:
            former = self._load_epoch(newest.opening)
        except DaypackError:
            return False
        begins = [(one.start, one.head, one.tokenizer, one.masked) for one in (former, epoch)]
        return begins[0] == begins[1] and _begins(fitted.messages, newest.shown)

    def _load_epoch(self, event_id: str) -> Epoch:
        if event_id not in self._epochs:
            if len(self._epochs) > 16:
                self._epochs.clear()
            self._epochs[event_id] = evidence.read_epoch(self._history, event_id)
        return self._epochs[event_id]

    def _assemble(self, surface: Surface, fitted: Fitted, newest: Newest | None) -> Turn:
        assembly = assemble(surface.target, fitted.prefix, fitted.messages, fitted.volatile)
        begins = bool(fitted.reason)
        epoch = surface.epoch
        if begins or epoch is None:
            epoch = Epoch(
                event="",
                reason=fitted.reason,
                limits=surface.limits,
                tokenizer=surface.tokenizer,
                start=fitted.start,
                head=fitted.head,
                prefix=fitted.prefix,
                prefix_sha256=assembly.prefix_sha256,
                skipped=fitted.skipped,
                masked=fitted.masked,
                last=surface.last,
                compaction=surface.compaction,
            )
        expected = 0
        if newest and not begins:
            expected = newest.stable_tokens
        elif newest and newest.prefix_sha256 == assembly.prefix_sha256:
            expected = newest.stable_tokens if self._same_tail(newest, epoch, fitted) else newest.prefix_tokens
        stable = Stable(
            fitted.prefix_cost.plus(fitted.tail_cost).tokens,
            fitted.prefix_cost.tokens,
            assembly.prefix_sha256,
            expected,
        )
        proof = {"assembly": assembly.sha256}
        if surface.target == "model":
            proof |= rendered(assembly)
        identity = sha256(f"{self._agent}/{self._name}/{surface.target}/{surface.now}/{assembly.sha256}".encode())
        redacted = {str(seq): kinds for seq, kinds in fitted.redacted.items()}
        record = TurnRecord(
            renderer=VERSION,
            context_id=f"ctx-{identity.hexdigest()[:24]}",
            target=surface.target,
            at=surface.now,
            tokenizer=surface.tokenizer,
            model=surface.model,
            limits=surface.limits,
            used=fitted.cost,
            ms=surface.ms,
            first=surface.first,
            last=surface.last,
            user=surface.user.message.seq if surface.user else None,
            epoch=None if begins else epoch.event,
            opening=evidence.opening_of(epoch) if begins else None,
            items=tuple(item for item in fitted.volatile if item.span is None),
            past=tuple(_quoted(item) for item in fitted.volatile if item.span is not None),
            omitted=fitted.omitted,
            missing=fitted.missing,
            redacted=redacted if self.inputs.redacting else {NOT_REDACTED: ()},
            shown=(len(fitted.messages), fitted.messages[-1].seq) if fitted.messages else (0, 0),
            stable=stable,
            sha256=proof,
        )
        parts = Parts(
            session=self._name, agent=self._agent, epoch=epoch, messages=fitted.messages, volatile=fitted.volatile
        )
        turn = Turn(parts, record, None)
        turn.assembly = assembly
        return turn

    def _record(self, turn: Turn, surface: Surface, *, filed: bool) -> None:
        """Append the evidence and write the pack."""
        history = self._history
        durable = history.config.durability == "sync"
        record = turn.record
        if filed:
            self._edits.take_in_budget()
        self._edits.take_in_pins()
        items = evidence.capture(history, record.items, durable=durable)
        opening = record.opening
        if opening:
            kept = evidence.capture(history, opening.items, durable=durable)
            opening = msgspec.structs.replace(opening, items=kept)
        data = evidence.brief(msgspec.structs.replace(record, items=items, opening=opening))
        event = history.append_event(draft_event(TURN, data))
        if opening:
            # The first turn of an epoch names it from now on.
            epoch = msgspec.structs.replace(turn.parts.epoch, event=event.id)
            self._epochs[event.id] = epoch
            turn.parts = msgspec.structs.replace(turn.parts, epoch=epoch)
        turn.event_id = event.id
        if surface.target == "model":
            try:
                self.write_pack(turn)
            except StorageFailed as error:
                turn.unwritten = str(error)  # the turn itself is recorded and can be sent
        self.inputs.ledger.read()
        self.inputs.ledger.save()

    def _verify(self, turn: Turn) -> None:
        proof = {"assembly": turn.assembly.sha256}
        if turn.target == "model":
            proof |= rendered(turn.assembly)
        if different := sorted(name for name, digest in turn.record.sha256.items() if proof.get(name) != digest):
            raise ReplayMismatch(
                f"{turn.event_id} gives other bytes than it did ({', '.join(different)})",
                operation="replay",
                place=self._history.layout.folder,
                hint="a message or captured text was changed or erased since; see `daypack doctor`",
            )


def _begins(messages: Sequence[Message], shown: tuple[int, int]) -> bool:
    """Whether a tail begins with the one that was shown before: so many messages, the last with that number."""
    count, last = shown
    return not count or (len(messages) >= count and messages[count - 1].seq == last)


def _quoted(item: Item) -> tuple[int, int, int, float]:
    start, stop = item.span or (0, 0)
    return _seq(item), start, stop, round(item.score or 0.0, 3)


def _seq(item: Item) -> int:
    return int(item.id.rpartition(":")[2]) if item.span is not None else 0


def _shown(recent: Recent, message: Message) -> Message:
    return recent.weigh(message, MESSAGE_TOKENS).message
