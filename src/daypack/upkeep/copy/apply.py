"""Apply a copy: session by session, then the memories; each is compared with its source when it is written.

Nothing is overwritten. If it fails or is killed, the same command continues: what the target has of a session must be
the beginning of it, and is read again before anything is added.
"""

from msgspec import Struct

from daypack.errors import BadInput
from daypack.upkeep.copy.memories import CopiedMemory, copy_memory, copy_profile
from daypack.upkeep.copy.plan import Plan, Progress, Request, open_memories, plan, sides_of
from daypack.upkeep.copy.port import Side
from daypack.upkeep.copy.sessions import CopiedSession, PlannedSession, SessionConflict, copy_session


class Copied(Struct, frozen=True):
    """What was copied and compared."""

    plan: Plan
    sessions: tuple[CopiedSession, ...]
    memories: tuple[CopiedMemory, ...]
    conflicts: tuple[str, ...] = ()  # what the target has with other bytes, and keeps

    @property
    def grew(self) -> tuple[CopiedSession, ...]:
        """The sessions that got new lines meanwhile, which are not in the copy."""
        return tuple(session for session in self.sessions if session.grew)


def apply(request: Request, plan_id: str | None = None, progress: Progress | None = None) -> Copied:
    """Copy what the target lacks, except for conflicts; with the id of a plan, only if exactly that would happen."""
    planned = plan(request)
    if plan_id is not None and planned.id != plan_id:
        hint = "look at the new plan (without --apply), then apply that"
        problem = f"the plan has changed: {planned.id}, not {plan_id}"
        raise BadInput(problem, operation="copy", place=planned.target, hint=hint)
    source, target = sides_of(request)
    sessions: list[CopiedSession] = []
    conflicts = list(planned.conflicts)
    for at, session in enumerate(planned.sessions, 1):
        sessions += _copy(source, target, session, conflicts)
        if progress is not None:
            progress(at)
    memories = _copy_memories(request, planned) if planned.memories else ()
    return Copied(planned, tuple(sessions), memories, tuple(conflicts))


def _copy(source: Side, target: Side, planned: PlannedSession, conflicts: list[str]) -> list[CopiedSession]:
    try:
        copied = copy_session(source, target, planned) if planned.is_copied else None
    except SessionConflict as error:  # since the plan was made
        conflicts.append(error.problem)
        return []
    return [copied] if copied else []


def _copy_memories(request: Request, planned: Plan) -> tuple[CopiedMemory, ...]:
    wanted = {memory.memory_id for memory in planned.memories if memory.is_copied}
    with (
        open_memories(request.source, request.uid, request.user) as source,
        open_memories(request.target, request.uid, request.user) as target,
    ):
        copy_profile(source, target)
        found = [memory for memory in source.memories() if memory.memory_id in wanted]
        return tuple(copy_memory(source, target, memory) for memory in found)
