"""Apply a copy: session by session, then the memories; each is compared with its source when it is written.

Nothing is overwritten. If it fails or is killed, the same command continues: what the target has of a session must be
the beginning of it, and is read again before anything is added.
"""

from msgspec import Struct

from daypack.errors import BadInput
from daypack.upkeep.copy.memories import CopiedMemory, copy_memory, copy_profile
from daypack.upkeep.copy.plan import Plan, Progress, Request, open_memories, plan, sides_of
from daypack.upkeep.copy.sessions import CopiedSession, conflict, copy_session

_MOST_NAMED = 5


class Copied(Struct, frozen=True):
    """What was copied and compared."""

    plan: Plan
    sessions: tuple[CopiedSession, ...]
    memories: tuple[CopiedMemory, ...]

    @property
    def grew(self) -> tuple[CopiedSession, ...]:
        """The sessions that got new lines meanwhile, which are not in the copy."""
        return tuple(session for session in self.sessions if session.grew)


def apply(request: Request, plan_id: str | None = None, progress: Progress | None = None) -> Copied:
    """Copy what the target lacks; with the id of a plan, only if exactly that would happen."""
    planned = plan(request)
    if plan_id is not None and planned.id != plan_id:
        hint = "look at the new plan (without --apply), then apply that"
        problem = f"the plan has changed: {planned.id}, not {plan_id}"
        raise BadInput(problem, operation="copy", place=planned.target, hint=hint)
    if planned.conflicts:
        more = f"; and {len(planned.conflicts) - _MOST_NAMED:,} more" if len(planned.conflicts) > _MOST_NAMED else ""
        raise conflict("; ".join(planned.conflicts[:_MOST_NAMED]) + more, planned.target)
    source, target = sides_of(request)
    sessions: list[CopiedSession] = []
    for at, session in enumerate(planned.sessions, 1):
        if session.is_copied and (copied := copy_session(source, target, session)):
            sessions.append(copied)
        if progress is not None:
            progress(at)
    memories = _copy_memories(request, planned) if planned.memories else ()
    return Copied(planned, tuple(sessions), memories)


def _copy_memories(request: Request, planned: Plan) -> tuple[CopiedMemory, ...]:
    wanted = {memory.memory_id for memory in planned.memories if memory.is_copied}
    with (
        open_memories(request.source, request.uid, request.user) as source,
        open_memories(request.target, request.uid, request.user) as target,
    ):
        copy_profile(source, target)
        found = [memory for memory in source.memories() if memory.memory_id in wanted]
        return tuple(copy_memory(source, target, memory) for memory in found)
