"""The front matter of a Markdown file: names and plain values between two lines of ---; nested YAML is left out."""

import re

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z_][\w-]{0,60}):[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.+)")
_MAX_CHARS = 100_000


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of a file and the text after them; a list is joined by commas."""
    front = _FRONT.match(text[:_MAX_CHARS])
    if front is None:
        return {}, text
    fields: dict[str, str] = {}
    name = ""
    for line in front[1].splitlines():
        if (item := _ITEM.match(line)) and name:
            fields[name] = ", ".join(filter(None, (fields[name], _plain(item[1]))))
        elif field := _FIELD.match(line):
            name, value = field[1], field[2].strip()
            fields[name] = _plain(value[1:-1] if value.startswith("[") and value.endswith("]") else value)
    return fields, text[front.end() :]


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
