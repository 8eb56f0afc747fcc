"""What the JSON API looks like, as an OpenAPI 3.1 document made from the same schemas the tools have."""

from typing import TYPE_CHECKING, Any

from daypack import __version__

if TYPE_CHECKING:
    from daypack.serve.toolset import Tool, Toolset

_ERRORS = {
    "400": "The body or an argument cannot be used; nothing was written.",
    "401": "A token is needed, or this one is not valid.",
    "403": "This token may only read, a quota is used up, or the request comes from a foreign page.",
    "404": "There is no such thing, or it is not yours.",
    "409": "The client key already stands for another payload.",
    "413": "The body is too long.",
    "415": "The body is no plain JSON.",
    "500": "The server failed; nothing was acknowledged.",
}
_PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "The name of the error: TooLong, MemoryMissing …"},
                "message": {"type": "string", "description": "What is wrong."},
                "hint": {"type": "string", "description": "What to do about it."},
            },
        }
    },
}


def describe_api(toolset: "Toolset") -> dict[str, Any]:
    """Return the document."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, Any] = {}
    for tool in toolset.tools:
        if tool.output_schema is not None:
            schemas[_result_name(tool)] = tool.output_schema
            paths[f"/api/{tool.name}"] = {"post": _operation(tool)}
    listed = {"type": "array", "items": _refer("Memory")}
    paths["/api/memories"] = {"get": _reading("list_memories", "List your memories", listed)}
    status = {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
    paths["/health"] = {"get": _reading("check_health", "Say that the server runs", status) | {"security": []}}
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
        "requestBody": {"required": True, "content": _json(dict(tool.input_schema))},
        "responses": _responses(_refer(_result_name(tool))),
    }


def _reading(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": _responses(schema)}


def _responses(schema: dict[str, Any]) -> dict[str, Any]:
    refused = {status: {"description": text, "content": _json(_refer("Problem"))} for status, text in _ERRORS.items()}
    return {"200": {"description": "Done.", "content": _json(schema)}, **refused}


def _result_name(tool: "Tool") -> str:
    return (tool.output_schema or {})["title"]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _refer(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
