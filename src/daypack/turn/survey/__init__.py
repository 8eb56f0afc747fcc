"""Survey: read everything a turn could use."""
