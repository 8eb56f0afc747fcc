"""The choice of a model, as written in a flag, an environment variable or config.toml.

none | openai:URL#NAME | llama:PATH | llama:NAME, the last three with options: ?window=32768&timeout=300&threads=4
"""

import os
import re
from typing import Literal, NamedTuple

from daypack.errors import BadConfig
from daypack.llm.models.catalogue import find_model

DEADLINE_SECONDS = 600
_OPTIONS = {"openai": ("window", "timeout"), "llama": ("window", "timeout", "threads")}
_FORMS = "none, openai:URL#NAME, llama:PATH or llama:NAME"


class Choice(NamedTuple):
    """A parsed choice: `place` is an address or a path, `model` a name at that address or in the catalogue."""

    kind: Literal["none", "openai", "llama", "static", "minilm"]
    place: str = ""
    model: str = ""
    window_tokens: int | None = None
    deadline_seconds: int = DEADLINE_SECONDS
    threads: int = 1

    @property
    def name(self) -> str:
        """The choice without options and without the folders of a path, which are private."""
        if self.kind == "openai":
            return f"openai:{self.place}#{self.model}"
        return self.kind if self.kind != "llama" else f"llama:{self.model or os.path.basename(self.place)}"

    def spell(self) -> str:
        """Return the choice as text."""
        if self.kind not in _OPTIONS:
            return self.kind
        what = f"{self.place}#{self.model}" if self.kind == "openai" else self.place or self.model
        options = [
            f"window={self.window_tokens}" if self.window_tokens else "",
            f"timeout={self.deadline_seconds}" if self.deadline_seconds != DEADLINE_SECONDS else "",
            f"threads={self.threads}" if self.threads != 1 else "",
        ]
        tail = "&".join(filter(None, options))
        return f"{self.kind}:{what}?{tail}" if tail else f"{self.kind}:{what}"


def read_choice(text: str) -> Choice:
    """Parse a choice; raise BadConfig if it is invalid."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may pass anything
        raise _bad("is not a model choice", str(text), f"it must be {_FORMS}")
    if text == "none":
        return Choice("none")
    kind, colon, rest = text.partition(":")
    if not colon or kind not in _OPTIONS:
        raise _bad("is not a model choice", text, f"it must be {_FORMS}")
    rest, options = _options(text, kind, rest)
    if not rest:
        raise _bad("names no model", text, f"it must be {_FORMS}")
    window, timeout = options.get("window"), options.get("timeout", DEADLINE_SECONDS)
    if kind == "llama":
        # A name has neither a folder nor an extension; everything else is a path.
        path = rest if os.sep in rest or rest.endswith(".gguf") else ""
        name = "" if path else find_model(rest).name
        return Choice("llama", os.path.expanduser(path), name, window, timeout, options.get("threads", 1))
    url, _, model = rest.partition("#")
    if not model:
        raise _bad("names no model", text, "append #NAME, the name of the model at the endpoint")
    return Choice("openai", _endpoint(url, text), model, window, timeout)


def read_embedding(text: str) -> Choice:
    """Parse the choice of an embedding model: none, static, minilm or openai:URL#NAME."""
    if text in ("none", "static", "minilm"):
        return Choice(text)
    if not text.startswith("openai:"):
        raise _bad("is not a choice of an embedding model", text, "it must be none, static, minilm or openai:URL#NAME")
    chosen = read_choice(text)
    if chosen.window_tokens is not None:
        raise _bad("has an option 'window'", text, "the only option is timeout")
    return chosen


def _options(text: str, kind: str, rest: str) -> tuple[str, dict[str, int]]:
    match = re.fullmatch(r"(.*)\?([a-z]+=[^?/]*)", rest, re.DOTALL)
    if not match:
        return rest, {}
    found: dict[str, int] = {}
    for option in match[2].split("&"):
        name, _, value = option.partition("=")
        if name not in _OPTIONS[kind]:
            raise _bad(f"has an option {name!r}", text, f"the options are {', '.join(_OPTIONS[kind])}")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", value):
            raise _bad(f"has {name}={value}", text, f"{name} must be a number above 0")
        found[name] = int(value)
    return match[1], found


def _endpoint(url: str, text: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 — 10 ms, only for endpoints

    try:
        parts = urlsplit(url)
        _ = parts.port  # checked on access
    except ValueError as error:
        raise _bad("has an invalid address", text, str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _bad("has no address", text, "the address begins with http:// or https://")
    if parts.username is not None or parts.query:
        raise _bad("has more than an address", text, "put a key into DAYPACK_API_KEY, not into the address")
    # Nearly all endpoints are under /v1, so it may be omitted.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def _bad(problem: str, text: str, hint: str) -> BadConfig:
    shown = re.sub(r"//[^/#]*@", "//…@", text)  # a password
    return BadConfig(f"{shown!r} {problem}", operation="choose model", place="model", hint=hint)
