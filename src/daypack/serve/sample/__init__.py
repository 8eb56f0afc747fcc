"""A sample to look at: a memory, sessions that daypack packed, and one that another program recorded.

Everything in it is fixed: texts, times and numbers. `daypack serve --sample` makes it once.
"""

from typing import TYPE_CHECKING, NamedTuple

from daypack.serve.sample.memory import TITLE, make_memory
from daypack.serve.sample.play import Place
from daypack.serve.sample.poster_job import SESSION, play_poster_job
from daypack.serve.sample.print_job import play_print_job
from daypack.serve.sample.recorded import import_recorded

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

__all__ = ["SESSION", "TITLE", "Sample", "make_sample"]


class Sample(NamedTuple):
    """The names of the sample."""

    memory_id: str
    session: str


def make_sample(memories: "Memories", *, home: str | None, uid: str | None, agent: str) -> Sample:
    """Return the sample of a home, after creating what is missing."""
    memory_id = make_memory(memories)
    place = Place(home, uid, agent)
    play_poster_job(place, memory_id, memories.user)
    play_print_job(place)
    import_recorded(home, uid)
    return Sample(memory_id, SESSION)
