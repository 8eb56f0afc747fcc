"""Entries for the MCP server in the configuration of other programs."""
