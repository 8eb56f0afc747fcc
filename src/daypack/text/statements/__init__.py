"""Statements of Markdown texts: their parts, their wording, and which of them belong to a single session."""
