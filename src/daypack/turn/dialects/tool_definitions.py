"""Definitions of tools, in the shape of any provider, checked and rendered for each dialect.

A function or a custom tool is rendered for every dialect that has such tools. A tool that a provider runs itself, or
one of a type daypack does not know, goes only to the API it was written for. To render it for another is an error: left
out silently, it would be missed by the model only.
"""

import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple, cast

from daypack.errors import BadInput

Block = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_DATED = re.compile(r".*_\d{8}|mcp_toolset", re.ASCII)  # how Anthropic names the versions of its own tools
_HINT = (
    'give {"type": "function", "function": {"name": …, "parameters": …}}, {"type": "function", "name": …}, '
    '{"name": …, "input_schema": …}, or a tool of the provider such as {"type": "web_search"}'
)


class Definition(NamedTuple):
    """One definition: which API's shape it has, and where that keeps the fields of a function or custom tool."""

    value: Block  # as it was given
    dialect: str
    kind: Literal["function", "custom", "hosted"]
    place: str = ""  # of the fields within the value: "", ".function" or ".custom"

    @property
    def fields(self) -> Block:
        """The object with the name."""
        return self.value[self.place[1:]] if self.place else self.value

    @property
    def schema(self) -> str:
        """The key of the parameters' schema."""
        return "input_schema" if self.dialect == "anthropic" else "parameters"

    @property
    def name(self) -> str:
        """The name; that of a hosted tool may be its type."""
        name = self.fields.get("name")
        return name if isinstance(name, str) else self.value["type"]


def define(value: Block, place: str) -> Definition:
    """Return the definition in an object; raise BadInput for what no provider takes."""
    kind = value.get("type")
    if isinstance(value.get("function"), dict) and kind in ("function", None):
        definition = Definition(value, "openai", "function", ".function")
    elif isinstance(value.get("custom"), dict) and kind == "custom":
        definition = Definition(value, "openai", "custom", ".custom")
    elif "input_schema" in value:
        definition = Definition(value, "anthropic", "function")
    elif kind in ("function", "custom"):
        definition = Definition(value, "responses", kind)
    elif isinstance(kind, str) and kind:
        return Definition(value, "anthropic" if _DATED.fullmatch(kind) else "responses", "hosted")
    else:
        hint = "call the schema input_schema" if "inputSchema" in value else _HINT
        raise _bad("is not the definition of a tool: it has no type and no input_schema", place, hint)
    _check(definition, place + definition.place)
    return definition


def _check(definition: Definition, place: str) -> None:
    fields = definition.fields
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise _bad("a tool needs a name", f"{place}.name", _HINT)
    if not (_ANTHROPIC_NAME if definition.dialect == "anthropic" else _NAME).fullmatch(name):
        hint = "use letters, digits, _ and -, at most 64"
        raise _bad(f"{name!r} is not a name that providers take", f"{place}.name", hint)
    if not isinstance(fields.get("description"), str | None):
        raise _bad("must be a text", f"{place}.description", "describe the tool in words")
    schema = fields.get(definition.schema)
    optional = definition.dialect != "anthropic" and schema is None
    if definition.kind == "function" and not optional and not isinstance(schema, dict):
        hint = 'give a JSON Schema such as {"type": "object", "properties": {…}}'
        raise _bad("must be an object", f"{place}.{definition.schema}", hint)


def render_tools(values: Sequence[Block], dialect: str) -> list[Block]:
    """Return the definitions as `tools` of a dialect's request."""
    return [_render(define(value, f"tools[{at}]"), dialect, f"tools[{at}]") for at, value in enumerate(values)]


def _render(definition: Definition, dialect: str, place: str) -> Block:
    if definition.dialect == dialect:
        return deepcopy(definition.value)  # the caller may change what it is given
    if definition.kind == "function":
        if dialect != "anthropic" and not _NAME.fullmatch(definition.name):
            problem = f"{definition.name!r} has {len(definition.name)} characters, {dialect} takes 64"
            raise _bad(problem, f"{place}{definition.place}.name", "shorten the name")
        return _function(definition, dialect)
    if definition.kind == "custom" and dialect != "anthropic":
        return _custom(definition, dialect)
    what = "a custom tool" if definition.kind == "custom" else f"a tool of {definition.dialect}"
    raise _bad(
        f"{definition.name} is {what}, which {dialect} does not have",
        place,
        f'call request("{definition.dialect}"), or prepare the turn without it',
    )


def _function(definition: Definition, dialect: str) -> Block:
    given = deepcopy(definition.fields)
    fields = {key: given[key] for key in ("name", "description") if given.get(key) is not None}
    schema, strict = given.get(definition.schema), given.get("strict")
    if dialect == "anthropic":
        return {**fields, "input_schema": schema or _no_parameters(), **({"strict": True} if strict is True else {})}
    if schema is not None:
        fields["parameters"] = schema
    if isinstance(strict, bool):
        fields["strict"] = strict
    if dialect == "openai":
        return {"type": "function", "function": fields}
    # Without a word about it this API is strict, and the others are not.
    return {"type": "function", "parameters": _no_parameters(), "strict": False, **fields}


def _no_parameters() -> Block:
    return {"type": "object", "properties": {}}


def _custom(definition: Definition, dialect: str) -> Block:
    given = deepcopy(definition.fields)
    fields = {key: given[key] for key in ("name", "description", "format") if given.get(key) is not None}
    shape = fields.get("format")
    if isinstance(shape, dict) and cast(Block, shape).get("type") == "grammar":
        grammar = {key: item for key, item in cast(Block, shape).items() if key != "type"}
        if dialect == "openai":
            fields["format"] = {"type": "grammar", "grammar": grammar}
        elif isinstance(grammar.get("grammar"), dict):
            fields["format"] = {"type": "grammar", **grammar["grammar"]}
    return {"type": "custom", "custom": fields} if dialect == "openai" else {"type": "custom", **fields}


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="read tools", place=place, hint=hint)
