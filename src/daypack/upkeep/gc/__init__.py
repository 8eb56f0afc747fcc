"""Garbage collection of derived files: plan, then apply."""
