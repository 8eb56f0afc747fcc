"""The text of a message that is indexed, searched and quoted."""

from daypack.types.authority import text_without_hooks
from daypack.types.history import Message

OWN_TOOLS = frozenset({"recall", "search_history"})


def searchable(message: Message) -> str:
    """Return the text of a message that is indexed: its content, and the names and arguments of its calls."""
    text = text_without_hooks(message)
    if not message.tool_calls:
        return text
    # A call that searches for something is not a place where it was said.
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls if call.name not in OWN_TOOLS)
    return "\n".join([text, *calls]).strip()
