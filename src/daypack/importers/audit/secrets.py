"""Finds memories with a secret of a known format; a finding has the kind of the secret, never a part of it."""

from collections.abc import Sequence

from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.text.redact.redact import redact


def find_secrets(memories: Sequence[StoredMemory]) -> list[Finding]:
    """Return the memories with secrets."""
    found: list[Finding] = []
    for at, memory in enumerate(memories):
        if kinds := redact(memory.text).kinds:
            found.append(Finding(kind="secret", at=at, problem=", ".join(kinds)))
    return found
