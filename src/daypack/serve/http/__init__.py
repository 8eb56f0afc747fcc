"""The HTTP server: MCP and a JSON API behind one gate."""
