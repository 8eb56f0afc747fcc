"""The servers that have a page: `daypack view` with nothing else, and `daypack serve` beside the memory tools."""

from typing import TYPE_CHECKING

from daypack.serve.http.application import PagePart, Place, assemble
from daypack.serve.page.access import PageAccess
from daypack.serve.page.routes import PageRoutes

if TYPE_CHECKING:
    from daypack.serve.http.observed import Observed
    from daypack.serve.page.views.opened import OpenedHome

_PURPOSE = "shows what the model saw: sessions, calls, compactions and memories"


def make_page(place: Place, home: "OpenedHome", access: PageAccess) -> PagePart:
    """Return the page of a home as a part of a server."""
    return PageRoutes(place.tenants, place.shares, home, access).as_part()


def make_view_app(place: Place, page: PagePart) -> "Observed":
    """Return a server of the page alone; it does without the MCP SDK, which takes a second to import."""
    return assemble(place, _PURPOSE, [], page)
