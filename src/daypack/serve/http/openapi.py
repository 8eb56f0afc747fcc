"""The OpenAPI 3.1 document of the JSON API, generated from the schemas of the tools."""

from typing import TYPE_CHECKING, Any

from daypack import __version__
from daypack.types.memory import LIST_MAX_MEMORIES

if TYPE_CHECKING:
    from daypack.serve.toolset import Tool, Toolset

_ERRORS = {
    "400": "The body or an argument is invalid; nothing was written.",
    "401": "The token is missing or not valid.",
    "403": "The token is read-only, a quota is exceeded, or the request comes from a page of another origin.",
    "404": "Not found, or owned by another user.",
    "409": "The client key was already used with another payload.",
    "413": "The body is too long.",
    "415": "The body is not plain JSON.",
    "429": "This caller sent too many requests, or has too many calls in progress; Retry-After says when to try again.",
    "500": "The server failed; the request was not carried out.",
    "503": "The server has no room for another call; Retry-After says when to try again.",
}
_PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "The error class, for instance TooLong or MemoryMissing."},
                "message": {"type": "string", "description": "What failed."},
                "hint": {"type": "string", "description": "What to do next."},
            },
        }
    },
}
_MEMORY_PAGE = {
    "type": "object",
    "required": ["memories", "count", "applied_limit"],
    "properties": {
        "memories": {"type": "array", "items": {"$ref": "#/components/schemas/Memory"}},
        "count": {"type": "integer", "minimum": 0},
        "applied_limit": {"type": "integer", "minimum": 1, "maximum": LIST_MAX_MEMORIES},
        "next_after": {
            "type": ["string", "null"],
            "description": "The `after` of the next page; null: there are no more.",
        },
        "damaged": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Memories whose own record is damaged, by id.",
        },
    },
}
_PAGING = [
    {
        "name": "limit",
        "in": "query",
        "description": "How many, oldest first.",
        "schema": {"type": "integer", "minimum": 1, "maximum": LIST_MAX_MEMORIES, "default": 50},
    },
    {
        "name": "after",
        "in": "query",
        "description": "Only memories after this memory id.",
        "schema": {"type": "string"},
    },
]


_HEALTH = (
    ("/health", "check_health", "Report that the server is running"),
    ("/health/live", "check_live", "Report that the server is running"),
    ("/health/ready", "check_ready", "Report that the server can read and write; 503 if it cannot"),
)


def describe_api(toolset: "Toolset") -> dict[str, Any]:
    """Return the OpenAPI document of the tools in a toolset."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, Any] = {}
    for tool in toolset.tools:
        if tool.output_schema is not None:
            schemas[_result_name(tool)] = tool.output_schema
            paths[f"/api/{tool.name}"] = {"post": _operation(tool)}
    paths["/api/memories"] = {
        "get": _get_operation("list_memories", "List your memories", _MEMORY_PAGE) | {"parameters": _PAGING}
    }
    status = {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
    for path, name, summary in _HEALTH:
        paths[path] = {"get": _get_operation(name, summary, status) | {"security": []}}
    metrics = _get_operation("get_metrics", "Read the metrics, as the user the server was started for", {})
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    paths["/metrics"] = {"get": metrics}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "daypack memory",
            "version": __version__,
            "description": "Memory across sessions. The same tools are offered to MCP clients at /mcp.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(tool: "Tool") -> dict[str, Any]:
    return {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "requestBody": {"required": True, "content": _json_content(dict(tool.input_schema))},
        "responses": _responses(_schema_ref(_result_name(tool))),
    }


def _get_operation(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": _responses(schema)}


def _responses(schema: dict[str, Any]) -> dict[str, Any]:
    failures = {
        status: {"description": text, "content": _json_content(_schema_ref("Problem"))}
        for status, text in _ERRORS.items()
    }
    return {"200": {"description": "Success.", "content": _json_content(schema)}, **failures}


def _result_name(tool: "Tool") -> str:
    return (tool.output_schema or {})["title"]


def _json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schema_ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
