"""Convert the content of imported messages: text verbatim, images and documents as blob references, never base64."""

import binascii
import re
from typing import Any, cast

from daypack.importers.transcript import StoreBlob, list_of, object_of, text_of, without

_MIN_REPEATED_CHARS = 64  # shorter texts cost less than a reference
_MIN_DATA_CHARS = 64
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")


def claude_parts(content: object, store_blob: StoreBlob) -> str | list[dict[str, Any]]:
    """Convert the content of an Anthropic message: text or blocks."""
    if isinstance(content, str):
        return content
    return plain_or_parts([_claude_part(block, store_blob) for block in list_of(content)])


def openai_parts(content: object, store_blob: StoreBlob) -> str | list[dict[str, Any]]:
    """Convert the content of an OpenAI chat message or response item: text or blocks."""
    if isinstance(content, str):
        return content
    blocks = list_of(content) or [block for block in (object_of(content),) if block]
    return plain_or_parts([_openai_part(block, store_blob) for block in blocks])


def gemini_parts(parts: list[Any], store_blob: StoreBlob) -> str | list[dict[str, Any]]:
    """Convert the parts of a content of Google's API."""
    return plain_or_parts([_gemini_part(part, store_blob) for part in parts])


def plain_or_parts(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return a single plain text part as a string, anything else as parts."""
    if not parts:
        return ""
    text = parts[0].get("text")
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text" and isinstance(text, str):
        return text
    return parts


def _claude_part(block: object, store_blob: StoreBlob) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    part = object_of(block)
    if part.get("type") in ("text", "thinking"):
        return part
    source = object_of(part.get("source"))
    kind = {"image": "image", "document": "file"}.get(str(part.get("type")))
    if kind and source:
        rest = without(part, "type", "source")
        if source.get("type") == "base64" and (name := store_base64(source.get("data"), store_blob)):
            return {**rest, "type": kind, "source": name, **without({"media_type": source.get("media_type")})}
        if source.get("type") == "url" and text_of(source.get("url")):
            return {**rest, "type": kind, "source": source["url"]}
    return strip_base64(part, store_blob)


def _openai_part(block: object, store_blob: StoreBlob) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    part = object_of(block)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text", "summary_text", "reasoning_text") and "text" in part:
        # Every answer has a list of annotations, mostly empty.
        rest = {name: value for name, value in without(part, "type").items() if value != []}
        return {"type": "text", **rest}
    if kind in ("image_url", "input_image"):
        inner = object_of(part.get("image_url"))
        url = inner.get("url") or part.get("image_url")
        rest = without(part, "type", "image_url") | without(inner, "url")
        return _part_from_url("image", url, rest, store_blob) or strip_base64(part, store_blob)
    if kind in ("file", "input_file"):
        inner = object_of(part.get("file")) or without(part, "type")
        file_part = _part_from_url("file", inner.get("file_data"), without(inner, "file_data"), store_blob)
        return file_part or strip_base64(part, store_blob)
    if kind == "input_audio":
        inner = object_of(part.get("input_audio"))
        if name := store_base64(inner.get("data"), store_blob):
            return {"type": "file", "source": name, "media_type": f"audio/{inner.get('format') or 'wav'}"}
    return strip_base64(part, store_blob)


def _gemini_part(value: object, store_blob: StoreBlob) -> dict[str, Any]:
    part = object_of(value)
    text = part.get("text")
    if isinstance(text, str):
        rest = without(part, "text", "thought", "thoughtSignature")
        if part.get("thought") is True:
            return {"type": "thinking", "text": text, **rest, **without({"signature": part.get("thoughtSignature")})}
        return {"type": "text", "text": text, **rest, **without({"thoughtSignature": part.get("thoughtSignature")})}
    for name, field in (("inlineData", "data"), ("fileData", "fileUri")):
        data = object_of(part.get(name))
        media_type = text_of(data.get("mimeType"))
        kind = "image" if (media_type or "").startswith("image/") else "file"
        source = store_base64(data.get(field), store_blob) if name == "inlineData" else text_of(data.get(field))
        if source:
            return {"type": kind, "source": source, **without({"media_type": media_type}), **without(part, name)}
    kind = next(iter(part), "value")  # a part of another kind has one key, which names it
    return {"type": kind, **strip_base64(part or {kind: value}, store_blob)}


def _part_from_url(kind: str, url: object, rest: dict[str, Any], store_blob: StoreBlob) -> dict[str, Any] | None:
    """Return the part for a URL; the bytes of a data URL are stored as a blob."""
    if not isinstance(url, str) or not url:
        return None
    data = _DATA_URL.match(url)
    if not data:
        return {**rest, "type": kind, "source": url}
    name = store_base64(url[data.end() :], store_blob)
    return {**rest, "type": kind, "source": name, **without({"media_type": data[1]})} if name else None


def store_base64(data: object, store_blob: StoreBlob) -> str | None:
    """Decode base64, store the bytes and return their name; None if the data is not base64."""
    if not isinstance(data, str) or not data:
        return None
    try:
        return store_blob(binascii.a2b_base64(data, strict_mode=True))
    except (ValueError, binascii.Error):
        return None


def strip_base64(value: Any, store_blob: StoreBlob) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value in which base64 data is replaced by the name of its blob."""
    if isinstance(value, list):
        return [strip_base64(element, store_blob) for element in cast(list[Any], value)]
    if not isinstance(value, dict):
        if (
            isinstance(value, str)
            and _DATA_URL.match(value)
            and (part := _part_from_url("file", value, {}, store_blob))
        ):
            return {"sha256": part["source"], **without(part, "type", "source")}
        return value
    fields = cast(dict[str, Any], value)
    changed: dict[str, Any] = {}
    for name, member in fields.items():
        is_data = name == "data" and (fields.get("type") == "base64" or isinstance(fields.get("mimeType"), str))
        is_base64 = is_data or name in ("base64", "file_data", "b64_json")
        is_long = isinstance(member, str) and len(member) >= _MIN_DATA_CHARS
        blob = store_base64(member, store_blob) if is_base64 and is_long else None
        changed[name] = {"sha256": blob} if blob else strip_base64(member, store_blob)
    return changed


def replace_repeated(value: Any, text: str) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value in which long strings that occur in `text` are replaced by their position in it."""
    if isinstance(value, str) and len(value) >= _MIN_REPEATED_CHARS and (start := text.find(value)) >= 0:
        return {"content_chars": [start, len(value)]}
    if isinstance(value, list):
        return [replace_repeated(element, text) for element in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: replace_repeated(member, text) for name, member in cast(dict[str, Any], value).items()}
    return value
