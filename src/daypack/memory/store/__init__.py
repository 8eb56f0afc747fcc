"""Where memories are stored: the interface of a store and its implementation in SQLite."""
