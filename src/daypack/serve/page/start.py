"""What the page learns at its start: who looks, what is allowed, and the words for codes."""

from daypack import __version__
from daypack.serve.page.views.asked import Viewer
from daypack.serve.page.views.opened import OpenedHome
from daypack.turn.evidence import words
from daypack.turn.evidence.explain import MEANINGS


def show_start(home: OpenedHome, viewer: Viewer, write_token: str) -> dict[str, object]:
    """Return the facts that do not change while the page is open."""
    return {
        "version": __version__,
        "user": viewer.user,
        "owner": viewer.owner,
        "writes": viewer.writes,
        "write_token": write_token if viewer.writes else None,
        "home": home.home.sessions_place if viewer.owner else "",
        "words": {
            "epoch": words.EPOCHS,
            "omission": MEANINGS,
            "trigger": words.TRIGGERS,
            "cause": words.CAUSES,
            "loss": words.LOSSES,
            "dropped": words.DROPPED_BLOCKS,
            "programs": words.PROGRAMS,
        },
    }
