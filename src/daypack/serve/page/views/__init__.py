"""What the page shows: each view takes the arguments of a request and returns a value for JSON."""
