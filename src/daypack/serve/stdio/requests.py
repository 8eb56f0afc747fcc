"""What a server offers over MCP beside its lifecycle: tools, prompts and resources, each request made into a job."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daypack.serve.resources import TEMPLATES, Resources
from daypack.serve.stdio.calls import Job
from daypack.serve.stdio.jsonrpc import INVALID_PARAMS, Fault, Params
from daypack.serve.stdio.lifecycle import read_params
from daypack.serve.toolset import Answer, Toolset

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

_ABOUT = (
    "Memories across sessions. At the start call get_context, then list_entries with limit 10; store what is worth "
    "keeping with add_entry; look things up with search_memories. After about six stored entries, and before you end, "
    "call await_consistency and then put_context with the whole updated document."
)
_FINDING = (
    "The user's memories are listed as this server's resources, with their ids. Where you were given none and can read "
    "no resources, ask the user for the memory_id, or make a memory with create_memory."
)


class _Listing(Struct):
    cursor: str | None = None


class _Calling(Struct):
    name: str
    arguments: dict[str, Any] | None = None


class _Getting(Struct):
    name: str
    arguments: dict[str, str] | None = None


class _Reading(Struct):
    uri: str


class Offer:
    """Tools, prompts and resources of one user. The first request that needs the memory opens it."""

    def __init__(
        self,
        toolset: Toolset,
        open_memories: "Callable[[], Memories]",
        prompts_folder: str,
        memory_id: str | None = None,
    ) -> None:
        """`memory_id` is the memory the model is told to use."""
        self._toolset = toolset
        self._open_memories = open_memories
        self._memories: Memories | None = None
        self._lock = Lock()
        self._resources = Resources(self.memories, prompts_folder)
        chosen = f"Use the memory {memory_id} unless you are told another." if memory_id else _FINDING
        self.instructions = f"{_ABOUT} {chosen}"

    def memories(self) -> "Memories":
        """Return the memories, opened once."""
        with self._lock:
            if self._memories is None:
                self._memories = self._open_memories()
            return self._memories

    def prepare(self, method: str, params: Params) -> Job:
        """Return what is to be done for a request; what is wrong with its parameters is a Fault."""
        prepare: dict[str, Callable[[Params], Job]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }
        return prepare[method](params)

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._memories is not None:
                self._memories.close()
        self._toolset.close()

    def _list_tools(self, params: Params) -> Job:
        _refuse_cursor(params)
        return Job(lambda: {"tools": [tool.listed() for tool in self._toolset.tools]}, at_once=True)

    def _call_tool(self, params: Params) -> Job:
        name, given = (wanted := read_params(params, _Calling)).name, wanted.arguments
        if name not in self._toolset.names:
            raise Fault(INVALID_PARAMS, f"Unknown tool: {name}")
        writes = name in self._toolset.writing
        return Job(lambda: _called(self._toolset.answer(self.memories, name, given)), writes=writes)

    def _list_prompts(self, params: Params) -> Job:
        _refuse_cursor(params)
        return Job(lambda: {"prompts": self._resources.list_prompts()})

    def _get_prompt(self, params: Params) -> Job:
        wanted = read_params(params, _Getting)
        return Job(lambda: self._resources.get_prompt(wanted.name, wanted.arguments or {}))

    def _list_resources(self, params: Params) -> Job:
        cursor = read_params(params, _Listing).cursor
        return Job(lambda: self._resources.list_resources(cursor))

    def _list_templates(self, params: Params) -> Job:
        _refuse_cursor(params)
        return Job(lambda: {"resourceTemplates": TEMPLATES}, at_once=True)

    def _read_resource(self, params: Params) -> Job:
        uri = read_params(params, _Reading).uri
        return Job(lambda: self._resources.read(uri))


def _called(answer: Answer) -> dict[str, Any]:
    """Return an answer as the result of tools/call: the value itself, and as text for clients that read no other."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": answer.text}], "isError": answer.failed}
    if answer.value is not None:
        result["structuredContent"] = answer.value
    return result


def _refuse_cursor(params: Params) -> None:
    """Refuse a cursor where all is told in one answer: nobody was given one."""
    if read_params(params, _Listing).cursor is not None:
        raise Fault(INVALID_PARAMS, "Invalid request parameters", "there is no such cursor")
