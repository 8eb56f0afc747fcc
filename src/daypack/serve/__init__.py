"""Servers for the memory tools: MCP over stdio, and MCP plus a JSON API over HTTP."""
