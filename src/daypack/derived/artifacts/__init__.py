"""Artifacts: files, commands and test outcomes, read off tool calls and results."""
