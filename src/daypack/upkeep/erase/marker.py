"""The marker in place of what was erased, and its digest, which is keyed.

    [erased:3f9a1c20b7d4]      hmac-sha256:3f9a1c20b7d4…

A plain digest of a short secret could be reversed by trying all of them. So the digest is an HMAC with a random key of
the home, `erase.key`: the same text has the same marker in all its files, and its owner can check what was erased. A
session that is copied without the key reveals nothing.
"""

import hmac
import os

from daypack.errors import Damaged
from daypack.files import atomic
from daypack.history.layout import Home

KEY_FILE = "erase.key"
_KEY_BYTES = 32
_SHOWN = 12  # hexadecimal digits in a marker


class Key:
    """The key of a home."""

    def __init__(self, home: Home, *, create: bool = False) -> None:
        path = os.path.join(home.folder, KEY_FILE)
        if create:
            atomic.make_folders(home.folder)
            atomic.create(path, os.urandom(_KEY_BYTES))
        key = atomic.read(path)
        if key is not None and len(key) != _KEY_BYTES:
            hint = "restore it from a backup, or delete it: markers that exist keep their digits"
            raise Damaged(f"has {len(key)} bytes, not {_KEY_BYTES}", operation="erase", place=path, hint=hint)
        self._key = key or bytes(_KEY_BYTES)  # a plan needs none

    def digest(self, data: bytes) -> str:
        """Return the keyed digest of what is erased."""
        return f"hmac-sha256:{self.hide(data)}"

    def hide(self, data: bytes, digits: int = 64) -> str:
        """Return hexadecimal digits that only the key connects with the data."""
        return hmac.new(self._key, data, "sha256").hexdigest()[:digits]


def marker_of(digest: str) -> str:
    """Return the text that replaces what was erased."""
    return f"[erased:{digest.partition(':')[2][:_SHOWN]}]"
