"""Signed values: what one process gives to a browser, and any process with the same key believes."""

import base64
import binascii
import hmac
import time
from hashlib import sha256
from typing import Literal

import msgspec

KEY_BYTES = 32
Kind = Literal["once", "cookie"]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is signed: who it is for and how long. `token_id` is that of an access token, which is checked again."""

    kind: Kind
    user: str
    token_id: str
    issued: int  # seconds of the clock
    expires: int
    nonce: str


class Signer:
    """Signs claims with a key of 32 bytes. Nothing in a claim is secret."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key must have {KEY_BYTES} bytes, not {len(key)}")
        self._key = hmac.digest(key, b"daypack page: claims", "sha256")
        self._decoder = msgspec.json.Decoder(Claim)

    def sign(self, claim: Claim) -> str:
        """Return a claim as text for an address or a cookie."""
        body = _to_text(msgspec.json.encode(claim))
        return f"{body}.{self._signature(body)}"

    def read(self, kind: Kind, text: str) -> Claim | None:
        """Return the claim of a text; None if it is not signed by us, of another kind, or has expired."""
        body, _, signature = text.partition(".")
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode("utf-8", "replace")):
            return None
        try:
            claim = self._decoder.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (binascii.Error, msgspec.DecodeError, ValueError):
            return None
        return claim if claim.kind == kind and claim.expires > time.time() else None

    def _signature(self, body: str) -> str:
        return _to_text(hmac.new(self._key, body.encode("utf-8", "replace"), sha256).digest())


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
