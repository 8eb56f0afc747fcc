"""Upkeep of sessions: what is wrong, and what may go."""
