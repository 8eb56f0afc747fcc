"""The server of the memory tools: MCP and a JSON API, with the page beside them."""

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daypack.serve.http.api import Api
from daypack.serve.http.application import PagePart, Part, Place, assemble
from daypack.serve.http.gate import MCP_PATH
from daypack.serve.http.mcp import McpEndpoint
from daypack.serve.http.openapi import describe_api
from daypack.serve.http.turns import Call, Caller
from daypack.serve.reach.resource import METADATA_PATHS, Resource

if TYPE_CHECKING:
    from daypack.serve.http.observed import Observed

_PURPOSE = "memory for agents, across sessions"
_PATHS = {
    MCP_PATH: "POST: MCP over streamable HTTP",
    "/api/TOOL": "POST: a tool, with its arguments as one JSON object",
    "/api/memories": "GET: your memories",
    "/openapi.json": "GET: the description of /api",
    METADATA_PATHS[1]: "GET: what OAuth clients need to know",
}


def make_app(place: Place, page: PagePart | None = None) -> "Observed":
    """Return the server as one ASGI application."""
    return assemble(place, _PURPOSE, [_serve_tools(place)], page)


def _serve_tools(place: Place) -> Part:
    tenants, policy = place.tenants, place.policy
    # With tokens there are several users, and only the owner knows the default memory.
    described = None if policy.token_required else Call(Caller(tenants.owner, writes=True))
    api = Api(tenants)
    instructions = tenants.router(described).instructions
    mcp = McpEndpoint(tenants, instructions=instructions, max_body_bytes=policy.max_body_bytes)
    openapi = msgspec.json.encode(describe_api(tenants.toolset(described and described.caller.user)))

    async def get_openapi(_: Request) -> Response:
        return Response(openapi, media_type="application/json")

    async def get_metadata(request: Request) -> Response:
        described = (policy.resource or Resource()).describe(request.scope["daypack.origin"].url)
        return Response(described, media_type="application/json")

    routes = [
        Route("/openapi.json", get_openapi),
        *(Route(path, get_metadata) for path in METADATA_PATHS),
        Route("/api/memories", api.memories),
        Route("/api/{tool}", api.call, methods=["POST"]),
        Route(MCP_PATH, mcp, methods=["POST"]),
    ]
    return Part(routes, _PATHS, tenants.toolset(tenants.owner).names, mcp.running)
