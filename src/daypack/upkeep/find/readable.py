"""The text of a message as results show it: what `searchable` returns, with the calls of tools in words.

Bash {"command":"git push","description":"Push fixes"}    ->    Bash: git push · Push fixes
"""

import msgspec

from daypack.history.searchable import OWN_TOOLS
from daypack.types.authority import text_without_hooks
from daypack.types.history import Message, ToolCall

_SEPARATOR = " · "
_PLAIN = (int, float, bool)
_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])
_value = msgspec.json.Decoder()


def readable(message: Message) -> str:
    """Return the text of a message, and its calls in words, a line or more each."""
    text = text_without_hooks(message)
    if not message.tool_calls:
        return text
    calls = (call_in_words(call) for call in message.tool_calls if call.name not in OWN_TOOLS)
    return "\n".join([text, *calls]).strip()


def call_in_words(call: ToolCall) -> str:
    """Return the name of a call and the values of its arguments; arguments that are no object as they are."""
    try:
        values = [_in_words(name, raw) for name, raw in _arguments.decode(call.arguments).items()]
    except (msgspec.MsgspecError, RecursionError):
        return f"{call.name} {call.arguments}"
    shown = _SEPARATOR.join(filter(None, values))
    return f"{call.name}: {shown}" if shown else call.name


def _in_words(name: str, raw: msgspec.Raw) -> str:
    value = _value.decode(raw)
    if isinstance(value, str):
        return value
    return f"{name}={value}" if isinstance(value, _PLAIN) else f"{name}={bytes(raw).decode()}" if value else ""
