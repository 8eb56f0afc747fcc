"""The port to a completion model: what a prompt and a completion are, and what a model must offer.

A model may fail, be slow or answer nonsense: callers can do without it, and check what it returns.
"""

from typing import Any, Literal, Protocol

from msgspec import Struct

Finish = Literal["stop", "length", "other"]
Constraint = Literal["", "grammar", "schema"]


class Prompt(Struct, frozen=True):
    """One request to a model.

    `grammar` (GBNF) or `schema` (JSON Schema) constrains the completion where the backend supports it. With both, a
    backend with grammars uses the grammar, others the schema; `Completion.constraint` says which was used.
    """

    system: str
    user: str
    max_tokens: int = 1024
    grammar: str | None = None
    schema: dict[str, Any] | None = None
    seed: int = 7


class Completion(Struct, frozen=True):
    """A model's answer. Finish "length" means that the text is cut off."""

    text: str
    finish: Finish
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    constraint: Constraint = ""


class Completer(Protocol):
    """A completion model, used by one thread at a time."""

    @property
    def name(self) -> str:
        """The name to record with a completion."""
        ...

    @property
    def window_tokens(self) -> int:
        """The limit for prompt and completion together; the first access may load the model or query its server."""
        ...

    def complete(self, prompt: Prompt) -> Completion:
        """Return the completion, or raise ModelFailed."""
        ...

    def close(self) -> None:
        """Release memory and connections; the next completion acquires them again."""
        ...
