"""Packing the calls of opencode: a process beside it answers its plug-in, which decides nothing itself."""
