"""Search in one memory: by words and by vectors."""
