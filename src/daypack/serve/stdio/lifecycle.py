"""The two eras of MCP: versions that begin with a handshake, and the stateless one in which each request says its own.

Both are served in one process, as the newest version allows: a request whose `_meta` names a version is answered
according to it, whatever went before; all others belong to the handshake.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from daypack import __version__
from daypack.serve.stdio.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, Fault, Params

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
# How long a client may go without asking again. Tools do not change while a server runs; memories and files do.
_LASTING_MS = 3_600_000
_FRESH_MS = {
    "server/discover": _LASTING_MS,
    "tools/list": _LASTING_MS,
    "resources/templates/list": _LASTING_MS,
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
_UNTIMELY = frozenset(("initialize", "ping"))  # may come before the handshake is over

S = TypeVar("S", bound=Struct)


class _Client(Struct):
    name: str
    version: str


class _Opening(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: _Client


class Lifecycle:
    """What has been agreed with one client."""

    def __init__(self, instructions: str) -> None:
        self._instructions = instructions
        self._version: str | None = None  # of the handshake, once there was one

    @property
    def batches(self) -> bool:
        """Whether the client may send several messages in one array."""
        return self._version == BATCH_VERSION

    def admit(self, method: str, params: Params) -> str:
        """Return the version a request is to be answered in; refuse what that version does not have."""
        version = self._version or HANDSHAKE_VERSIONS[-1]
        methods = _HANDSHAKE_METHODS
        if method != "initialize" and _is_stateless(params):
            version, methods = _check_envelope(params["_meta"]), _STATELESS_METHODS
        if method not in methods:
            raise Fault(METHOD_NOT_FOUND, "Method not found", method)
        if version not in STATELESS_VERSIONS and self._version is None and method not in _UNTIMELY:
            raise Fault(INVALID_PARAMS, "Invalid request parameters", "send initialize first")
        return version

    def initialize(self, params: Params) -> dict[str, Any]:
        """Agree on a version: the client's own when it is known here, else the newest that has a handshake."""
        asked = read_params(params, _Opening).protocol_version
        self._version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions,
        }

    def discover(self) -> dict[str, Any]:
        """Tell what this server is, for clients that shake no hands."""
        return {
            "supportedVersions": STATELESS_VERSIONS,
            "capabilities": CAPABILITIES,
            "instructions": self._instructions,
        }


def dress(version: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what the version wants beside it."""
    if version not in STATELESS_VERSIONS:
        return dict(result)
    dressed = {**result, "resultType": "complete", "_meta": {SERVER_INFO_KEY: SERVER_INFO}}
    if method in _FRESH_MS:
        dressed |= {"ttlMs": _FRESH_MS[method], "cacheScope": "private"}
    return dressed


def read_params(params: Params, wanted: type[S]) -> S:
    """Return a request's parameters as a Struct."""
    try:
        return msgspec.convert(params, wanted)
    except msgspec.ValidationError as error:
        raise Fault(INVALID_PARAMS, "Invalid request parameters", str(error)) from error


def _is_stateless(params: Params) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _check_envelope(meta: Mapping[str, Any]) -> str:
    if CLIENT_CAPABILITIES_KEY not in meta:
        message = f"params._meta is missing the required envelope key(s): {CLIENT_CAPABILITIES_KEY}"
        raise Fault(INVALID_PARAMS, message)
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise Fault(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise Fault(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta[CLIENT_CAPABILITIES_KEY], dict):
        raise Fault(INVALID_PARAMS, "Invalid request parameters", f"{CLIENT_CAPABILITIES_KEY} is no object")
    return version
