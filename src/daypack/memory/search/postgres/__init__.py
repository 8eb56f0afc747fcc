"""The search index of memories in a PostgreSQL database."""
