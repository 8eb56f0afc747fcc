"""Search all sessions from the page."""

from typing import Any

from msgspec.structs import asdict

from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.upkeep.find import Filters, find

_LIMIT, _MOST = 30, 100


def find_messages(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the messages of all sessions that answer a query, best first."""
    agent = asked.text("agent", "")
    filters = Filters(agents=(agent,) if agent else (), project=asked.text("project", ""))
    found = find(home.home, asked.text("q"), filters, limit=asked.number("limit", _LIMIT, least=1, most=_MOST))
    hits = [{**asdict(hit), "id": hit.id} for hit in found.hits]
    return {**found._asdict(), "hits": hits}
