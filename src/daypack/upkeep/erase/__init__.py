"""Erasing a literal, a message or a memory entry from every file: plan, then apply."""
