"""Where memories are kept: the port and its implementations."""
