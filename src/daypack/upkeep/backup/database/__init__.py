"""Backups of a database: its records as lines, copied from one snapshot, restored in one transaction."""
