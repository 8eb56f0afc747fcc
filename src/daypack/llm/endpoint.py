"""A model endpoint: JSON requests with its key, refusals read, failures raised as ModelFailed with a hint."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from daypack.errors import BadConfig, ModelFailed
from daypack.llm.addresses import is_private, origin
from daypack.llm.client import (
    MODEL_RETRY,
    NETWORK_ERRORS,
    SAME_ORIGIN,
    Client,
    RedirectRefused,
    Response,
    Retry,
    describe_error,
)
from daypack.types.deadline import Deadline

_HINTS = {
    401: "set DAYPACK_API_KEY to a key this endpoint accepts, and DAYPACK_API_URL to its address",
    403: "set DAYPACK_API_KEY to a key this endpoint accepts, and DAYPACK_API_URL to its address",
    404: "check the address, which usually ends in /v1, and the model's name",
    429: "the endpoint is overloaded; try later",
}
_OPENAI = "https://api.openai.com"
_TOO_LONG = ("exceed_context_size_error", "context_length_exceeded", "maximum context length")


class Refusal(NamedTuple):
    """Why an endpoint refused; `is_too_long` if the prompt exceeds the model's window."""

    text: str
    is_too_long: bool


class Endpoint:
    """The server at one address. `name` is the model choice that errors show."""

    def __init__(self, name: str, url: str, *, key: str = "", retry: Retry = MODEL_RETRY) -> None:
        self._name = name
        self._key = key
        self._retry = retry
        self._client = Client(url, key=key, redirects=SAME_ORIGIN)

    def send(self, method: str, path: str, value: dict[str, Any] | None, deadline: Deadline) -> Response:
        """Send a request and return the response, whatever its status; raise ModelFailed if there is none."""
        body = None if value is None else msgspec.json.encode(value)
        try:
            return self._client.send(method, path, body, retry=self._retry, deadline=deadline)
        except NETWORK_ERRORS as error:
            hint = "check the address and the server"
            if isinstance(error, ConnectionRefusedError):
                hint = "is the server running at this address?"
            elif isinstance(error, RedirectRefused) and error.target:
                hint = "use that address in the model choice if it is the right one"
            raise self.failed(describe_error(error), hint) from error

    def read_refusal(self, body: bytes) -> Refusal:
        """Read the body of a refusal; the key is removed in case the server repeats it."""
        answer = read_object(body) or {}
        error = answer.get("error") or answer.get("message") or answer.get("detail")
        message = cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error
        whole = body.decode("utf-8", "replace")
        text = message if isinstance(message, str) else whole[:200]
        if self._key:
            text = text.replace(self._key, "…")
        return Refusal(" ".join(text.split())[:300], any(sign in whole for sign in _TOO_LONG))

    def failed(self, problem: str, hint: str) -> ModelFailed:
        """Return an error of this endpoint."""
        return ModelFailed(problem, operation="ask model", place=self._name, hint=hint)

    def failed_status(self, response: Response, hint: str) -> ModelFailed:
        """Return an error for a status other than 200; `hint` is for statuses without a hint of their own."""
        problem = f"HTTP {response.status}: {self.read_refusal(response.body).text}"
        return self.failed(problem, _HINTS.get(response.status, hint))


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None if it is anything else."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def find_key(url: str, environ: Mapping[str, str]) -> str:
    """Return the key that the environment has for this address, "" if it has none.

    DAYPACK_API_KEY is for the address in DAYPACK_API_URL, else for the endpoints that the environment names as models,
    else for any. OpenAI's own key is for OpenAI, or for the address in OPENAI_BASE_URL.
    """
    if key := environ.get("DAYPACK_API_KEY"):
        places = [environ.get("DAYPACK_API_URL", "")]
        if not places[0]:
            choices = (environ.get(name, "") for name in ("DAYPACK_COMPACTION_MODEL", "DAYPACK_EMBEDDING_MODEL"))
            places = [choice.removeprefix("openai:") for choice in choices if choice.startswith("openai:")]
        if places and not any(_same_origin(place, url) for place in places):
            return ""
        if not is_private(url):
            problem = "DAYPACK_API_KEY is not sent over a network without encryption"
            hint = (
                "use an https address or a tunnel to a loopback address; if the key is for another, set DAYPACK_API_URL"
            )
            raise BadConfig(problem, operation="open model", place=url, hint=hint)
        return key
    place = environ.get("OPENAI_BASE_URL") or _OPENAI
    return environ.get("OPENAI_API_KEY", "") if _same_origin(place, url) and is_private(url) else ""


def _same_origin(place: str, url: str) -> bool:
    try:
        return origin(place) == origin(url)
    except ValueError:
        return False
