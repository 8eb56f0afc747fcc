"""What a remote client learns about the server as an OAuth 2.0 protected resource (RFC 9728), before it has a token.

GET /.well-known/oauth-protected-resource/mcp
{"resource":"https://memory.example/mcp","scopes_supported":["read","write"],"bearer_methods_supported":["header"],
"resource_name":"daypack","authorization_servers":["https://login.example"]}

401 WWW-Authenticate: Bearer resource_metadata="https://memory.example/.well-known/oauth-protected-resource/mcp"
"""

from typing import NamedTuple

import msgspec

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
METADATA_PATHS = (_WELL_KNOWN, f"{_WELL_KNOWN}/mcp")
SCOPES = ("read", "write")


class Resource(NamedTuple):
    """The address under which others know the server; without one, that of the request."""

    public_url: str = ""
    authorization_servers: tuple[str, ...] = ()

    def describe(self, own: str) -> bytes:
        """Return the metadata as JSON; `own` is the origin that the request was sent to."""
        facts: dict[str, object] = {
            "resource": f"{self.public_url or own}/mcp",
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ["header"],
            "resource_name": "daypack",
        }
        if self.authorization_servers:
            facts["authorization_servers"] = self.authorization_servers
        return msgspec.json.encode(facts)

    def metadata_address(self, own: str) -> str:
        """Return where the metadata is."""
        return f"{self.public_url or own}{METADATA_PATHS[1]}"


def challenge(metadata: str, error: str = "", scope: str = "") -> str:
    """Return the value of WWW-Authenticate; empty parts are left out."""
    parts = {"error": error, "scope": scope, "resource_metadata": metadata}
    return " ".join(("Bearer", ", ".join(f'{name}="{value}"' for name, value in parts.items() if value))).rstrip()
