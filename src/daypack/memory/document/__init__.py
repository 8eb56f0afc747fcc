"""The context document of a memory: its Markdown, and how it grows from raw entries."""
