"""Promotion of recurring facts into MEMORY.md."""
