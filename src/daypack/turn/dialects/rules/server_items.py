"""Items and blocks of tools that a provider runs itself: the fields without which it refuses to take them back.

They are sent back as they came. A caller may also append one, or write one into the log by hand, with fields missing.
"""

from collections.abc import Mapping
from typing import Any, cast

_STATES = frozenset({"in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete"})
_SEARCHED = _STATES - {"interpreting", "generating", "calling"} | {"failed"}
_RUN = _STATES - {"searching", "generating", "calling"} | {"failed"}
_DRAWN = frozenset({"in_progress", "completed", "generating", "failed"})
_SERVER_TOOLS = frozenset(
    {
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search_tool_regex",
        "tool_search_tool_bm25",
    }
)
# By type: required fields and what they are. A set: a text among these. A tuple: an object with a type among these.
# A list: a list of what is in it. None: anything, also null.
_EDITED = "text_editor_code_execution"
_FAILED = {"error_code": str}
_REQUIRED: dict[str, Mapping[str, object]] = {
    # Responses
    "web_search_call": {"id": str, "status": _SEARCHED, "action": ("search", "open_page", "find_in_page")},
    "search": {},
    "open_page": {},
    "find_in_page": {"pattern": str, "url": str},
    "file_search_call": {"id": str, "queries": [str], "status": _SEARCHED},
    "code_interpreter_call": {"id": str, "container_id": str, "status": _RUN, "code": None, "outputs": None},
    "image_generation_call": {"id": str, "status": _DRAWN, "result": None},
    "mcp_list_tools": {"id": str, "server_label": str, "tools": [dict]},
    "mcp_call": {"id": str, "arguments": str, "name": str, "server_label": str},
    "compaction": {"encrypted_content": str},
    # Anthropic
    "server_tool_use": {"id": str, "name": _SERVER_TOOLS, "input": dict},
    "web_search_tool_result": {"tool_use_id": str, "content": [("web_search_result",)]},
    "web_search_result": {"encrypted_content": str, "title": str, "url": str},
    "web_search_tool_result_error": _FAILED,
    "web_fetch_tool_result": {"tool_use_id": str, "content": ("web_fetch_result", "web_fetch_tool_result_error")},
    "web_fetch_result": {"content": ("document",), "url": str},
    "web_fetch_tool_result_error": _FAILED,
    "document": {"source": dict},
    "code_execution_tool_result": {
        "tool_use_id": str,
        "content": ("code_execution_result", "encrypted_code_execution_result", "code_execution_tool_result_error"),
    },
    "code_execution_result": {"content": [dict], "return_code": int, "stderr": str, "stdout": str},
    "encrypted_code_execution_result": {
        "content": [dict],
        "encrypted_stdout": str,
        "return_code": int,
        "stderr": str,
    },
    "code_execution_tool_result_error": _FAILED,
    "bash_code_execution_tool_result": {
        "tool_use_id": str,
        "content": ("bash_code_execution_result", "bash_code_execution_tool_result_error"),
    },
    "bash_code_execution_result": {"content": [dict], "return_code": int, "stderr": str, "stdout": str},
    "bash_code_execution_tool_result_error": _FAILED,
    f"{_EDITED}_tool_result": {
        "tool_use_id": str,
        "content": (
            f"{_EDITED}_view_result",
            f"{_EDITED}_create_result",
            f"{_EDITED}_str_replace_result",
            f"{_EDITED}_tool_result_error",
        ),
    },
    f"{_EDITED}_view_result": {"content": str, "file_type": frozenset({"text", "image", "pdf"})},
    f"{_EDITED}_create_result": {"is_file_update": bool},
    f"{_EDITED}_str_replace_result": {},
    f"{_EDITED}_tool_result_error": _FAILED,
    "tool_search_tool_result": {
        "tool_use_id": str,
        "content": ("tool_search_tool_search_result", "tool_search_tool_result_error"),
    },
    "tool_search_tool_search_result": {"tool_references": [("tool_reference",)]},
    "tool_reference": {"tool_name": str},
    "tool_search_tool_result_error": _FAILED,
}


def problem_of(item: Mapping[str, Any]) -> str:
    """Return the first field of an item that its provider refuses or misses; empty if there is none."""
    for name, required in _REQUIRED.get(str(item.get("type")), {}).items():
        if name not in item or not _is(item[name], required, name):
            return name
    return ""


def _is(value: object, required: object, name: str) -> bool:
    if required is None:
        return True
    if isinstance(required, frozenset):
        return isinstance(value, str) and value in required
    if isinstance(required, tuple):
        return _is_object(value, cast(tuple[str, ...], required))
    if isinstance(required, list):
        if isinstance(value, dict) and name == "content":  # instead of the list of results, why there are none
            return _is_object(cast(object, value), ("web_search_tool_result_error",))
        inner = cast(list[object], required)[0]
        return isinstance(value, list) and all(_is(element, inner, "") for element in cast(list[object], value))
    return isinstance(value, cast(type, required)) and (required is not int or not isinstance(value, bool))


def _is_object(value: object, kinds: tuple[str, ...]) -> bool:
    if not isinstance(value, dict):
        return False
    fields = cast(dict[str, Any], value)
    return fields.get("type") in kinds and not problem_of(fields)
