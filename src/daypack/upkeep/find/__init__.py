"""`find`: one search over all sessions of all agents of a home."""

from daypack.upkeep.find.filters import Filters
from daypack.upkeep.find.hits import Hit
from daypack.upkeep.find.search import Found, find

__all__ = ["Filters", "Found", "Hit", "find"]
