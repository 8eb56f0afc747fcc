"""The calls of a session: what each contained by part, in rows that are read without replaying a turn."""
