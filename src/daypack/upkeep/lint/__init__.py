"""Hygiene of prompt files: duplicates, stale references, long examples."""
