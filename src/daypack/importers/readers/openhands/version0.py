"""Events of OpenHands before version 1, as those of version 1.

    {"id":4,"timestamp":"…","source":"agent","action":"run","args":{"command":"ls","thought":"…"},"tool_call_metadata":{…}}
    {"id":5,"timestamp":"…","source":"agent","observation":"run","content":"…","cause":4,"extras":{…}}

Their ids are numbers, which begin at 0 in every conversation. An action without a tool call in the model's answer, of
versions that did not use them, gets the id of its event; the observation that names it as its cause is its result.
"""

from typing import Any

import msgspec

from daypack.importers.transcript import first_text, list_of, object_of, text_of, without

_SOURCES = ("user", "agent", "environment")
_NO_CALLS = ("null", "recall", "change_agent_state", "condensation_request", "start", "pause", "resume", "stop")
_NO_RESULTS = ("null", "recall", "agent_state_changed", "loop_detection", "task_tracking_state")


def is_event(value: object) -> bool:
    """Return True if a value is an event."""
    fields = object_of(value)
    is_action = text_of(fields.get("action")) and isinstance(fields.get("args"), dict)
    is_observation = text_of(fields.get("observation")) and isinstance(fields.get("extras"), dict)
    return bool(is_action or is_observation) and fields.get("source") in _SOURCES and _number(fields.get("id")) >= 0


def translate(fields: dict[str, Any], conversation: str) -> dict[str, Any]:
    """Return the event of version 1 that an event is; without a kind if it is none there."""
    head = {
        "id": f"{conversation}/{fields['id']}",
        "timestamp": fields.get("timestamp"),
        "source": fields.get("source"),
    }
    action = text_of(fields.get("action"))
    return head | (_action(fields, action, conversation) if action else _observation(fields))


def _action(fields: dict[str, Any], action: str, conversation: str) -> dict[str, Any]:
    args = object_of(fields.get("args"))
    if action == "system":
        return {"kind": "SystemPromptEvent", "system_prompt": args.get("content")}
    if action == "message":
        role = "user" if fields.get("source") == "user" else "assistant"
        return _message(role, text_of(args.get("content")) or "", list_of(args.get("image_urls")))
    if action == "finish":
        texts = (args.get("thought"), args.get("final_thought"), object_of(args.get("outputs")).get("content"))
        return _message("assistant", "\n\n".join(dict.fromkeys(filter(None, map(text_of, texts)))), [])
    if action == "condensation":
        return {"kind": "Condensation", **_forgotten(args, conversation), "summary": args.get("summary")}
    if action in _NO_CALLS or fields.get("source") != "agent":
        return {}
    call, answer = _call(fields)
    arguments = msgspec.json.encode(without(args, "thought")).decode()
    return {
        "kind": "ActionEvent",
        "thought": [{"type": "text", "text": thought}] if (thought := text_of(args.get("thought"))) else [],
        "tool_call": {"id": _call_id(fields, fields["id"]), "name": action, "arguments": arguments} | call,
        "llm_response_id": answer,
    }


def _observation(fields: dict[str, Any]) -> dict[str, Any]:
    kind = text_of(fields.get("observation")) or ""
    cause = _number(fields.get("cause"))
    has_call = bool(object_of(fields.get("tool_call_metadata")))
    if kind in _NO_RESULTS or not (has_call or (fields.get("source") == "agent" and cause >= 0)):
        return {}
    return {
        "kind": "ObservationEvent",
        "tool_call_id": _call_id(fields, cause),
        "observation": {
            "content": text_of(fields.get("content")) or "",
            "is_error": kind in ("error", "user_rejected") or fields.get("success") is False,
        },
    }


def _message(role: str, text: str, images: list[Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if images:
        content.append({"type": "image", "image_urls": images})
    return {"kind": "MessageEvent", "llm_message": {"role": role, "content": content}}


def _call_id(fields: dict[str, Any], number: object) -> str:
    return text_of(object_of(fields.get("tool_call_metadata")).get("tool_call_id")) or f"event-{number}"


def _call(fields: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the name and arguments of the call as the model wrote them, and the id of its answer."""
    metadata = object_of(fields.get("tool_call_metadata"))
    response = object_of(metadata.get("model_response"))
    for choice in list_of(response.get("choices")):
        for call in list_of(object_of(object_of(choice).get("message")).get("tool_calls")):
            function = object_of(object_of(call).get("function"))
            if object_of(call).get("id") == metadata.get("tool_call_id") and isinstance(function.get("arguments"), str):
                named = without({"name": first_text((function.get("name"), metadata.get("function_name")))})
                return {"arguments": function["arguments"], **named}, text_of(response.get("id"))
    return without({"name": text_of(metadata.get("function_name"))}), text_of(response.get("id"))


def _forgotten(args: dict[str, Any], conversation: str) -> dict[str, Any]:
    """Return what a condensation forgets: a list of events, or a span of numbers."""
    listed = [f"{conversation}/{number}" for number in list_of(args.get("forgotten_event_ids"))]
    first, last = _number(args.get("forgotten_events_start_id")), _number(args.get("forgotten_events_end_id"))
    return {"forgotten_event_ids": listed, "forgotten_span": [first, last] if 0 <= first <= last else None}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
