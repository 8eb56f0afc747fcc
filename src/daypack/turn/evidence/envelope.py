"""The envelope: one turn as a portable document of the envelope model.

The surface contains each item in full, once; the later objects refer to items by id and digest.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from daypack.turn.caller.ids import event_fields
from daypack.turn.conformance.digests import RFC_8785, digests_of
from daypack.turn.evidence.envelope_items import contents_of, message_ref
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.evidence.view import TOOLS, TurnView
from daypack.turn.items import Missing
from daypack.turn.ledger import NOT_REDACTED
from daypack.turn.pack.additions import added_items
from daypack.types.context import (
    ContextAssembly,
    ContextBudget,
    ContextCompaction,
    ContextEnvelope,
    ContextEvent,
    ContextInjection,
    ContextItem,
    ContextSelection,
    ContextSummary,
    ContextSurface,
    ContextWindow,
    MissingContext,
)
from daypack.types.shapes import Coverage, Link, Ranking, Segment


def envelope_of(
    turn: TurnView, *, scope: str = "turn", exported: bool = False, ended: Sequence[Missing] = ()
) -> ContextEnvelope:
    """Return the envelope of a turn; an export also has the questions that have `ended`."""
    record, ids = turn.record, turn.record.context_id
    items = contents_of(turn)
    summaries = _summaries(turn)
    compactions = _compactions(turn, summaries, scope)
    compacted = (ref for record in (*compactions, *summaries) for ref in record.source_item_refs)
    surface = _surface(turn, items, compacted, scope)
    selection = _selection(turn, items)
    budget, window = _budget(turn), _window(turn)
    assembly = _assembly(turn)
    injections = _injections(turn)
    missing = _missing(turn, scope, ended)
    events = _events(turn, surface, compactions, exported=exported)
    envelope = ContextEnvelope(
        context_id=ids,
        scope=scope,
        lifecycle="injected" if turn.event_id else "assembled",
        created_at=record.at,
        producer=f"daypack:{turn.parts.agent}/{turn.parts.session}",
        actor_refs=tuple(record.ids.get("actor_refs", ())),
        runtime_refs=({"model": record.model},) if record.model else (),
        surface_refs=(surface.surface_id,),
        item_refs=tuple(item.item_id for item in items),
        selection_refs=(selection.selection_id,),
        budget_ref=budget.budget_id,
        window_refs=(window.window_id,),
        assembly_refs=(assembly.assembly_id,),
        injection_refs=tuple(injection.injection_id for injection in injections),
        compaction_refs=tuple(compaction.compaction_id for compaction in compactions),
        policy_refs=tuple(record.ids.get("policy_refs", ())),
        missing_context_refs=tuple(context.missing_id for context in missing),
        evidence_refs=tuple({"rendering": name, "digest": digest} for name, digest in _renderings(record)),
        digest_form=RFC_8785,
        surfaces=(surface,),
        selections=(selection,),
        budgets=(budget,),
        windows=(window,),
        assemblies=(assembly,),
        injections=injections,
        compactions=compactions,
        summaries=summaries,
        missing_contexts=missing,
        events=events,
        metadata={
            "session": turn.parts.session,
            "agent": turn.parts.agent,
            "renderer": record.renderer,
            **({"ids": record.ids} if record.ids else {}),
        },
    )
    # Computed from the document, as every other runtime does.
    return replace(envelope, digests=digests_of(msgspec.json.decode(msgspec.json.encode(envelope))))


def _renderings(record: TurnRecord) -> list[tuple[str, str]]:
    return [*record.sha256.items(), *([(TOOLS, record.tools.digest)] if record.tools else ())]


def _surface(turn: TurnView, items: tuple[ContextItem, ...], compacted: Iterable[str], scope: str) -> ContextSurface:
    kind = {"turn": "turn_surface", "task": "task_surface", "session": "session_surface"}
    more = {"tool_invocation": "tool_surface", "review": "review_surface", "handoff": "handoff_surface"}
    omitted = (omission.item for omission in turn.omitted)
    return ContextSurface(
        surface_id=f"{turn.record.context_id}/surface",
        scope=scope,
        created_at=turn.record.at,
        surface_kind=(kind | more).get(scope, "custom"),
        available_item_refs=tuple(dict.fromkeys((*(item.item_id for item in items), *omitted, *compacted))),
        items=items,
        visibility=(turn.target,),
    )


def _selection(turn: TurnView, items: tuple[ContextItem, ...]) -> ContextSelection:
    record = turn.record
    selected = tuple(item.item_id for item in items)
    omitted = tuple(omission.recorded() for omission in turn.omitted)
    why = f"new epoch: {turn.new_epoch}" if turn.new_epoch else f"continues epoch {record.epoch}"
    return ContextSelection(
        selection_id=f"{record.context_id}/selection",
        surface_id=f"{record.context_id}/surface",
        created_at=record.at,
        target=turn.target,
        query=f"messages:{record.user}" if record.user else None,
        candidate_item_refs=tuple(dict.fromkeys((*selected, *(omission.item for omission in turn.omitted)))),
        selected_item_refs=selected,
        omitted_item_refs=omitted,
        ranking_signals=_signals(turn),
        selection_policy="daypack: instructions, then recent messages, then the best matches that fit",
        budget_ref=f"{record.context_id}/budget",
        rationale=f"{len(selected)} of {len(selected) + len(omitted)} candidates; {why}",
    )


def _signals(turn: TurnView) -> dict[str, Ranking]:
    signals: dict[str, Ranking] = {}
    for item in turn.inserted:
        ranking: Ranking = {"authority": item.priority, "token_cost": float(item.tokens)}
        if item.score is not None:
            ranking = {"relevance": item.score, "token_cost": float(item.tokens)}
        if item.source.startswith("context/pinned/"):
            ranking["user_pin"] = True
        signals[item.id] = ranking
    return signals


def _budget(turn: TurnView) -> ContextBudget:
    record, limits, used = turn.record, turn.record.limits, turn.record.used
    overflow = any(omission.reason in ("budget_limit", "too_large") for omission in turn.omitted)
    return ContextBudget(
        budget_id=f"{record.context_id}/budget",
        target=turn.target,
        created_at=record.at,
        max_tokens=limits.tokens,
        reserved_tokens=limits.reserved_tokens,
        max_bytes=limits.bytes,
        max_items=limits.items,
        max_ms=limits.ms,
        visibility=(turn.target,),
        actual_tokens=used.tokens,
        actual_bytes=used.bytes,
        actual_items=used.items,
        actual_ms=record.ms,
        token_method=record.tokenizer,
        # An item that does not fit is omitted as a whole and stays searchable; none is truncated.
        overflow_strategy="defer_to_retrieval" if overflow else "reject",
        window_ref=f"{record.context_id}/window",
    )


def _window(turn: TurnView) -> ContextWindow:
    record, stable = turn.record, turn.record.stable
    after = record.used.tokens - stable.tokens
    tools = record.tools
    parts = (
        *([(TOOLS, tools.tokens, ())] if tools else ()),
        (
            "prefix",
            stable.prefix_tokens - (tools.tokens if tools else 0),
            tuple(item.id for item in turn.parts.epoch.prefix),
        ),
        ("tail", stable.tokens - stable.prefix_tokens, _tail(turn)),
        ("after", after, tuple(item.id for item in turn.parts.volatile)),
    )
    segments = [
        Segment(segment_id=f"{record.context_id}/{name}", role=name, actual_tokens=tokens, item_refs=refs, order=at)
        for at, (name, tokens, refs) in enumerate(parts, 1)
    ]
    segments.append(
        Segment(
            segment_id=f"{record.context_id}/answer",
            role="answer",
            reserved_tokens=record.limits.reserved_tokens,
            order=len(parts) + 1,
        )
    )
    return ContextWindow(
        window_id=f"{record.context_id}/window",
        target=turn.target,
        segments=tuple(segments),
        created_at=record.at,
        max_tokens=record.limits.tokens,
        reserved_tokens=record.limits.reserved_tokens,
        actual_tokens=record.used.tokens,
        budget_ref=f"{record.context_id}/budget",
        metadata={
            "prefix_sha256": stable.prefix_sha256,
            "stable_tokens": stable.tokens,
            "expected_cached_tokens": stable.expected_cached_tokens,
        },
    )


def _tail(turn: TurnView) -> tuple[str, ...]:
    return (*map(message_ref, turn.parts.messages), *(item.id for item in added_items(turn.parts.additions)))


def _assembly(turn: TurnView) -> ContextAssembly:
    record = turn.record
    # The pack names a tail by its range of messages; an envelope has an item for each of them.
    blocks = tuple(
        replace(block, item_refs=_tail(turn)) if block.block_id.startswith("tail-") else block
        for block in turn.assembly.blocks
    )
    return ContextAssembly(
        assembly_id=f"{record.context_id}/assembly",
        target=turn.target,
        ordered_blocks=blocks,
        created_at=record.at,
        wrapping_policy="daypack: instructions by name, data fenced with a mark from its digest",
        separator_policy="blank line",
        visibility=(turn.target,),
        budget_ref=f"{record.context_id}/budget",
        window_ref=f"{record.context_id}/window",
        source_item_refs=tuple(dict.fromkeys(ref for block in blocks for ref in block.item_refs)),
        redaction_state="masked" if _redacted(turn) or _redacted_by_owner(turn) else "none",
        hash=turn.assembly.sha256,
    )


def _injections(turn: TurnView) -> tuple[ContextInjection, ...]:
    return tuple(
        ContextInjection(
            injection_id=f"{turn.record.context_id}/injection-{at}",
            assembly_id=f"{turn.record.context_id}/assembly",
            target=turn.target,
            injection_point=injected.point,
            created_at=turn.record.at,
            native_id=turn.event_id,
            visibility=(turn.target,),
            hash=injected.hash,
            metadata={"blocks": list(injected.blocks)},
        )
        for at, injected in enumerate(turn.injections, 1)
    )


def _missing(turn: TurnView, scope: str, ended: Sequence[Missing]) -> tuple[MissingContext, ...]:
    known = {missing.id for missing in turn.missing}
    return tuple(
        MissingContext(
            missing_id=missing.id,
            scope=scope,
            question=missing.question,
            severity=missing.severity,
            status="requested" if missing.status == "open" and missing.requested else missing.status,
            created_at=missing.asked_at or turn.record.at,
            needed_for=missing.needed_for,
            requested_from=missing.requested,
            candidate_sources=missing.sources,
            blocked_actions=missing.blocked_actions,
            resolution_refs=missing.resolution_refs,
        )
        for missing in (*turn.missing, *(question for question in ended if question.id not in known))
    )


def _compactions(turn: TurnView, summaries: tuple[ContextSummary, ...], scope: str) -> tuple[ContextCompaction, ...]:
    """Return the compaction the epoch is based on, or the removal of messages from its window without one."""
    brief = turn.parts.epoch.compaction
    if brief:
        return (
            ContextCompaction(
                compaction_id=brief.id,
                scope=scope,
                source_item_refs=(brief.source,),
                method=brief.method,
                created_at=brief.at or turn.record.at,
                summary_ref=summaries[0].summary_id if summaries else None,
                trigger=brief.trigger,
                coverage=Coverage(
                    items_covered=brief.through,
                    estimated_tokens_before=brief.before_tokens,
                    estimated_tokens_after=brief.after_tokens,
                    source=f"messages:1-{brief.through}",
                ),
                # The notes quote what was lost: for those who may read the summary of it.
                loss_notes=brief.losses if summaries else (),
                replacement_policy="window_only",
                metadata={"model": brief.model},
            ),
        )
    over_budget = (omission.item for omission in turn.omitted if omission.reason == "budget_limit")
    removed = tuple(item for item in over_budget if item.startswith("messages:"))
    if turn.parts.epoch.reason != "overflow" or not removed:
        return ()
    return (
        ContextCompaction(
            compaction_id=f"{turn.record.context_id}/compaction",
            scope=scope,
            source_item_refs=removed,
            method="custom",
            created_at=turn.record.at,
            trigger="token_pressure",
            coverage=Coverage(estimated_tokens_after=turn.stable_tokens, source=removed[0]),
            loss_notes=("removed from the window without a summary; still searched for every question",),
            replacement_policy="window_only",
        ),
    )


def _summaries(turn: TurnView) -> tuple[ContextSummary, ...]:
    """Return CONTEXT.md with its coverage, if it is in the pack."""
    brief = turn.parts.epoch.compaction
    item = next((item for item in turn.parts.epoch.prefix if item.kind == "context_doc"), None)
    if not (brief and item):
        return ()
    return (
        ContextSummary(
            summary_id=f"{brief.id}/summary",
            content=item.text,
            source_item_refs=(f"messages:1-{brief.through}",),
            summary_kind="thread_summary",
            coverage=Coverage(items_covered=brief.through, source=f"messages:1-{brief.through}"),
            loss_notes=brief.losses,
            refresh_policy={"when": brief.refresh},
            created_at=brief.at or None,
        ),
    )


def _redacted(turn: TurnView) -> list[str]:
    """Return the ids of messages and items that contained secrets."""
    shown = {message.seq for message in turn.parts.messages}
    seqs = sorted(int(seq) for seq in turn.record.redacted if seq != NOT_REDACTED)
    items = [item.id for item in turn.inserted if item.redacted]
    return [*(f"messages:{seq}" for seq in seqs if seq in shown), *items]


def _redacted_by_owner(turn: TurnView) -> list[str]:
    """Return the ids of items that came redacted."""
    return [item.id for item in turn.inserted if not item.redacted and item.redaction_state not in ("none", "unknown")]


def _events(
    turn: TurnView, surface: ContextSurface, compactions: tuple[ContextCompaction, ...], *, exported: bool
) -> tuple[ContextEvent, ...]:
    record, ids = turn.record, turn.record.context_id
    found: list[tuple[str, str, dict[str, Any]]] = [
        ("context.surface.created", surface.surface_id, {"items": len(surface.items)}),
        ("context.selection.completed", f"{ids}/selection", {"omitted": len(turn.omitted)}),
        ("context.budget.applied", f"{ids}/budget", {"tokens": record.used.tokens}),
        ("context.assembly.created", f"{ids}/assembly", {"hash": turn.assembly.sha256}),
    ]
    found += [("context.missing.detected", missing.id, {"severity": missing.severity}) for missing in turn.missing]
    redacted, by_owner = _redacted(turn), _redacted_by_owner(turn)
    if redacted or by_owner:
        about = {"items": redacted} | ({"by_owner": by_owner} if by_owner else {})
        found.append(("context.redaction.applied", f"{ids}/assembly", about))
    if turn.new_epoch:  # later turns rest on the same compaction
        found += [("context.compaction.completed", compaction.compaction_id, {}) for compaction in compactions]
    if turn.event_id and turn.injections:
        found.append(("context.injection.applied", f"{ids}/injection-1", {"event": turn.event_id}))
    if exported:
        found.append(("context.exported", ids, {"target": turn.target}))
    links: tuple[Link, ...] = (f"events:{turn.event_id}",) if turn.event_id else ()
    return tuple(
        ContextEvent(
            event_id=f"{ids}/event-{at}",
            event_type=kind,
            source=f"daypack:{turn.parts.agent}/{turn.parts.session}",
            time=record.at,
            subject=subject,
            context_id=ids,
            session_id=turn.parts.session,
            turn_id=turn.event_id,
            data=data,
            evidence_refs=links,
            **event_fields(record.ids),
        )
        for at, (kind, subject, data) in enumerate(found, 1)
    )
