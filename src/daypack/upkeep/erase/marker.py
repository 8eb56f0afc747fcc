"""The marker in place of what was erased, and its digest, which is keyed.

    [erased:3f9a1c20b7d4]      hmac-sha256:3f9a1c20b7d4…

A plain digest of a short secret could be reversed by trying all of them. So the digest is an HMAC with a random key of
the home, `erase.key`: the same text has the same marker in all its files, and its owner can check what was erased. A
session that is copied without the key reveals nothing.
"""

import os

from daypack.files.secret_key import SecretKey
from daypack.history.layout import Home

KEY_FILE = "erase.key"
_SHOWN = 12  # hexadecimal digits in a marker


class Key(SecretKey):
    """The key with which a home hides what was erased. A plan needs none."""

    def __init__(self, home: Home, *, create: bool = False) -> None:
        super().__init__(os.path.join(home.folder, KEY_FILE), create=create, operation="erase")

    def digest(self, data: bytes) -> str:
        """Return the keyed digest of what is erased."""
        return f"hmac-sha256:{self.hide(data)}"


def marker_of(digest: str) -> str:
    """Return the text that replaces what was erased."""
    return f"[erased:{digest.partition(':')[2][:_SHOWN]}]"
