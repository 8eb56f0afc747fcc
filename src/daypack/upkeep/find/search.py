"""Search all sessions of all agents of a home: bring the index up to date, choose candidates, rank them, group them."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from daypack.history.layout import Home
from daypack.upkeep.find.candidates import Candidates, Scope, find_candidates
from daypack.upkeep.find.filters import Filters, project_of, scope_of
from daypack.upkeep.find.hits import Hit
from daypack.upkeep.find.index import FindIndex, read_sessions
from daypack.upkeep.find.passages import TermPlaces
from daypack.upkeep.find.ranking import Ranked, rank
from daypack.upkeep.find.update import OnProgress, update
from daypack.upkeep.session_settings import settings_of

if TYPE_CHECKING:
    from sqlite3 import Connection

CANDIDATES = 250  # whose texts are read
PER_SESSION = 2  # results of one session; further ones are counted
LIMIT = 10
EVERYTHING = Filters()


class Found(NamedTuple):
    """The results of a search, best first, and what was searched; not `complete`: another process still indexes."""

    hits: tuple[Hit, ...] = ()
    sessions: int = 0
    messages: int = 0
    complete: bool = True


def find(
    home: Home,
    query: str,
    filters: Filters = EVERYTHING,
    *,
    limit: int = LIMIT,
    per_session: int = PER_SESSION,
    on_progress: OnProgress = lambda _: None,
) -> Found:
    """Return the messages that answer a query, best first; what is new is indexed before."""
    index = FindIndex(home)
    try:
        updated = update(home, index, on_progress)
        now = time.time()

        def work(connection: "Connection") -> tuple[Scope, Candidates]:
            scope = scope_of(filters, read_sessions(connection), now)
            return scope, find_candidates(connection, query, scope, CANDIDATES)

        scope, candidates = index.read(work) or (Scope({}, {}), Candidates())
    finally:
        index.close()
    ranked = rank(home, candidates, filters.roles or None, now)
    places = TermPlaces(candidates.terms, candidates.worths, candidates.parts)
    hits = tuple(_hit(home, chosen, more, places) for chosen, more in _group(ranked, limit, per_session))
    messages = sum(session.messages for session in scope.sessions.values())
    return Found(hits, len(scope.sessions), messages, updated.complete)


def _group(ranked: Iterable[Ranked], limit: int, per_session: int) -> list[tuple[Ranked, int]]:
    """Return the best results with at most so many of each session; the last of a session counts those left out."""
    kept: list[Ranked] = []
    members: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for result in ranked:
        key = result.candidate.session.key
        members[key] = members.get(key, 0) + 1
        if len(kept) < limit and members[key] <= per_session:
            last[key] = len(kept)
            kept.append(result)
    more = {at: max(0, members[key] - per_session) for key, at in last.items()}
    return [(result, more.get(at, 0)) for at, result in enumerate(kept)]


def _hit(home: Home, ranked: Ranked, more: int, places: TermPlaces) -> Hit:
    session, message, passage = ranked.candidate.session, ranked.message, ranked.passage
    layout = home.session(session.agent, session.name)
    line = ranked.text[passage.start : passage.stop]
    if settings_of(home, layout).redaction != "off":
        from daypack.text.redact.excerpts import redact_excerpt  # noqa: PLC0415 — its patterns cost 20 ms

        line = redact_excerpt(ranked.text, passage.start, passage.stop).text
    line = line.strip()
    project = project_of(session.cwd)
    return Hit(
        agent=session.agent,
        session=session.name,
        seq=ranked.candidate.stored.seq,
        role=message.role,
        ts=message.ts,
        cwd=session.cwd,
        project=project.name if project else "",
        line=line,
        marks=places.marks(line),
        score=ranked.score,
        parts=ranked.parts,
        relevance=ranked.relevance,
        more=more,
    )
