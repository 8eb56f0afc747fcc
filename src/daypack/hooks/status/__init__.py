"""The status of a session: its window, cache, memory and last compaction, for people and for status lines."""
