"""What a host says about itself to a status line, on standard input; Claude Code calls it after every turn.

{"session_id":"…","workspace":{"current_dir":"/src/app"},"model":{"display_name":"Opus"},"cost":{"total_cost_usd":0.19},
 "context_window":{"context_window_size":200000,"current_usage":{…}},"prompt_cache":{"warm":true,"hit_ratio":0.93,…}}
"""

from typing import Any, NamedTuple, cast

from daypack.hooks.status.status import Cache, Window

_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MOST = 1e15


class Host(NamedTuple):
    """The fields of a host that a status shows; each is empty or None if it is missing or has another type."""

    session: str = ""
    folder: str = ""
    model: str = ""
    cost_usd: float | None = None
    window: Window | None = None
    cache: Cache | None = None


def read_host(data: bytes) -> Host | None:
    """Return what a host sent; None if it is not a JSON object."""
    if not data.strip():
        return None
    import json  # noqa: PLC0415 — not msgspec, see `status`

    try:
        fields: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    found = cast("dict[str, Any]", fields)
    workspace, model = _object(found, "workspace"), _object(found, "model")
    return Host(
        session=_text(found, "session_id"),
        folder=_text(workspace, "current_dir") or _text(workspace, "project_dir") or _text(found, "cwd"),
        model=_text(model, "display_name") or _text(model, "id"),
        cost_usd=_number(_object(found, "cost"), "total_cost_usd"),
        window=_window(_object(found, "context_window")),
        cache=_cache(_object(found, "prompt_cache")),
    )


def _window(fields: dict[str, Any]) -> Window | None:
    size = int(_number(fields, "context_window_size") or 0)
    usage = _object(fields, "current_usage")
    used = sum(int(_number(usage, name) or 0) for name in _USAGE)
    percent = _number(fields, "used_percentage")
    if not usage and percent is not None:
        used = round(size * percent / 100)
    return Window(max(0, used), size) if size > 0 else None


def _cache(fields: dict[str, Any]) -> Cache | None:
    if not fields or fields.get("caching_observed") is False:
        return None
    warm = fields.get("warm")
    causes = _object(fields, "last_miss_cause").get("causes")
    words = cast("list[object]", causes) if isinstance(causes, list) else []
    share = _number(fields, "hit_ratio")
    return Cache(
        hit_share=None if share is None else min(1.0, max(0.0, share)),
        warm=warm if isinstance(warm, bool) else None,
        expires_at=int(_number(fields, "expires_at") or 0),
        misses=int(_number(fields, "misses") or 0),
        cause=", ".join(word.replace("_", " ") for word in words if isinstance(word, str)),
    )


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _number(fields: dict[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if -_MOST < value < _MOST else None  # neither NaN nor infinite
