"""Decides what an import of a store keeps; `daypack audit` and `daypack import` ask the same function.

Left out is only what says nothing new: empty and exact or near duplicates, recalled text and junk. What is stale,
contradicted or unclear is kept: memories are searched with their dates, and a newer statement ranks above an older one.
Of duplicates the oldest is kept, so that a second import decides the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

from daypack.importers.audit.duplicates import find_exact, find_near
from daypack.importers.audit.findings import Finding
from daypack.importers.audit.junk import find_junk
from daypack.importers.audit.recalled import find_recalled
from daypack.importers.stores.records import StoredMemory


class Kept(NamedTuple):
    """The memories that an import takes, in the order of the store, and why it leaves out each of the others."""

    memories: tuple[StoredMemory, ...]
    left_out: dict[int, Finding]  # by position


def choose(memories: Sequence[StoredMemory]) -> Kept:
    """Return what an import keeps of the memories of a store."""
    left_out: dict[int, Finding] = {}
    for finding in (*find_junk(memories), *find_recalled(memories)):
        left_out.setdefault(finding.at, finding)
    for finding in find_exact(memories):
        left_out.setdefault(finding.at, finding)
    for finding in find_near(memories, left_out):
        left_out.setdefault(finding.at, finding)
    return Kept(tuple(memory for at, memory in enumerate(memories) if at not in left_out), left_out)
