"""Memory stores of other systems, and our own: read offline, without the other program, and never written to."""
