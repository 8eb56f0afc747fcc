"""Tool calls: the effects their arguments describe, even if the arguments are broken JSON."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from daypack.derived.artifacts.commands import Done, is_path, read_commands
from daypack.derived.artifacts.outcomes import one_line
from daypack.derived.artifacts.patches import Touch, read_patch
from daypack.derived.artifacts.shell import split, split_words
from daypack.derived.artifacts.tool_arguments import PATHS, SOURCES, TARGETS, ToolShape, Verb, fold, shape_of

COMMAND_CHARS = 200
_MOST_PATHS = 500  # of one call
_DEPTH = 3
_PAIR = re.compile(r'"([A-Za-z_]{2,32})"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SUFFIX = re.compile(r"(?<=[^\d:/]):\d{1,7}(?:[-:,]\d{1,7})?$|#L\d{1,7}(?:-L?\d{1,7})?$")
_URL = re.compile(r"(?:https?|ftp)://[^\s\"'<>`]{2,2000}")
_TAIL = ("path", "file", "filename", "paths", "files", "dir", "directory", "folder")
_PATHS, _SOURCES, _TARGETS = frozenset(PATHS), frozenset(SOURCES), frozenset(TARGETS)
_WILDCARDS = re.compile(r"[*?\[{]")
_SPECIAL_COMMANDS = {"edit", "insert", "append", "scroll_up", "scroll_down", "goto", "open", "create"}
_LINES = re.compile(r"(\d{1,9})(?:[:,-](\d{1,9}))?")


class CallRead(NamedTuple):
    """The effects of a call, as far as its arguments describe them."""

    shape: ToolShape
    touches: tuple[Touch, ...] = ()
    command: str = ""  # on one line; empty when it is no command
    done: Done = Done()
    urls: tuple[str, ...] = ()
    limited: bool = False  # it asked for a part of a file
    opened: bool = False  # it is about the file that is open in an editor


def read_call(name: str, arguments: str) -> CallRead:
    """Read a call; what cannot be read is left out."""
    shape = shape_of(name)
    value = _decoded(arguments)
    fields = _folded(value)
    if shape.command:
        words = _first(fields, shape.command) if fields else value
        if words is not None:
            return _read_script(shape, words)
    if shape.patch:
        text = _first(fields, shape.patch) if fields else value
        own = () if not isinstance(text, str) else read_patch(text)
        return CallRead(shape, (*map(_tidy, own), *_touches(shape, fields)))
    touches = tuple(_touches(shape, fields))
    start, stop = _range_of(shape, fields)
    if start or stop:
        touches = tuple(touch._replace(start=start or 1, stop=stop) for touch in touches)
    urls = tuple(dict.fromkeys(_urls(shape, fields)))
    limited = any(name in fields for name in (*shape.start, *shape.stop, *shape.count, "viewrange"))
    return CallRead(shape, touches, urls=urls, limited=limited, opened=shape.opened and not touches)


def read_action(action: str) -> CallRead:
    """Read a line of an agent that has no tools but a shell with an editor of its own: `open a.py 12`."""
    first, _, rest = action.strip().partition(" ")
    name = first.partition("\n")[0]
    shape = shape_of(name)
    if name not in _SPECIAL_COMMANDS:
        return read_call("bash", action)
    words = [word for part in split(rest.partition("\n")[0])[:1] for word in part.words]
    if shape.opened:
        lines = _LINES.fullmatch(words[0]) if words else None
        path = "" if lines or not words or name in ("insert", "append", "edit", "goto") else words[0]
        return CallRead(shape, (_tidy(Touch(shape.verb or "read", path)),) if path else (), opened=not path)
    touches = tuple(_tidy(Touch(shape.verb or "read", word)) for word in words[:1] if is_path(word))
    return CallRead(shape, touches, limited=len(words) > 1)


def tidy_path(path: str) -> str:
    """Return a path as it was written, without quotes around it and a line number after it."""
    path = path.strip().strip("'\"`").strip()
    path = _SUFFIX.sub("", path)
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def urls_in(text: str, most: int) -> list[str]:
    """Return the addresses in a text, each once."""
    if "://" not in text:
        return []
    found: dict[str, None] = {}
    for match in _URL.finditer(text):
        found[tidy_url(match[0])] = None
        if len(found) >= most:
            break
    return list(found)


def tidy_url(url: str) -> str:
    """Return an address without the punctuation of the sentence around it."""
    url = url.rstrip(".,;:!?*\\")
    while url.endswith((")", "]", "}")) and url.count("([{"[")]}".index(url[-1])]) < url.count(url[-1]):
        url = url[:-1].rstrip(".,;:!?*\\")
    return url if url.isascii() else url.encode("utf-8", "replace").decode()


# Arguments


def _decoded(arguments: str) -> object:
    """Return arguments as a value: JSON, the pairs that can be made out in broken JSON, or the text itself."""
    text = arguments.lstrip()
    if not text.startswith(("{", "[", '"')):
        return arguments
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pairs = {name: _unescaped(words) for name, words in _PAIR.findall(text)}
        return pairs or arguments


def _unescaped(words: str) -> str:
    if "\\" not in words:
        return words
    return _ESCAPE.sub(
        lambda escape: chr(int(escape[1][1:], 16)) if len(escape[1]) == 5 else _ESCAPES.get(escape[1], escape[1]), words
    )


def _folded(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {fold(name): item for name, item in cast(dict[str, Any], value).items() if len(name) <= 64}


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _number(value: object) -> int:
    if isinstance(value, str) and len(value) < 10 and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else 0


def _range_of(shape: ToolShape, fields: Mapping[str, Any]) -> tuple[int, int]:
    shown = fields.get("viewrange")
    if isinstance(shown, list):
        ends = [_number(number) for number in cast(list[object], shown)[:2]]
        return (ends[0], ends[1]) if len(ends) == 2 else (0, 0)
    start, stop = _number(_first(fields, shape.start)), _number(_first(fields, shape.stop))
    count = _number(_first(fields, shape.count))
    return start, stop or ((start or 1) + count - 1 if count else 0)


def _read_script(shape: ToolShape, words: object) -> CallRead:
    if isinstance(words, list):
        parts = tuple(word for word in cast(list[object], words) if isinstance(word, str))
        simples, command = split_words(parts), " ".join(parts)
        if len(parts) == 3 and parts[1].startswith("-"):
            command = parts[2]
    elif isinstance(words, str):
        simples, command = split(words), words
    else:
        return CallRead(shape)
    done = read_commands(simples)
    urls = tuple(dict.fromkeys(map(tidy_url, done.urls)))
    return CallRead(shape, tuple(map(_tidy, done.touches)), one_line(command, COMMAND_CHARS), done, urls)


def _tidy(touch: Touch) -> Touch:
    return touch._replace(path=tidy_path(touch.path))


# Paths


def _touches(shape: ToolShape, fields: dict[str, Any]) -> Iterator[Touch]:
    verb: Verb | None = shape.verb
    said = fields.get("command")
    if isinstance(said, str) and said in shape.verbs:
        verb = shape.verbs[said]
    if verb is None:
        return
    content = _first(fields, shape.content) if verb in ("written", "created") else None
    edits = _edits(shape, fields) if verb == "written" else None
    for name, path, beside in islice(_named_paths(fields, shape, 0), _MOST_PATHS):
        own = _first(beside, shape.content) if beside is not fields else content
        text = own if isinstance(own, str) and not edits else None
        yield Touch(_moved(shape, name, verb), path, text, edits)


def _moved(shape: ToolShape, name: str, verb: Verb) -> Verb:
    if (shape.moves or shape.copies) and name in _TARGETS:
        return "created"
    if (shape.moves or shape.copies) and name in (*SOURCES, *PATHS):
        return "deleted" if shape.moves else "read"
    return verb


def _named_paths(fields: dict[str, Any], shape: ToolShape, depth: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield argument, path and the enclosing object for every argument that names files."""
    moving = shape.moves or shape.copies
    for name, value in fields.items():
        sure = name in _PATHS or name in shape.paths or (moving and (name in _SOURCES or name in _TARGETS))
        if sure or name in shape.patterns or name.endswith(_TAIL):
            for string in _strings(value):
                path = tidy_path(string)
                if path and _is_fit(path, sure=sure):
                    yield name, path, fields
        if isinstance(value, dict | list) and depth < _DEPTH:
            for inner in cast(list[object], value) if isinstance(value, list) else (cast(object, value),):
                if isinstance(inner, dict):
                    yield from _named_paths(_folded(cast(object, inner)), shape, depth + 1)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        # A list that was spelled as text: JSON, or one path in a line.
        if value.startswith("[") and value.endswith("]"):
            inner = _decoded(value)
            if isinstance(inner, list):
                yield from _strings(cast(object, inner))
                return
        yield from value.splitlines() if "\n" in value else (value,)
    elif isinstance(value, list):
        yield from (path for path in cast(list[object], value) if isinstance(path, str))


def _is_fit(path: str, *, sure: bool) -> bool:
    if len(path) > 4096 or "://" in path[:12] or "\x00" in path:
        return path.startswith("file://") and len(path) <= 4096
    return sure or (("/" in path or "." in path) and " " not in path and not _WILDCARDS.search(path))


def _edits(shape: ToolShape, fields: dict[str, Any]) -> tuple[tuple[str, str, bool], ...] | None:
    """Return the replacements of an edit; None when they are not all known."""
    listed = fields.get("edits")
    steps = [_folded(item) for item in cast(list[object], listed)] if isinstance(listed, list) else [fields]
    edits: list[tuple[str, str, bool]] = []
    for step in steps:
        old, new = _first(step, shape.old), _first(step, shape.new)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        edits.append((old, new, step.get("replaceall") is True))
    return tuple(edits) or None


def _urls(shape: ToolShape, fields: dict[str, Any]) -> Iterator[str]:
    for name in (*shape.urls, *(key for key in PATHS if key in fields)):
        for string in _strings(fields.get(name)):
            if "://" in string[:12] and len(string) <= 2048 and not string.startswith("file://"):
                yield tidy_url(string.strip())
