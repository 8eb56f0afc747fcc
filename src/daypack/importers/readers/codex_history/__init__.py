"""Codex's database of screen items, for threads whose rollout files are gone."""
