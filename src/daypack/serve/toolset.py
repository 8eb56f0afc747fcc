"""The tools as a server offers them, over stdio and HTTP alike: names, descriptions, schemas, and how one is called."""

from collections.abc import Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.memory import requests
from daypack.serve.http.errors import describe
from daypack.serve.server_log import note

if TYPE_CHECKING:
    from collections.abc import Callable

    from daypack.memory.tools import Memories
    from daypack.session import Session


class Answer(NamedTuple):
    """What a call came to: a text for every client, and the value behind it where the tool has an output schema."""

    text: str
    value: Struct | None = None
    failed: bool = False


class Tool(NamedTuple):
    """A tool as it is listed."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    reads: bool = True

    def listed(self) -> dict[str, Any]:
        """Return it as an entry of tools/list."""
        told = {"name": self.name, "title": self.title, "description": self.description}
        # Nothing is ever overwritten: a write adds an entry or a version. No tool looks beyond this store.
        hints = {
            "readOnlyHint": self.reads,
            "destructiveHint": False,
            "idempotentHint": self.reads,
            "openWorldHint": False,
        }
        schemas = {"inputSchema": self.input_schema}
        if self.output_schema is not None:
            schemas["outputSchema"] = self.output_schema
        return {**told, **schemas, "annotations": hints}


class _Entry(NamedTuple):
    title: str
    description: str
    request: type[requests.Request[Any]]
    reads: bool = True


# In the order of the list: models and prompt caches like it never to change.
_NINE: dict[str, _Entry] = {
    "create_memory": _Entry(
        "Create a memory",
        "Create a new memory for the user and return its memory_id. Use it when you are asked to set one up, or when "
        "there is none: otherwise work with the memory you were given.",
        requests.CreateMemory,
        reads=False,
    ),
    "get_memory": _Entry(
        "Describe a memory",
        "Read a memory's title, type and how much it holds, without its contents.",
        requests.GetMemory,
    ),
    "add_entry": _Entry(
        "Remember a message",
        "Store one raw message, word for word, with one summary. Call it for each message worth keeping: facts, "
        "decisions, preferences, tasks. Entries are never changed. The summary may be left out. Caps: summary 512 "
        "characters, message 9,000 bytes; what is longer is refused with the length it has.",
        requests.AddEntry,
        reads=False,
    ),
    "list_entries": _Entry(
        "List recent entries",
        "Read the newest entries of a memory, newest first, 25 unless limit (1 to 50) says otherwise. Go on with "
        "before = next_before, or look for news with after = next_after. Call it with limit 10 at the start of a "
        "session, after get_context.",
        requests.ListEntries,
    ),
    "get_context": _Entry(
        "Read the context document",
        "Read the current context document of a memory: participants, stable facts, timeline, decisions, open tasks. "
        "Call it first in every session.",
        requests.GetContext,
    ),
    "put_context": _Entry(
        "Write the context document",
        "Write the whole context document of a memory; earlier versions are kept. Build it from raw entries, never "
        "from summaries. At most 5000 characters, longer is refused: trim old, low-value lines first. Call it after "
        "about 6 stored entries and before the session ends, each time after await_consistency.",
        requests.PutContext,
        reads=False,
    ),
    "await_consistency": _Entry(
        "Wait for writes",
        "Wait until earlier writes are durable, visible and searchable, and report those that failed. Only status "
        "consistent means that all hold; timeout and failed say so. Call it before put_context and before a search "
        "that must see what you have just added.",
        requests.AwaitConsistency,
    ),
    "get_user": _Entry(
        "Read the user's profile",
        "Read the user's name, email, quotas and what is used of them.",
        requests.GetUser,
    ),
    "search_memories": _Entry(
        "Search a memory",
        "Search one memory with words or a question. Returns the best entries first (10 unless top_k, 1 to 100, says "
        "otherwise), the latest context document and the one that fits the query best. Use it whenever something "
        "said earlier may matter. Narrow it by time, tags, role, author or session.",
        requests.SearchMemories,
    ),
}
NAMES = tuple(_NINE)
_TEXTS = frozenset({"raw_entry", "summary", "content", "latest_context", "best_context", "title", "description"})


class Toolset:
    """Which tools there are here, and what they answer. One may be shared by threads and by users."""

    def __init__(self, *, without: Collection[str] = (), open_session: "Callable[[], Session] | None" = None) -> None:
        """`open_session` gives the session whose `recall` and `search_history` are offered too; opened when called."""
        self._nine = {name: entry for name, entry in _NINE.items() if name not in without}
        self._open_session = open_session
        self._session: Session | None = None
        self._lock = Lock()
        self._warm()
        self.tools = (*self._list_nine(), *(_session_tools() if open_session else ()))
        self.names = tuple(tool.name for tool in self.tools)
        self.writing = frozenset(tool.name for tool in self.tools if not tool.reads)

    def call(self, memories: "Memories", name: str, given: Mapping[str, Any] | None = None) -> Struct:
        """Call one of the nine and return its result. What is wrong with the arguments is BadInput."""
        return memories.call(_read(name, self._nine[name].request, given or {}))

    def answer(self, memories: "Callable[[], Memories]", name: str, given: Mapping[str, Any] | None = None) -> Answer:
        """Call any tool of the list and answer in words whatever goes wrong: the model reads it and can do better.

        The memory is only opened for a call that needs it.
        """
        try:
            if name not in self._nine:
                return self._recall(name, given or {})
            request = _read(name, self._nine[name].request, given or {})
            opened = memories()
            value = opened.call(request)
            value = clear(value) if opened.backend.redacting else value
        except Exception as error:  # a call must not end the server; what is untold goes to the log
            return Answer(explain(name, error), failed=True)
        return Answer(msgspec.json.encode(value).decode(), value)

    def close(self) -> None:
        """Close the session, if one was opened."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _recall(self, name: str, given: Mapping[str, Any]) -> Answer:
        from daypack.text.injected import RECALLED  # noqa: PLC0415 — only with a session

        assert self._open_session is not None
        with self._lock:  # a session's window is folded by one at a time
            if self._session is None:
                self._session = self._open_session()
            text = self._session.call(name, given)
        return Answer(text, failed=text.startswith(f"{RECALLED}nowhere]"))

    def _list_nine(self) -> list[Tool]:
        entries = self._nine.items()
        types = [part for _, entry in entries for part in (entry.request, entry.request.result)]
        refs, definitions = msgspec.json.schema_components(types, ref_template="{name}")
        whole = [_inline(ref, definitions) for ref in refs]
        return [
            Tool(name, entry.title, entry.description, _bare(whole[2 * at]), whole[2 * at + 1], entry.reads)
            for at, (name, entry) in enumerate(entries)
        ]

    def _warm(self) -> None:
        # msgspec learns a type at its first use, and two threads must not make it learn the same one at once.
        for entry in self._nine.values():
            msgspec.json.Decoder(entry.request, strict=False)
            msgspec.json.Decoder(entry.request.result)


def clear(value: Struct) -> Struct:
    """Return a result without the secrets in its texts: what a model reads may be written down elsewhere."""
    from daypack.text.redact.redact import redact  # noqa: PLC0415 — its patterns cost 20 ms, after the first answer

    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if isinstance(part, str) and name in _TEXTS:
            cleared = redact(part).text
        elif name == "entries" and isinstance(part, tuple):
            cleared = tuple(clear(one) for one in cast("tuple[Struct, ...]", part))
        else:
            continue
        if cleared != part:
            changes[name] = cleared
    return msgspec.structs.replace(value, **changes) if changes else value


def explain(name: str, error: Exception) -> str:
    """Return an error as a model may read it: the problem and what to do, nothing of this machine."""
    told = describe(error)
    if told.message not in str(error):
        note(name, error)
    return f"{told.message} ({told.hint})" if told.hint else told.message


def _read(name: str, wanted: type[requests.Request[Any]], given: Mapping[str, Any]) -> requests.Request[Any]:
    known = wanted.__struct_fields__
    if unknown := [one for one in given if one not in known]:
        hint = f"it takes {', '.join(known)}" if known else "it takes none"
        raise BadInput(f"{name} has no argument {', '.join(map(repr, unknown))}", operation=name, hint=hint)
    try:
        # Not strict: models write numbers as text too.
        return msgspec.convert(_present(given), wanted, strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).rpartition(" - at `$.")
        argument = place.removesuffix("`")
        problem = f"{argument} cannot be {_shown(given.get(argument))}: {_lower(what)}" if what else _lower(str(error))
        raise BadInput(problem, operation=name, place=argument, hint=f"{name} takes {', '.join(known)}") from error


def _present(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given without the nulls: many clients send every argument they know of."""
    present = {name: _spelled(name, value) for name, value in given.items() if value is not None}
    if isinstance(inner := present.get("metadata"), dict):
        present["metadata"] = _present(cast("dict[str, Any]", inner))
    return present


def _spelled(name: str, value: Any) -> Any:  # noqa: ANN401 — JSON
    """Return a number where a word is wanted as text: sessions are counted in many programs."""
    numbered = name in ("session", "author", "at", "date", "client_key") and isinstance(value, int)
    return str(value) if numbered and not isinstance(value, bool) else value


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _inline(node: object, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 — JSON
    """Return a schema with every reference replaced by what it stands for: some clients follow none."""
    if isinstance(node, list):
        return [_inline(one, definitions) for one in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    if "$ref" in fields:
        fields = {**definitions[fields["$ref"]], **fields}
        del fields["$ref"]
    whole = {key: _inline(value, definitions) for key, value in fields.items()}
    if isinstance(text := whole.get("description"), str):
        whole["description"] = " ".join(text.split())
    return whole


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an input schema without the words about the Struct: the tool has its own."""
    bare = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return _without_null(bare)


def _without_null(node: Any) -> Any:  # noqa: ANN401 — JSON
    """Return a schema in which an optional argument has its one type: null means the same as leaving it out."""
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

    titles = {"recall": "Recall what left the window", "search_history": "Search this session"}
    return [
        Tool(one["name"], titles[one["name"]], one["description"], one["input_schema"], None)
        for one in definitions("anthropic")
    ]
