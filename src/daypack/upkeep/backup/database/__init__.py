"""Backups of memories in a database: their records as lines, copied from one snapshot, restored in one transaction."""
