"""The lines that differ between two texts, as a unified diff of limited length."""

from difflib import unified_diff

_MOST_CHARS = 60_000  # of a text that is compared: the work grows with the square of what differs
_MOST_LINES = 400


def diff_lines(before: str, after: str) -> list[str]:
    """Return the lines of a unified diff without its head; the beginnings of long texts are compared."""
    if before == after:
        return []
    old, new = before[:_MOST_CHARS].splitlines(), after[:_MOST_CHARS].splitlines()
    lines = [line[:_MOST_CHARS] for line in unified_diff(old, new, lineterm="", n=3)][2:]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES:,} more lines"]
    if not lines:  # they differ after the beginning, or in their line breaks
        lines = [f"… {len(before):,} characters became {len(after):,}"]
    return lines
