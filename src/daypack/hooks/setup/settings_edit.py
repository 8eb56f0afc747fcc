"""Entries set in a settings file of an agent and taken out again, exactly where the file is as it was left."""

from typing import Any, NamedTuple, cast

from daypack.errors import BadConfig
from daypack.hooks.setup.installation import Entry, Settings
from daypack.hooks.setup.record import EntryRecord, FileRecord, Format, Step
from daypack.text.edits import json_edit, toml_edit, yaml_edit
from daypack.types.digest import digest_bytes


class Edited(NamedTuple):
    """A text after the entries were set, the steps that led to it, and what each entry changed."""

    text: str
    steps: tuple[Step, ...]
    entries: tuple[EntryRecord, ...]


def decode(path: str, data: bytes) -> str:
    """Return the text of a settings file. Raises BadConfig if it is no text."""
    try:
        return data.decode()
    except ValueError as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> BadConfig:
    """Return the error for a settings file that cannot be changed safely."""
    hint = "fix the file, then run `daypack setup` again"
    return BadConfig(f"cannot be changed safely: {error}", operation="setup", place=path, hint=hint)


def look_up(format: Format, path: str, text: str, keys: tuple[str, ...]) -> object:  # noqa: A002 — the word of the record
    """Return the value of an entry in a settings file; None if there is none."""
    try:
        if format == "toml":
            return toml_edit.look_up(toml_edit.parse(text), keys)
        if format == "yaml":
            return yaml_edit.look_up(text, cast(yaml_edit.Keys, keys))
        return json_edit.look_up(json_edit.parse(text, comments=format == "jsonc"), keys)
    except ValueError as error:
        raise unreadable(path, error) from error


def put(settings: Settings, text: str | None) -> Edited:
    """Set the entries in a text, None if there is no file; those that it has are left as they are."""
    steps = [Step(0, "", settings.new)] if text is None and settings.new else []
    text = settings.new if text is None else text
    entries: list[EntryRecord] = []
    for entry in settings.entries:
        try:
            changed, record = _put_entry(settings, text, entry)
        except BadConfig:
            if entry.item is None or settings.format == "yaml":
                raise
            continue
        if changed != text:
            steps.append(find_step(text, changed))
            entries.append(record)
            text = changed
    return Edited(text, tuple(steps), tuple(entries))


def _put_entry(settings: Settings, text: str, entry: Entry) -> tuple[str, EntryRecord]:
    previous = look_up(settings.format, settings.path, text, entry.keys)
    above = (entry.keys[:depth] for depth in range(1, len(entry.keys)))
    if settings.format == "yaml":
        made = int(not yaml_edit.has_key(text, entry.keys[0]))
    else:
        made = sum(look_up(settings.format, settings.path, text, keys) is None for keys in above)
    record = EntryRecord(entry.keys, made, previous, entry.item)
    if previous is not None and is_set(settings.format, previous, entry.value):
        return text, record
    try:
        return _insert(settings.format, text, entry.keys, entry.value), record
    except ValueError as error:
        raise unreadable(settings.path, error) from error


def is_set(format: Format, existing: object, value: object) -> bool:  # noqa: A002
    """Return True if an entry has the value; a table of TOML may have more fields."""
    if format == "toml":
        return cast("dict[str, Any]", existing).items() >= cast("dict[str, Any]", value).items()
    return existing == value


def take_back(record: FileRecord, data: bytes) -> bytes | None:
    """Return a settings file without what was set, None if it did not exist before.

    A file that is unchanged since becomes what it was, byte for byte. In any other, the entries are removed and the
    rest is left as it is.
    """
    text = decode(record.path, data)
    undone = _undo(record.steps, text) if record.steps and digest_bytes(data) == record.after else None
    if undone is not None and (digest_bytes(undone.encode()) == record.before or not (record.before or undone)):
        return undone.encode() if record.before else None
    try:
        for entry in reversed(record.entries):
            text = _remove(record.format, text, entry)
        text = _remove_trust(record.trusts, text)
    except ValueError as error:
        raise unreadable(record.path, error) from error
    return None if not record.before and _is_empty(record.format, record.path, text) else text.encode()


def find_step(before: str, after: str) -> Step:
    """Return the one replacement that turns a text into another."""
    limit = min(len(before), len(after))
    start = next((at for at in range(limit) if before[at] != after[at]), limit)
    same = next((at for at in range(limit - start) if before[-1 - at] != after[-1 - at]), limit - start)
    return Step(start, before[start : len(before) - same], after[start : len(after) - same])


def _undo(steps: tuple[Step, ...], text: str) -> str | None:
    for step in reversed(steps):
        stop = step.at + len(step.inserted)
        if text[step.at : stop] != step.inserted:
            return None
        text = text[: step.at] + step.removed + text[stop:]
    return text


def _insert(format: Format, text: str, keys: tuple[str, ...], value: Any) -> str:  # noqa: A002, ANN401 — a JSON value
    if format == "toml":
        return toml_edit.insert(text, keys, value)
    if format == "yaml":
        return _insert_yaml(text, cast(yaml_edit.Keys, keys), value)
    return json_edit.insert(text, keys, value, comments=format == "jsonc")


def _insert_yaml(text: str, keys: yaml_edit.Keys, value: str | list[str]) -> str:
    if isinstance(value, str):
        return yaml_edit.insert(text, keys, value)
    for item in value:
        text = yaml_edit.add_item(text, keys, item)
    return text


def _remove_yaml(text: str, entry: EntryRecord) -> str:
    keys = cast(yaml_edit.Keys, entry.keys)
    if entry.item is None:
        if entry.previous is not None:
            return yaml_edit.insert(text, keys, entry.previous)
        return yaml_edit.remove(text, keys, pruned=entry.made)
    text = yaml_edit.remove_item(text, keys, entry.item[1])
    is_made = entry.previous is None and yaml_edit.look_up(text, keys) == []
    return yaml_edit.remove(text, keys, pruned=entry.made) if is_made else text


def _remove(format: Format, text: str, entry: EntryRecord) -> str:  # noqa: A002
    if format == "yaml":
        return _remove_yaml(text, entry)
    if entry.item is not None:
        return _remove_item(text, entry, entry.item)
    if entry.previous is not None:
        return _insert(format, text, entry.keys, entry.previous)
    if format == "toml":
        return toml_edit.remove(text, entry.keys)
    return json_edit.remove(text, entry.keys, pruned=entry.made, comments=format == "jsonc")


def _remove_item(text: str, entry: EntryRecord, item: tuple[str, str]) -> str:
    """Remove an element of a list in a table, and the table if it was made for it."""
    field, element = item
    table = toml_edit.look_up(toml_edit.parse(text), entry.keys) or {}
    elements = table.get(field)
    if not isinstance(elements, list) or element not in elements:
        return text
    left = [other for other in cast("list[Any]", elements) if other != element]
    if not left and entry.previous is None and table.keys() == {field}:
        return toml_edit.remove(text, entry.keys)
    return toml_edit.insert(text, entry.keys, {field: left})


def _remove_trust(trusts: tuple[str, ...], text: str) -> str:
    """Remove the trust that the agent stored for the plug-in, and the table if nothing else is in it."""
    if not trusts:
        return text
    *keys, beginning = trusts
    stored = toml_edit.look_up(toml_edit.parse(text), keys) or {}
    ours = [name for name in stored if name.startswith(beginning)]
    for name in ours:
        text = toml_edit.remove(text, (*keys, name))
    return toml_edit.remove(text, keys) if ours and len(ours) == len(stored) else text


def _is_empty(format: Format, path: str, text: str) -> bool:  # noqa: A002
    """Return True if a file has nothing in it but what a new one has."""
    try:
        if format == "yaml":
            return yaml_edit.is_empty(text)
        document = toml_edit.parse(text) if format == "toml" else json_edit.parse(text, comments=format == "jsonc")
    except ValueError as error:
        raise unreadable(path, error) from error
    return not [key for key, value in document.items() if key != "version" and value not in ({}, [])]
