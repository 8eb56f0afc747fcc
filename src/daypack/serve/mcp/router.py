"""Maps MCP requests for tools, prompts and resources to jobs that a transport runs."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from daypack.serve.mcp.jsonrpc import INVALID_PARAMS, Params, RpcError
from daypack.serve.mcp.lifecycle import read_params
from daypack.serve.mcp.resources import MEMORIES, TEMPLATES, Resources
from daypack.serve.toolset import Answer, Toolset

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

_WORKFLOW = (
    "Memory that lasts across sessions. At the start call get_context, then list_entries with limit 10. Store what is "
    "worth keeping with add_entry; look things up with search_memories. After about six new entries, and before the "
    "session ends, call await_consistency, then put_context with the whole updated document."
)
_WORKFLOW_WITH_HOOKS = (
    "Memory that lasts across sessions. daypack itself captures this conversation, keeps the memory's "
    "document and adds it to your window at the start. Look things up with search_memories; store with add_entry only "
    "what must not be missed."
)
_FIND_MEMORY = (
    f"The user's memories and their ids are listed in the resource {MEMORIES}. If you have no memory_id and cannot "
    "read resources, ask the user for it or create a memory with create_memory."
)


class Job(NamedTuple):
    """The work for one request. `writes` and `at_once` tell a transport how to schedule it."""

    work: Callable[[], Mapping[str, Any]]
    writes: bool = False
    at_once: bool = False


class _ListParams(Struct):
    cursor: str | None = None


class _CallParams(Struct):
    name: str
    arguments: dict[str, Any] | None = None


class _GetParams(Struct):
    name: str
    arguments: dict[str, str] | None = None


class _ReadParams(Struct):
    uri: str


class Router:
    """Answers MCP requests of one user. The first request that needs the memory opens it."""

    def __init__(
        self,
        toolset: Toolset,
        open_memories: "Callable[[], Memories]",
        prompts_folder: str,
        *,
        with_hooks: bool = False,
    ) -> None:
        """`with_hooks`: the agent's hooks capture the session, so that the model need not keep the document."""
        self._toolset = toolset
        self._open_memories = open_memories
        self._memories: Memories | None = None
        self._lock = Lock()
        self._resources = Resources(self.memories, prompts_folder)
        which = _FIND_MEMORY
        if default := toolset.default_memory:
            which = f"Use the memory {default} unless the user names another: for it, memory_id may be left out."
        self.instructions = f"{_WORKFLOW_WITH_HOOKS if with_hooks else _WORKFLOW} {which}"
        self.tools = toolset.names
        self._routes: dict[str, Callable[[Params], Job]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }
        self.methods = tuple(self._routes)

    def memories(self) -> "Memories":
        """Return the memories, opened once."""
        with self._lock:
            if self._memories is None:
                self._memories = self._open_memories()
            return self._memories

    def route(self, method: str, params: Params) -> Job:
        """Return the job for a request; raise RpcError if its parameters are invalid."""
        return self._routes[method](params)

    def close(self) -> None:
        """Close the memories and the session, if they were opened."""
        with self._lock:
            if self._memories is not None:
                self._memories.close()
        self._toolset.close()

    def _list_tools(self, params: Params) -> Job:
        _reject_cursor(params)
        return Job(lambda: {"tools": [tool.as_listed() for tool in self._toolset.tools]}, at_once=True)

    def _call_tool(self, params: Params) -> Job:
        call = read_params(params, _CallParams)
        name, arguments = call.name, call.arguments
        if name not in self._toolset.names:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        writes = name in self._toolset.writing
        return Job(lambda: _call_result(self._toolset.answer(self.memories, name, arguments)), writes=writes)

    def _list_prompts(self, params: Params) -> Job:
        _reject_cursor(params)
        return Job(lambda: {"prompts": self._resources.list_prompts()})

    def _get_prompt(self, params: Params) -> Job:
        prompt = read_params(params, _GetParams)
        return Job(lambda: self._resources.get_prompt(prompt.name, prompt.arguments or {}))

    def _list_resources(self, params: Params) -> Job:
        cursor = read_params(params, _ListParams).cursor
        return Job(lambda: self._resources.list_resources(cursor))

    def _list_templates(self, params: Params) -> Job:
        _reject_cursor(params)
        return Job(lambda: {"resourceTemplates": TEMPLATES}, at_once=True)

    def _read_resource(self, params: Params) -> Job:
        uri = read_params(params, _ReadParams).uri
        return Job(lambda: self._resources.read(uri))


def _call_result(answer: Answer) -> dict[str, Any]:
    """Return the result of tools/call: structured, and as text for clients that read only text."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": answer.text}], "isError": answer.failed}
    if answer.value is not None:
        result["structuredContent"] = answer.value
    return result


def _reject_cursor(params: Params) -> None:
    """Raise RpcError for a cursor: this list has one page, so no client was given one."""
    if read_params(params, _ListParams).cursor is not None:
        raise RpcError(INVALID_PARAMS, "Invalid request parameters", "unknown cursor")
