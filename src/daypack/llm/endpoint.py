"""Questions to one endpoint: the key, redirects, and patience with a server that is busy or not up yet."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

import msgspec

from daypack.errors import ModelFailed
from daypack.llm.client import TROUBLE, Deadline, Exchange, Request, origin, reason

ATTEMPTS = 5
MAX_REDIRECTS = 3
_MAX_PAUSE_SECONDS = 30.0
HINTS = {
    401: "set DAYPACK_API_KEY to a key this endpoint takes",
    403: "set DAYPACK_API_KEY to a key this endpoint takes",
    404: "check the address, which usually ends in /v1, and the model's name",
    429: "the endpoint has too much to do; try later",
}


class Answer(NamedTuple):
    """What came back, whatever it says."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Endpoint:
    """An address that is asked; no connection is kept between questions."""

    def __init__(self, name: str, url: str, *, key: str = "", pause_seconds: float = 0.5) -> None:
        self._name = name
        self._url = url
        self._key = key
        self._pause = pause_seconds

    def send(self, method: str, path: str, value: dict[str, Any] | None, deadline: Deadline) -> Answer:
        """Send a request until it is answered: a refused connection and HTTP 429 and 503 are tried again."""
        body = None if value is None else msgspec.json.encode(value)
        pause = self._pause
        for attempt in range(1, ATTEMPTS + 1):
            wait = pause
            try:
                answer = self._exchange(method, path, body, deadline)
                if answer.status not in (429, 503) or attempt == ATTEMPTS:
                    return answer
                asked = answer.headers.get("retry-after", "")
                wait = min(float(asked), _MAX_PAUSE_SECONDS) if asked.isdecimal() and asked.isascii() else pause
                if wait >= deadline.left():
                    return answer
            except ConnectionRefusedError as error:
                if attempt == ATTEMPTS or pause >= deadline.left():
                    raise self.failed(reason(error), "is the server running at this address?") from error
            except TROUBLE as error:
                raise self.failed(reason(error), "check the address and the server") from error
            time.sleep(wait)
            pause *= 2
        raise AssertionError  # the last attempt returns or raises

    def failed(self, problem: str, hint: str) -> ModelFailed:
        """Return an error of this endpoint."""
        return ModelFailed(problem, operation="ask model", place=self._name, hint=hint)

    def _exchange(self, method: str, path: str, body: bytes | None, deadline: Deadline) -> Answer:
        headers = {"Accept": "application/json", "Connection": "close", "User-Agent": "daypack"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        url = urljoin(self._url, path)
        for _ in range(MAX_REDIRECTS + 1):
            with Exchange(Request(method, url, body, headers), deadline=deadline) as exchange:
                if exchange.status not in (301, 302, 303, 307, 308):
                    return Answer(exchange.status, exchange.headers, exchange.body())
                url, former = urljoin(url, exchange.headers.get("location", "")), url
            # The key and the conversation are for this place only.
            if origin(url) != origin(former) or exchange.status not in (307, 308):
                hint = "name that address in the choice if it is the right one"
                raise self.failed(f"the endpoint sends us to {url}", hint)
        raise self.failed(f"more than {MAX_REDIRECTS} redirects", "check the address")
