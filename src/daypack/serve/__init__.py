"""Servers: the memory tools over MCP and a small JSON API."""
