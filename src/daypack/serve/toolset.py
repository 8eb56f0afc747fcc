"""The tools of a server, the same over stdio and HTTP: names, descriptions, schemas, and calls."""

from collections.abc import Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.memory import requests
from daypack.memory.audit_log.record import Deed
from daypack.serve.audited import asked_memory, audit_refused, audited
from daypack.serve.problems import describe_in_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from daypack.memory.tools import Memories
    from daypack.session import Session


class Answer(NamedTuple):
    """The result of a call: as text, and as a value if the tool has an output schema."""

    text: str
    value: Struct | None = None
    failed: bool = False


class Tool(NamedTuple):
    """A tool with its schemas."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    reads: bool = True

    def as_listed(self) -> dict[str, Any]:
        """Return the tool as an entry of tools/list."""
        names = {"name": self.name, "title": self.title, "description": self.description}
        # Nothing is ever overwritten: a write adds an entry or a version. No tool reaches outside this store.
        hints = {
            "readOnlyHint": self.reads,
            "destructiveHint": False,
            "idempotentHint": self.reads,
            "openWorldHint": False,
        }
        schemas = {"inputSchema": self.input_schema}
        if self.output_schema is not None:
            schemas["outputSchema"] = self.output_schema
        return {**names, **schemas, "annotations": hints}


class _Definition(NamedTuple):
    title: str
    description: str
    request: type[requests.Request[Any]]
    reads: bool = True


# In the order of tools/list, which never changes: prompt caches depend on it.
_NINE: dict[str, _Definition] = {
    "create_memory": _Definition(
        "Create a memory",
        "Create a memory for the user and return its memory_id. Call it only when the user asks for a new memory, or "
        "has none: otherwise use the memory you were given.",
        requests.CreateMemory,
        reads=False,
    ),
    "get_memory": _Definition(
        "Describe a memory",
        "Read the title, type and size of a memory, without its contents.",
        requests.GetMemory,
    ),
    "add_entry": _Definition(
        "Remember a message",
        "Store one raw message, word for word, with one summary. Call it for each message worth keeping: facts, "
        "decisions, preferences, tasks. Entries are never changed. The summary is optional. Limits: summary 512 "
        "characters, message 9,000 bytes; longer input is refused, and the error states its length.",
        requests.AddEntry,
        reads=False,
    ),
    "list_entries": _Definition(
        "List recent entries",
        "Read the newest entries of a memory, newest first: 25, or limit (1 to 50). For older entries pass "
        "before = next_before, for newer ones after = next_after. Call it with limit 10 at the start of a session, "
        "after get_context.",
        requests.ListEntries,
    ),
    "get_context": _Definition(
        "Read the context document",
        "Read the current context document of a memory: participants, stable facts, timeline, decisions, open tasks. "
        "Call it first in every session.",
        requests.GetContext,
    ),
    "put_context": _Definition(
        "Write the context document",
        "Replace the whole context document of a memory; earlier versions are kept. Build it from raw entries, never "
        "from summaries. At most 5000 characters; longer documents are refused, so trim old, low-value lines first. "
        "Call it after about 6 new entries and before the session ends, each time after await_consistency.",
        requests.PutContext,
        reads=False,
    ),
    "await_consistency": _Definition(
        "Wait for writes",
        "Wait until earlier writes are durable, visible and searchable, and report writes that failed. Only status "
        "consistent means that every write succeeded. Call it before put_context, and before a search that must see "
        "what you have just added.",
        requests.AwaitConsistency,
    ),
    "get_user": _Definition(
        "Read the user's profile",
        "Read the user's name, email, quotas and usage.",
        requests.GetUser,
    ),
    "search_memories": _Definition(
        "Search a memory",
        "Search one memory with words or a question. Returns the best entries first (at most 10, or top_k from 1 to "
        "100), the latest context document and the version that matches the query best. Entries that are not about the "
        'query are left out: no entries and the note "nothing relevant" mean that the memory has no answer. '
        "superseded_by names a hit with a newer value of the same matter. Call it whenever earlier sessions may "
        "matter. Filter by time, tags, role, author or session.",
        requests.SearchMemories,
    ),
}
NAMES = tuple(_NINE)


class Toolset:
    """The tools of one server. Safe to share between threads and between users."""

    def __init__(
        self,
        *,
        without: Collection[str] = (),
        open_session: "Callable[[], Session] | None" = None,
        default_memory: str = "",
    ) -> None:
        """`open_session` adds `recall` and `search_history` of a session, which is opened at the first call.

        `default_memory`: the memory of a call without memory_id, as the schemas state it; the memories themselves know
        it too.
        """
        self.default_memory = default_memory
        self._nine = {name: entry for name, entry in _NINE.items() if name not in without}
        self._open_session = open_session
        self._session: Session | None = None
        self._lock = Lock()
        self._warm_up_types()
        self.tools = (*self._list_nine(), *(_session_tools() if open_session else ()))
        self.names = tuple(tool.name for tool in self.tools)
        self.writing = frozenset(tool.name for tool in self.tools if not tool.reads)

    def call(self, memories: "Memories", name: str, values: Mapping[str, Any] | None = None) -> Struct:
        """Call one of the nine tools and return its result, redacted; raise BadInput for invalid arguments."""
        return self._carry_out(memories, self._read(lambda: memories, name, values or {}))

    def answer(self, memories: "Callable[[], Memories]", name: str, values: Mapping[str, Any] | None = None) -> Answer:
        """Call any tool; return errors as text, so that the model can correct its call.

        The memory is opened only for a call that needs it.
        """
        try:
            if name not in self._nine:
                with audited(memories(), name):
                    return self._call_session(name, values or {})
            request = self._read(memories, name, values or {})
            value = self._carry_out(memories(), request)
        except Exception as error:  # a failing call must not end the server
            return Answer(describe_in_text(name, error), failed=True)
        return Answer(msgspec.json.encode(value).decode(), value)

    def close(self) -> None:
        """Close the session, if one was opened."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _read(self, memories: "Callable[[], Memories]", name: str, values: Mapping[str, Any]) -> requests.Request[Any]:
        try:
            return _read_request(name, self._nine[name].request, values)
        except BadInput as error:
            action, memory = "write" if name in self.writing else "read", asked_memory(values.get("memory_id"))
            mine = memories()
            deed = Deed(action=action, tool=name, user=mine.user, memory=memory, result=type(error).__name__)
            audit_refused(mine.backend.audit, deed)
            raise

    def _carry_out(self, memories: "Memories", request: requests.Request[Any]) -> Struct:
        writes = request.tool in self.writing
        with audited(memories, request.tool, getattr(request, "memory_id", ""), writes=writes) as outcome:
            result: Struct = memories.call(request)
            outcome.value = result
        return memories.backend.shown(result)

    def _call_session(self, name: str, values: Mapping[str, Any]) -> Answer:
        from daypack.text.injected import RECALLED  # noqa: PLC0415 — only with a session

        assert self._open_session is not None
        with self._lock:  # a session is not safe for concurrent calls
            if self._session is None:
                self._session = self._open_session()
            self._session.history.refresh()
            text = self._session.call(name, values)
        return Answer(text, failed=text.startswith(f"{RECALLED}nowhere]"))

    def _list_nine(self) -> list[Tool]:
        entries = self._nine.items()
        types = [part for _, entry in entries for part in (entry.request, entry.request.result)]
        refs, definitions = msgspec.json.schema_components(types, ref_template="{name}")
        schemas = [_inline_refs(ref, definitions) for ref in refs]
        return [
            Tool(
                name,
                entry.title,
                entry.description,
                _with_default(_without_title(schemas[2 * at]), self.default_memory),
                schemas[2 * at + 1],
                entry.reads,
            )
            for at, (name, entry) in enumerate(entries)
        ]

    def _warm_up_types(self) -> None:
        # msgspec builds the decoder of a type at its first use, which is not safe in two threads at once.
        for entry in self._nine.values():
            msgspec.json.Decoder(entry.request, strict=False)
            msgspec.json.Decoder(entry.request.result)


def _read_request(name: str, kind: type[requests.Request[Any]], values: Mapping[str, Any]) -> requests.Request[Any]:
    known = kind.__struct_fields__
    hint = f"{name} takes {', '.join(known)}" if known else f"{name} takes no arguments"
    if unknown := [argument for argument in values if argument not in known]:
        raise BadInput(f"{name} has no argument {', '.join(map(repr, unknown))}", operation=name, hint=hint)
    try:
        # Not strict: models also send numbers as strings.
        return msgspec.convert(_drop_nulls(values), kind, strict=False)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).rpartition(" - at `$.")
        argument = place.removesuffix("`")
        problem = _lower(str(error))
        if reason:
            problem = f"{argument} cannot be {_shorten(values.get(argument))}: {_lower(reason)}"
        raise BadInput(problem, operation=name, place=argument, hint=hint) from error


def _drop_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls: many clients send null for every optional argument."""
    present = {name: _as_text(name, value) for name, value in values.items() if value is not None}
    if isinstance(inner := present.get("metadata"), dict):
        present["metadata"] = _drop_nulls(cast("dict[str, Any]", inner))
    return present


def _as_text(name: str, value: Any) -> Any:  # noqa: ANN401 — JSON
    """Return an integer as text where the tool takes text: many programs number their sessions."""
    takes_text = name in ("session", "author", "at", "date", "client_key")
    return str(value) if takes_text and isinstance(value, int) and not isinstance(value, bool) else value


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _inline_refs(node: object, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 — JSON
    """Return a schema with every $ref replaced by its definition: some clients do not resolve them."""
    if isinstance(node, list):
        return [_inline_refs(item, definitions) for item in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    if "$ref" in fields:
        fields = {**definitions[fields["$ref"]], **fields}
        del fields["$ref"]
    schema = {key: _inline_refs(value, definitions) for key, value in fields.items()}
    if isinstance(text := schema.get("description"), str):
        schema["description"] = " ".join(text.split())
    return schema


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an input schema without the title and description of its Struct: the tool has its own."""
    return _without_null({key: value for key, value in schema.items() if key not in ("title", "description")})


def _with_default(schema: dict[str, Any], default: str) -> dict[str, Any]:
    """Return an input schema that requires memory_id or, with a default memory, says what leaving it out means."""
    properties = dict[str, Any](schema["properties"])
    memory_id = dict[str, Any](properties.get("memory_id", {}))
    if memory_id.pop("default", None) != "":  # no memory_id, or one that may always be left out
        return schema
    required = list[str](schema.get("required", ()))
    if default:
        memory_id["description"] += f" If omitted: the default memory, {default}."
    else:
        required.insert(0, "memory_id")
    return {**schema, "properties": properties | {"memory_id": memory_id}, "required": required}


def _without_null(node: Any) -> Any:  # noqa: ANN401 — JSON
    """Return a schema in which an optional argument has one type: null means the same as leaving it out."""
    if isinstance(node, list):
        return [_without_null(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    fields = {key: _without_null(value) for key, value in cast("dict[str, Any]", node).items()}
    options = [option for option in fields.get("anyOf", []) if option != {"type": "null"}]
    if len(options) != 1:
        return fields
    del fields["anyOf"], fields["default"]
    return {**options[0], **fields}


def _session_tools() -> list[Tool]:
    from daypack.turn.recall_tools import definitions  # noqa: PLC0415 — only with a session

    titles = {"recall": "Recall omitted history", "search_history": "Search this session"}
    return [
        Tool(tool["name"], titles[tool["name"]], tool["description"], tool["input_schema"], None)
        for tool in definitions("anthropic")
    ]
