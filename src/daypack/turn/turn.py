"""The public turn: the request to send, and the evidence of what is in it and why."""

from typing import TYPE_CHECKING, Any

from daypack.forks import cached_property
from daypack.turn.dialects import dialect
from daypack.turn.dialects.parts import quoted_text
from daypack.turn.evidence.explain import explain
from daypack.turn.evidence.pack_files import pack_of, render_pack_json, render_pack_md
from daypack.turn.evidence.view import TurnView
from daypack.turn.pack.fence import SEPARATOR
from daypack.types.records import Pack

if TYPE_CHECKING:
    from daypack.types.context import ContextEnvelope


class Turn(TurnView):
    """One model call: `messages` or `request` give what to send; the other members say what is in it and why."""

    unwritten: str = ""  # the error that kept pack.json and pack.md from being written

    def request(self, name: str = "openai") -> dict[str, Any]:
        """Return the keyword arguments for a client's call: messages, or input, or system and messages.

        The tools that the turn was prepared with are in it, in the dialect's shape: do not pass `tools` to the call as
        well.
        """
        body = dialect(name).render(self.assembly.given)
        if self.parts.tools:
            from daypack.turn.dialects.tool_definitions import render_tools  # noqa: PLC0415 — only for turns with tools

            body["tools"] = render_tools(self.parts.tools, name)
        return body

    def messages(self, name: str = "openai") -> list[dict[str, Any]]:
        """Return the list of messages for a client; for "anthropic" the prefix is in `system`."""
        body = dialect(name).render(self.assembly.given)
        return body["input"] if name == "responses" else body["messages"]

    @property
    def system(self) -> str:
        """The text of the system prompt."""
        return SEPARATOR.join(self.assembly.given.prefix)

    @property
    def quoted(self) -> str:
        """The text of the user message before the conversation: the part of the prefix that may not instruct."""
        return quoted_text(self.assembly.given.quoted)

    @cached_property
    def pack(self) -> Pack:
        """The value of pack.json."""
        return pack_of(self)

    @property
    def pack_json(self) -> bytes:
        """The bytes of pack.json."""
        return render_pack_json(self)

    @cached_property
    def pack_md(self) -> str:
        """The text of pack.md: everything that is shown, then what is omitted or missing."""
        return render_pack_md(self)

    @cached_property
    def envelope(self) -> "ContextEnvelope":
        """The whole turn as a portable document of the envelope model."""
        # Imported here because few callers need the model's 13 types, and a hook must start fast.
        from daypack.turn.evidence.envelope import envelope_of  # noqa: PLC0415

        return envelope_of(self)

    def explain(self, item: str | None = None) -> str:
        """Return why an item is in the turn or not; without an item, list everything the turn knew."""
        return explain(self, item)

    def __repr__(self) -> str:
        return f"<daypack turn {self.event_id or 'dry run'} for {self.target}: {self.tokens:,} tokens>"
