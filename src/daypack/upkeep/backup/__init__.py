"""Backups of homes, users and sessions: plan, then apply; written, verified and restored whole or not at all."""
