"""MCP protocol versions: those that start with a handshake, and the stateless one where each request names its version.

One process serves both, as the newest version allows: a request whose `_meta` names a version is answered in that
version, whatever came before; all other requests use the version of the handshake.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from daypack import __version__
from daypack.serve.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, Params, RpcError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
BATCH_VERSION = "2025-03-26"  # the only one that has batches

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

SERVER_INFO = {"name": "daypack", "title": "daypack", "version": __version__}
CAPABILITIES = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
# How long a client may cache a result. Tools do not change while a server runs; memories and files do.
_CACHEABLE_MS = 3_600_000
_CACHE_MS = {
    "server/discover": _CACHEABLE_MS,
    "tools/list": _CACHEABLE_MS,
    "resources/templates/list": _CACHEABLE_MS,
    "prompts/list": 0,
    "resources/list": 0,
    "resources/read": 0,
}
_SHARED = (
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
)
_HANDSHAKE_METHODS = frozenset(("initialize", "ping", *_SHARED))
_STATELESS_METHODS = frozenset(("server/discover", *_SHARED))
_BEFORE_HANDSHAKE = frozenset(("initialize", "ping"))

S = TypeVar("S", bound=Struct)


class _ClientInfo(Struct):
    name: str
    version: str


class _InitializeParams(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: _ClientInfo


class Lifecycle:
    """The protocol version agreed with one client."""

    def __init__(self, instructions: str) -> None:
        self._instructions = instructions
        self._version: str | None = None  # set by the handshake

    @property
    def allows_batches(self) -> bool:
        """True if the client may send several messages in one array."""
        return self._version == BATCH_VERSION

    def check_request(self, method: str, params: Params) -> str:
        """Return the version to answer a request in; raise RpcError if that version lacks the method."""
        version = self._version or HANDSHAKE_VERSIONS[-1]
        methods = _HANDSHAKE_METHODS
        if method != "initialize" and _is_stateless(params):
            version, methods = _check_envelope(params["_meta"]), _STATELESS_METHODS
        if method not in methods:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", method)
        if version not in STATELESS_VERSIONS and self._version is None and method not in _BEFORE_HANDSHAKE:
            raise RpcError(INVALID_PARAMS, "Invalid request parameters", "send initialize first")
        return version

    def initialize(self, params: Params) -> dict[str, Any]:
        """Agree on the version the client asks for if it is supported, else on the newest with a handshake."""
        requested = read_params(params, _InitializeParams).protocol_version
        self._version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions,
        }

    def discover(self) -> dict[str, Any]:
        """Describe this server to clients that use no handshake."""
        return {
            "supportedVersions": STATELESS_VERSIONS,
            "capabilities": CAPABILITIES,
            "instructions": self._instructions,
        }


def add_version_fields(version: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the extra fields that its protocol version requires."""
    if version not in STATELESS_VERSIONS:
        return dict(result)
    extended = {**result, "resultType": "complete", "_meta": {SERVER_INFO_KEY: SERVER_INFO}}
    if method in _CACHE_MS:
        extended |= {"ttlMs": _CACHE_MS[method], "cacheScope": "private"}
    return extended


def read_params(params: Params, kind: type[S]) -> S:
    """Validate the parameters of a request against a Struct."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, "Invalid request parameters", str(error)) from error


def _is_stateless(params: Params) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _check_envelope(meta: Mapping[str, Any]) -> str:
    if CLIENT_CAPABILITIES_KEY not in meta:
        message = f"params._meta is missing the required envelope key(s): {CLIENT_CAPABILITIES_KEY}"
        raise RpcError(INVALID_PARAMS, message)
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta[CLIENT_CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, "Invalid request parameters", f"{CLIENT_CAPABILITIES_KEY} must be an object")
    return version
