"""`find`: one search over all sessions of all agents of a home."""

from daypack.upkeep.find.filters import Filters
from daypack.upkeep.find.find import Found, find
from daypack.upkeep.find.hits import Hit
from daypack.upkeep.find.index import forget_index

__all__ = ["Filters", "Found", "Hit", "find", "forget_index"]
