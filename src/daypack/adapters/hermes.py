"""Hermes Agent: daypack as its context engine, which packs every request and keeps the whole history.

Hermes finds this module by its entry point, or by the folder that `daypack setup` writes, and calls `register`. Hermes
after 0.19 asks its context engine for the messages of every request. Version 0.19 does not; there, requests of the chat
completions API pass a middleware of ours. Other APIs are packed when Hermes compresses. Any failure of ours sends the
original and leaves a line in Hermes' log.
"""

import importlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast
from weakref import WeakSet

from daypack.adapters.host_conversation import HostConversation, Place
from daypack.adapters.host_message import Fields, split_system

NAME = "daypack"
AGENT = "hermes"
"""The agent under whose name the sessions are stored."""
_CHAT = "chat_completions"
_WINDOW_SHARE = 0.75  # of the model's context: what Hermes adds to a request besides messages is not counted exactly
_BUDGETS = ("context_length", "threshold_tokens", "threshold_percent", "model", "packs_requests")
_log = logging.getLogger("daypack.hermes")
_T = TypeVar("_T")


class Packing:
    """What Hermes calls a context engine, one for each of its agents; `register` adds Hermes' own class to it."""

    last_prompt_tokens = last_completion_tokens = last_total_tokens = 0
    context_length = threshold_tokens = compression_count = 0
    threshold_percent = _WINDOW_SHARE
    protect_first_n, protect_last_n = 0, 1
    emit_automatic_compaction_status = False
    model = ""
    place = Place(AGENT)
    packs_requests = False  # otherwise Hermes must compress its transcript
    follows_requests = False  # by the middleware

    def __init__(self) -> None:
        self._session_id = ""  # under this name Hermes looks up which session is bound
        self._conversation: HostConversation | None = None
        self._reviewed: tuple[int, list[Fields]] | None = None  # length of its first request, and that as it was sent
        _live.add(self)

    def __deepcopy__(self, _: object) -> "Packing":
        """Return one for another agent: Hermes copies the one that was registered."""
        copy = type(self)()
        for name in _BUDGETS:
            setattr(copy, name, getattr(self, name))
        return copy

    @property
    def name(self) -> str:
        """The value of `context.engine` in Hermes' settings."""
        return NAME

    # Sessions

    @property
    def session_id(self) -> str:
        """Hermes' id of the bound session."""
        return self._session_id

    def on_session_start(self, session_id: str, **about: Any) -> None:  # noqa: ANN401 — Hermes' own
        """Bind to a session; one that Hermes compressed into a new id stays the same here."""
        self.model = about.get("model") or self.model
        conversation = self._conversation
        if about.get("boundary_reason") == "compression" and conversation is not None:
            _try("follow a session to its new id", lambda: conversation.continue_as(session_id))
            self._session_id = session_id
        else:
            self.bind_session_state(None, session_id)

    def bind_session_state(self, session_db: object = None, session_id: str = "") -> None:  # noqa: ARG002 — Hermes' own
        """Bind to a session, without storing anything."""
        if session_id != self._session_id:
            self._close()
            self._session_id = session_id
            self._reviewed = None

    def on_session_reset(self) -> None:
        """Forget the counts; Hermes binds the next session by itself."""
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self.compression_count = 0

    def on_session_end(self, session_id: str, messages: list[Fields]) -> None:
        """Store what is new and close the session."""
        if session_id == self._session_id:
            self.observe(messages)
        self._close()

    def _close(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            _try("close the session", conversation.close)

    @property
    def conversation(self) -> HostConversation:
        """The conversation of the bound session."""
        if self._conversation is None:
            self._conversation = HostConversation(self._session_id or "unnamed", self.place, self.model or None)
        self._conversation.model = self.model or None
        return self._conversation

    # Requests

    def select_context(self, request_messages: list[Fields], **about: Any) -> list[Fields] | None:  # noqa: ANN401
        """Return the messages of one request; None leaves it as it is."""
        return self.pack(request_messages, int(about.get("budget_tokens") or 0))

    def pack(self, messages: list[Fields], context_length: int = 0, tools: object = None) -> list[Fields] | None:
        """Pack one request; None if it fits as it is, or if that failed."""
        length = context_length or self.context_length
        if not length or not messages:
            return None

        def pack_now() -> list[Fields] | None:
            if (extended := self._extend_other(messages)) is not None:
                return extended
            budget = int(length * self.threshold_percent)
            definitions = cast("list[object]", tools) if isinstance(tools, list) else []
            return self.conversation.pack(messages, budget, definitions)

        return _try("pack a request", pack_now)

    def _extend_other(self, messages: list[Fields]) -> list[Fields] | None:
        """Return the request of an agent that reviews the conversation of another one; it is not stored.

        Such an agent has that conversation and an instruction, then its own calls.
        """
        if self._reviewed is not None:
            count, extended = self._reviewed
            return [*extended, *messages[count:]]
        if self._conversation is not None or not self.conversation.is_new:
            return None
        self._conversation = None
        for other in list(_live):
            origin = other.current
            if origin is not None and (extended := origin.extend(messages)) is not None:
                self._reviewed = len(messages), extended
                return extended
        return None

    @property
    def current(self) -> HostConversation | None:
        """The conversation, if there was a request."""
        return self._conversation

    def observe(self, messages: list[Fields]) -> None:
        """Store what is new at the end of a turn, if Hermes' own list continues what was sent."""
        conversation = self._conversation
        if conversation is not None:
            _try("store a turn", lambda: conversation.follow(split_system(messages)[1], branching=False))

    def on_turn_complete(self, messages: list[Fields], usage: object = None, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Store the turn."""
        self.observe(messages)

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Note what the provider counted; it is recorded with the reply, which comes with the next request."""
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        self.last_total_tokens = int(usage.get("total_tokens") or 0)
        if self._conversation is not None and usage:
            details = {
                "cached_tokens": usage.get("cache_read_tokens"),
                "cache_write_tokens": usage.get("cache_write_tokens"),
            }
            counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
            self._conversation.usage = {**counts, "prompt_tokens_details": details}

    def note_child(self, session_id: str, *, handoff: str | None = None, result: str | None = None) -> None:
        """Store what a sub-agent was asked, or what it answered."""
        from daypack.derived.children import ChildUpdate  # noqa: PLC0415 — few sessions have children

        update = ChildUpdate(agent=AGENT, session=session_id)
        session = self.conversation.session
        _try("store a sub-agent", lambda: session.put_child(session_id, update, handoff=handoff, result=result))

    # Compression

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return True if the transcript itself must become shorter, because requests are not packed one by one."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return not self.packs_requests and 0 < self.threshold_tokens <= tokens

    def should_compress_info(self, prompt_tokens: int | None = None) -> tuple[bool, str | None]:
        """Return the same with a reason, which there is not."""
        return self.should_compress(prompt_tokens), None

    def compress(
        self,
        messages: list[Fields],
        current_tokens: int | None = None,  # noqa: ARG002 — Hermes' own
        focus_topic: str | None = None,  # noqa: ARG002
        force: bool = False,  # noqa: ARG002, FBT001, FBT002
        memory_context: str = "",  # noqa: ARG002
    ) -> list[Fields]:
        """Return the transcript as a pack; all of it stays in daypack's session."""
        budget = int(self.context_length * self.threshold_percent)
        packed = _try("compress", lambda: self.conversation.compress(messages, budget)) if budget else None
        if packed is None:
            return messages
        self.compression_count += 1
        return packed

    def get_active_compression_failure_cooldown(self) -> None:
        """Note which agent sends the next request of this thread: Hermes asks for this before each of them."""
        _sender.packing = self

    # Tools

    def get_tool_schemas(self) -> list[Fields]:
        """Return the tools that find what left the window."""
        from daypack.turn.recall_tools import definitions  # noqa: PLC0415

        return [tool["function"] for tool in definitions("openai")]

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **_: Any) -> str:  # noqa: ANN401
        """Answer a call of these tools."""
        answer = _try("answer a tool call", lambda: self.conversation.session.call(name, dict(args)))
        return '{"error": "daypack could not answer; see the log"}' if answer is None else answer

    def update_model(self, model: str, context_length: int, api_mode: str = "", **_: Any) -> None:  # noqa: ANN401
        """Follow a change of the model; the middleware can pack requests of one API."""
        self.model, self.context_length = model, context_length
        if self.follows_requests:
            self.packs_requests = api_mode == _CHAT
        self.threshold_tokens = int(context_length * self.threshold_percent)


_live: "WeakSet[Packing]" = WeakSet()
_sender = threading.local()


def register(ctx: Any, home: str | None = None, uid: str | None = None) -> None:  # noqa: ANN401 — Hermes' PluginContext
    """Register with Hermes: the engine, and where its version needs it, the middleware.

    `home` and `uid`: where daypack keeps its data, as in `open_session`.
    """
    hermes = importlib.import_module("agent.context_engine").ContextEngine
    asked = hasattr(hermes, "select_context")
    follows = not asked and hasattr(ctx, "register_middleware")
    members = {"packs_requests": asked, "follows_requests": follows, "place": Place(AGENT, home, uid)}
    packing = type("DaypackEngine", (Packing, hermes), members)()
    ctx.register_context_engine(packing)
    if follows:
        ctx.register_middleware("llm_request", pack_request)
    for hook, callback in _HOOKS.items():
        ctx.register_hook(hook, callback)


def pack_request(request: Fields, session_id: str = "", api_mode: str = "", **_: Any) -> Fields | None:  # noqa: ANN401
    """Pack a request of a Hermes that does not ask its engine."""
    packing = cast("Packing | None", getattr(_sender, "packing", None)) or _bound_to(session_id)
    messages = request.get("messages")
    if packing is None or api_mode != _CHAT or not isinstance(messages, list):
        return None
    packed = packing.pack(cast("list[Fields]", messages), tools=request.get("tools"))
    return None if packed is None else {"request": {**request, "messages": packed}, "source": NAME}


def _bound_to(session_id: str) -> Packing | None:
    return next((packing for packing in list(_live) if packing.session_id == session_id), None) if session_id else None


def _store_turn(session_id: str = "", conversation_history: object = None, **_: Any) -> None:  # noqa: ANN401
    packing = _bound_to(session_id)
    if packing is not None and isinstance(conversation_history, list):
        packing.observe(cast("list[Fields]", conversation_history))


def _note_handoff(parent_session_id: str = "", child_session_id: str = "", child_goal: str = "", **_: Any) -> None:  # noqa: ANN401
    if child_session_id and (packing := _bound_to(parent_session_id)) is not None:
        packing.note_child(child_session_id, handoff=child_goal or None)


def _note_result(parent_session_id: str = "", child_session_id: str = "", child_summary: str = "", **_: Any) -> None:  # noqa: ANN401
    if child_session_id and (packing := _bound_to(parent_session_id)) is not None:
        packing.note_child(child_session_id, result=child_summary or None)


_HOOKS = {"post_llm_call": _store_turn, "subagent_start": _note_handoff, "subagent_stop": _note_result}


def _try(task: str, action: Callable[[], _T]) -> _T | None:
    """Do it; whatever fails in daypack does not disturb Hermes."""
    try:
        return action()
    except Exception as error:
        _log.warning("daypack could not %s: %s: %s", task, type(error).__name__, error)
        return None
