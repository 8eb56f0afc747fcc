"""Search in one memory: words and vectors."""
