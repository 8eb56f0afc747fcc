"""A random key of a home, in a file of its own: digests made with it can be neither guessed nor forged."""

import hmac
import os

from daypack.errors import Damaged
from daypack.files import atomic
from daypack.history.layout import Home

KEY_BYTES = 32


class HomeKey:
    """One key of a home. Without a file, and `create` false, it is a key of zeros: nothing was made with it yet."""

    def __init__(self, home: Home, name: str, *, create: bool = False, operation: str) -> None:
        path = os.path.join(home.folder, name)
        if create:
            atomic.make_folders(home.folder)
            atomic.create(path, os.urandom(KEY_BYTES))
        key = atomic.read(path)
        if key is not None and len(key) != KEY_BYTES:
            hint = "restore it from a backup, or delete it: markers that exist keep their digits"
            raise Damaged(f"has {len(key)} bytes, not {KEY_BYTES}", operation=operation, place=path, hint=hint)
        self.exists = key is not None
        self._key = key or bytes(KEY_BYTES)

    def hide(self, data: bytes, digits: int = 64) -> str:
        """Return hexadecimal digits that only the key connects with the data."""
        return hmac.new(self._key, data, "sha256").hexdigest()[:digits]
