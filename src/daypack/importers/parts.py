"""Parts of foreign messages: text as it is, pictures and documents by reference, never as base64."""

import binascii
import re
from typing import Any, cast

from daypack.importers.transcript import Keep, list_of, object_of, text_of, without

_MIN_REPEATED_CHARS = 64  # a shorter text costs less than saying where it stands
_MIN_DATA_CHARS = 64
_DATA_ADDRESS = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")


def claude_parts(content: object, keep: Keep) -> str | list[dict[str, Any]]:
    """Return the content of Anthropic's message shape: text, or blocks."""
    if isinstance(content, str):
        return content
    return plain_or_parts([_claude_part(block, keep) for block in list_of(content)])


def openai_parts(content: object, keep: Keep) -> str | list[dict[str, Any]]:
    """Return the content of the chat or responses shape: text, or blocks."""
    if isinstance(content, str):
        return content
    blocks = list_of(content) or [one for one in (object_of(content),) if one]
    return plain_or_parts([_openai_part(block, keep) for block in blocks])


def plain_or_parts(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one bare text as text, anything else as parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _claude_part(block: object, keep: Keep) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    part = object_of(block)
    if part.get("type") in ("text", "thinking"):
        return part
    source = object_of(part.get("source"))
    kind = {"image": "image", "document": "file"}.get(str(part.get("type")))
    if kind and source:
        rest = without(part, "type", "source")
        if source.get("type") == "base64" and (name := store_base64(source.get("data"), keep)):
            return {**rest, "type": kind, "source": name, **without({"media_type": source.get("media_type")})}
        if source.get("type") == "url" and text_of(source.get("url")):
            return {**rest, "type": kind, "source": source["url"]}
    return strip_base64(part, keep)


def _openai_part(block: object, keep: Keep) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    part = object_of(block)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text", "summary_text", "reasoning_text") and "text" in part:
        # An empty list of annotations, which every answer has, says nothing.
        rest = {name: one for name, one in without(part, "type").items() if one != []}
        return {"type": "text", **rest}
    if kind in ("image_url", "input_image"):
        inner = object_of(part.get("image_url"))
        url = inner.get("url") or part.get("image_url")
        rest = without(part, "type", "image_url") | without(inner, "url")
        return _by_reference("image", url, rest, keep) or strip_base64(part, keep)
    if kind in ("file", "input_file"):
        inner = object_of(part.get("file")) or without(part, "type")
        found = _by_reference("file", inner.get("file_data"), without(inner, "file_data"), keep)
        return found or strip_base64(part, keep)
    if kind == "input_audio":
        inner = object_of(part.get("input_audio"))
        if name := store_base64(inner.get("data"), keep):
            return {"type": "file", "source": name, "media_type": f"audio/{inner.get('format') or 'wav'}"}
    return strip_base64(part, keep)


def _by_reference(kind: str, url: object, rest: dict[str, Any], keep: Keep) -> dict[str, Any] | None:
    """Return the part for an address; the bytes of a data address are kept beside the log."""
    if not isinstance(url, str) or not url:
        return None
    data = _DATA_ADDRESS.match(url)
    if not data:
        return {**rest, "type": kind, "source": url}
    name = store_base64(url[data.end() :], keep)
    return {**rest, "type": kind, "source": name, **without({"media_type": data[1]})} if name else None


def store_base64(data: object, keep: Keep) -> str | None:
    """Keep bytes that are spelled in base64 and return their name; None when they are not."""
    if not isinstance(data, str) or not data:
        return None
    try:
        return keep(binascii.a2b_base64(data, strict_mode=True))
    except (ValueError, binascii.Error):
        return None


def strip_base64(value: Any, keep: Keep) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value in which bytes spelled in base64 are replaced by the name they are kept under."""
    if isinstance(value, list):
        return [strip_base64(one, keep) for one in cast(list[Any], value)]
    if not isinstance(value, dict):
        if isinstance(value, str) and _DATA_ADDRESS.match(value) and (part := _by_reference("file", value, {}, keep)):
            return {"sha256": part["source"], **without(part, "type", "source")}
        return value
    fields = cast(dict[str, Any], value)
    changed: dict[str, Any] = {}
    for name, one in fields.items():
        spelled = name in ("base64", "file_data", "b64_json") or (name == "data" and fields.get("type") == "base64")
        long = isinstance(one, str) and len(one) >= _MIN_DATA_CHARS
        kept = store_base64(one, keep) if spelled and long else None
        changed[name] = {"sha256": kept} if kept else strip_base64(one, keep)
    return changed


def point_at(value: Any, text: str) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value in which long texts that also stand in `text` are replaced by where they stand there."""
    if isinstance(value, str) and len(value) >= _MIN_REPEATED_CHARS and (at := text.find(value)) >= 0:
        return {"content_chars": [at, len(value)]}
    if isinstance(value, list):
        return [point_at(one, text) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: point_at(one, text) for name, one in cast(dict[str, Any], value).items()}
    return value
