"""Memories in a PostgreSQL database."""
