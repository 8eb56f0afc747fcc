"""Memories across sessions: immutable entries, context documents, the nine tools, search."""
