"""One append-only log: reading, appending, the state of its lines, client keys."""
