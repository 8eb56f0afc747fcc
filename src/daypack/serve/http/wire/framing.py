"""Strict framing: requests that proxies and servers might read in different ways are refused."""

import re
from typing import Any

import h11

from daypack.serve.problems import Problem

FRAMING_HINT = "send HTTP/1.1: one Content-Length or chunked, each header on one line that ends with CR LF"
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_VERSION = re.compile(rb" HTTP/([0-9]\.[0-9])\r?$")


class StrictConnection(h11.Connection):
    """Refuses what proxies and servers read in different ways: h11 unfolds, merges and prefers silently."""

    problem: Problem | None = None

    def next_event(self) -> Any:  # noqa: ANN401 — h11's events and sentinels
        """Return the next event of h11; before a request, look at its headers as they were sent."""
        try:
            if self.their_state is h11.IDLE:
                check_head(self.trailing_data[0])
            return super().next_event()
        except h11.RemoteProtocolError as error:
            # h11 quotes what was sent, which may be a token.
            reason = str(error).partition(": bytearray(")[0]
            self.problem = Problem(400, "BadInput", f"malformed HTTP request: {reason}", FRAMING_HINT)
            if error.error_status_hint == 431:
                self.problem = Problem(431, "TooLong", "the headers are too long", "send fewer or shorter headers")
            raise


def check_head(data: bytes) -> None:
    """Raise RemoteProtocolError if the headers at the beginning of `data` are refused; incomplete ones are not yet."""
    end = _END_OF_HEAD.search(data)
    if end is None:
        return
    first, *lines = data[: end.start()].split(b"\n")
    version = _VERSION.search(first)
    if version and version[1] not in (b"1.0", b"1.1"):
        raise h11.RemoteProtocolError("only HTTP/1.1 and 1.0 are supported")
    lengths = codings = 0
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            raise h11.RemoteProtocolError("a header continues on the next line")
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            lengths += 1 + value.count(b",")
        elif name.strip().lower() == b"transfer-encoding":
            codings += 1
    if lengths and codings:
        raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
    if lengths > 1:
        raise h11.RemoteProtocolError("more than one Content-Length")
    if codings and version and version[1] == b"1.0":
        raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
    if data.count(b"\n", 0, end.end()) != data.count(b"\r\n", 0, end.end()):
        raise h11.RemoteProtocolError("a line ends with LF alone instead of CR LF")
