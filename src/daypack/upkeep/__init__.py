"""Maintenance of sessions and prompt files: doctor, rebuild, archive, garbage collection, lint, reflect."""
