"""A random key in a file of its own: digests made with it can be neither guessed nor forged."""

import hmac
import os

from daypack.errors import Damaged
from daypack.files import atomic

KEY_BYTES = 32


class SecretKey:
    """The key in a file. Without a file, and `create` false, it is a key of zeros: nothing was made with it yet."""

    def __init__(self, path: str, *, create: bool = False, operation: str) -> None:
        if create:
            atomic.make_folders(os.path.dirname(path))
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
