"""Tools: the definitions that a request carries; checked, counted, and stored once by their digest.

Providers show a model its tools before everything else, as text. That text is not published, so its tokens are bounded:

- the JSON of the definitions, counted with the window's tokenizer; OpenAI's TypeScript of a function is shorter;
- for each tool, and once around them all, what a provider adds: a few tokens at OpenAI, a system prompt at Anthropic
  (346 tokens now; 530, for Claude 3 Opus, is the most that was published);
- for each tool that the provider runs itself, what Anthropic publishes for its dearest, the text editor: 700 tokens.
  OpenAI publishes nothing of the kind: there the count of such a tool is an estimate.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, BadMessage, BudgetTooSmall, Damaged, DaypackError
from daypack.history.draft import plain
from daypack.history.session import History
from daypack.text.tokens import Counter
from daypack.turn.budget import Limits, budget_for
from daypack.turn.dialects.tool_definitions import Block, Definition, define
from daypack.turn.items import Cost
from daypack.types.digest import digest_bytes, file_name_of

TOOL_TOKENS = 12  # around one tool: `type name = (_: …) => any;`, separators
LIST_TOKENS = 16  # around all: `namespace functions { … }`
CLAUDE_PROMPT_TOKENS = 530
HOSTED_TOOL_TOKENS = 700


class Tools(Struct, frozen=True):
    """The tools of one turn."""

    definitions: tuple[Block, ...]
    data: bytes  # their JSON, with the keys in the order given
    cost: Cost

    @property
    def digest(self) -> str:
        """The digest of the JSON."""
        return digest_bytes(self.data)


def read_tools(given: Iterable[object], counter: Counter) -> Tools | None:
    """Return the tools that a caller passed; None if there are none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(cast(object, given)).__name__
        raise _bad(f"must be a list of definitions, not {kind}", "tools", "pass what you would pass to the client")
    definitions = tuple(define(_opened(tool, f"tools[{at}]"), f"tools[{at}]") for at, tool in enumerate(given))
    if not definitions:
        return None
    _check_names(definitions)
    values = tuple(definition.value for definition in definitions)
    data = _encode(values)
    hosted = sum(definition.kind == "hosted" for definition in definitions)
    tokens = counter.count(data.decode()) + LIST_TOKENS + TOOL_TOKENS * len(values) + HOSTED_TOOL_TOKENS * hosted
    if counter.name.startswith("o200k+") and not counter.name.endswith("gemini"):  # Claude, or any model
        tokens += CLAUDE_PROMPT_TOKENS
    return Tools(values, data, Cost(tokens, len(data)))


def _encode(values: tuple[Block, ...]) -> bytes:
    try:
        return msgspec.json.encode(values)
    except UnicodeEncodeError:
        hint = "decode the text with errors='replace' first"
        raise _bad("a lone surrogate cannot be stored as UTF-8", "tools", hint) from None


def _opened(tool: Any, place: str) -> Block:  # noqa: ANN401 — whatever a caller passes
    """Return a definition as a plain object: a mapping, or what a client library's object says of itself."""
    if isinstance(tool, type):
        hint = "pass its definition, for instance openai.pydantic_function_tool(…) of a model's class"
        raise _bad(f"a definition is an object, not the class {tool.__name__}", place, hint)
    for method, options in (("model_dump", {"exclude_none": True, "by_alias": True}), ("to_dict", {})):
        if not isinstance(tool, Mapping) and callable(dump := getattr(tool, method, None)):
            tool = dump(**options)
    if not isinstance(tool, Mapping):
        kind = type(tool).__name__
        raise _bad(f"a definition is an object, not {kind}", place, "pass what you would pass to the client")
    try:
        return plain(cast(object, tool), place)
    except BadMessage as error:
        raise _bad(error.problem, error.place, error.hint) from None


def _check_names(definitions: tuple[Definition, ...]) -> None:
    first: dict[str, int] = {}
    for at, definition in enumerate(definitions):
        if definition.kind != "hosted" and first.setdefault(definition.name, at) != at:
            problem = f"tools[{first[definition.name]}] is called {definition.name!r} too"
            raise _bad(problem, f"tools[{at}]{definition.place}.name", "give every tool a name of its own")


def require_space(tools: Tools, limits: Limits) -> None:
    """Raise BudgetTooSmall if the tools alone exceed the limits."""
    room, cost = limits.room, tools.cost
    if cost.fits(room):
        return
    count, budget = len(tools.definitions), budget_for(cost.tokens)
    needs, leaves = f"{cost.tokens:,} tokens", f"{room.tokens:,}"
    hint = f"pass fewer tools, or raise the budget well above {budget:,} tokens"
    if cost.tokens <= room.tokens:
        needs, leaves, hint = (
            f"{cost.bytes:,} bytes",
            f"{room.bytes:,}",
            "pass fewer tools, or raise the limit of bytes",
        )
    raise BudgetTooSmall(
        f"the definitions of {count} tool{'s' if count > 1 else ''} need {needs}, the budget leaves {leaves}",
        operation="prepare",
        place="tools",
        hint=hint,
    )


def store_tools(history: History, tools: Tools) -> None:
    """Store the definitions in blob/, once."""
    history.blobs.put(tools.data, durable=history.config.durability == "sync")


def load_tools(history: History, digest: str) -> tuple[Block, ...]:
    """Return the definitions with a digest."""
    name = file_name_of(digest)
    try:
        return tuple(msgspec.json.decode(history.blobs.get(name), type=list[Block]))
    except msgspec.MsgspecError as error:
        problem = f"the tools of the turn are not definitions: {error}"
        raise Damaged(problem, operation="replay", place=name, hint="see `daypack doctor`") from error
    except DaypackError as error:
        problem = f"the tools of the turn are gone: {error.problem}"
        raise type(error)(problem, operation="replay", place=error.place, hint=error.hint) from error


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="read tools", place=place, hint=hint)
