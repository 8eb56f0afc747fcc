"""Lint prompt files: duplicated rules, stale references, session history in memory, long examples."""
