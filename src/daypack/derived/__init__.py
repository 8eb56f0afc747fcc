"""Derived files: everything under `context/`, rebuildable from history."""
