"""Search all sessions of all agents of a home: bring the index up to date, choose candidates, rank them, group them."""

import time
from typing import TYPE_CHECKING, NamedTuple

from daypack.history.layout import Home
from daypack.search.words import is_unspaced
from daypack.upkeep.find.candidates import Candidates, Scope, find_candidates
from daypack.upkeep.find.filters import Filters, name_of, scope_of
from daypack.upkeep.find.groups import Grouped, ShortNames, group
from daypack.upkeep.find.hits import Hit
from daypack.upkeep.find.index import FindIndex, read_sessions
from daypack.upkeep.find.passages import Passage, TermPlaces
from daypack.upkeep.find.ranking import rank
from daypack.upkeep.find.relevance import WEAK_RESULTS, answers
from daypack.upkeep.find.update import OnProgress, update
from daypack.upkeep.session_settings import settings_of

if TYPE_CHECKING:
    from sqlite3 import Connection

CANDIDATES = 250  # whose texts are read
PER_SESSION = 3  # results of one session; further ones are counted
LIMIT = 10
_AFTER_CHARS = 80  # after a line, where more of it is looked for
EVERYTHING = Filters()


class Found(NamedTuple):
    """The results of a search, best first, and what was searched; not `complete`: another process still indexes.

    `absent` are words of the query that no message contains. `weak`: the best result has only a part of the query.
    """

    hits: tuple[Hit, ...] = ()
    sessions: int = 0
    messages: int = 0
    complete: bool = True
    absent: tuple[str, ...] = ()
    weak: bool = False


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
    ranked, weak = answers(rank(home, candidates, filters.roles or None, now))
    places = TermPlaces(candidates.terms, candidates.worths, candidates.parts)
    names = ShortNames(session.key for session in scope.all_sessions.values())
    shown = group(ranked, min(limit, WEAK_RESULTS) if weak else limit, per_session)
    return Found(
        tuple(_hit(home, result, places, names) for result in shown),
        len(scope.sessions),
        sum(session.messages for session in scope.sessions.values()),
        updated.complete,
        tuple(term for term in candidates.absent if not is_unspaced(term)),
        weak,
    )


def _hit(home: Home, result: Grouped, places: TermPlaces, names: ShortNames) -> Hit:
    ranked = result.ranked
    session, message, passage = ranked.candidate.session, ranked.message, ranked.passage
    layout = home.session(session.agent, session.name)
    line, cwd = ranked.text[passage.start : passage.stop], session.cwd
    project = name_of(cwd)
    if settings_of(home, layout).redaction != "off":
        from daypack.text.redact.excerpts import redact_excerpt  # noqa: PLC0415 — its patterns cost 20 ms

        line = redact_excerpt(ranked.text, passage.start, passage.stop).text
        cwd, project = (redact_excerpt(text, 0, len(text)).text for text in (cwd, project))
    line = _with_ellipses(line.strip(), ranked.text, passage)
    return Hit(
        agent=session.agent,
        session=session.name,
        seq=ranked.candidate.stored.seq,
        role=message.role,
        ts=message.ts,
        cwd=cwd,
        project=project,
        line=line,
        marks=places.marks(line),
        score=ranked.score,
        parts=ranked.parts,
        relevance=ranked.relevance.own,
        more=result.more,
        same=result.same,
        short=names(session.agent, session.name),
    )


def _with_ellipses(line: str, text: str, passage: Passage) -> str:
    """Return a line with an ellipsis at each end where it was cut."""
    before = text[text.rfind("\n", 0, passage.start) + 1 : passage.start]
    after = text[passage.stop : passage.stop + _AFTER_CHARS].partition("\n")[0]
    return f"{'…' if before.strip() else ''}{line}{'…' if after.strip() else ''}"
