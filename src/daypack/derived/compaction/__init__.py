"""Compaction: what leaves the window becomes typed records and CONTEXT.md."""
