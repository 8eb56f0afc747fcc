"""The engine for Hermes Agent, without Hermes: its class is replaced by one with the same methods."""

import copy
import logging
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from daypack.adapters import hermes
from daypack.session.opening import open_session

SYSTEM = {"role": "system", "content": "You are Hermes."}


class Engine(ABC):
    """What version 0.19 demands of an engine."""

    @property
    @abstractmethod
    def name(self) -> str: ...
    @abstractmethod
    def update_from_response(self, usage: dict[str, Any]) -> None: ...
    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool: ...
    @abstractmethod
    def compress(self, messages: list[Any]) -> list[Any]: ...


class AskingEngine(Engine):
    """Later versions ask for every request."""

    def select_context(self, request_messages: list[Any], **_: Any) -> list[Any] | None: ...


class Context:
    """Hermes' plug-in context."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.middleware: dict[str, Any] = {}
        self.hooks: dict[str, Any] = {}

    def register_context_engine(self, engine: object) -> None:
        self.engine = engine

    def register_middleware(self, kind: str, callback: object) -> None:
        self.middleware[kind] = callback

    def register_hook(self, name: str, callback: object) -> None:
        self.hooks[name] = callback


def start(monkeypatch: pytest.MonkeyPatch, engine: type = Engine, session: str = "s") -> tuple[Context, Any]:
    module = ModuleType("agent.context_engine")
    module.ContextEngine = engine  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.context_engine", module)
    monkeypatch.setattr(hermes, "_live", type(hermes._live)())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(hermes._sender, "packing", None, raising=False)  # pyright: ignore[reportPrivateUsage]
    context = Context()
    hermes.register(context)
    return context, begin(context, session)


def begin(context: Context, session: str) -> Any:
    """Return the engine of a new agent, as Hermes makes it."""
    packing = copy.deepcopy(context.engine)
    packing.update_model(model="gpt-4o", context_length=12_000, api_mode="chat_completions", provider="custom")
    packing.on_session_start(session, platform="cli", model="gpt-4o", context_length=12_000)
    return packing


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAYPACK_HOME", str(tmp_path))
    return tmp_path


def long_conversation(count: int = 40) -> list[dict[str, Any]]:
    pairs = (
        (
            {"role": "user", "content": f"Question {n}: " + f"w{n} " * 300},
            {"role": "assistant", "content": f"Answer {n}"},
        )
        for n in range(count)
    )
    return [SYSTEM, *(message for pair in pairs for message in pair), {"role": "user", "content": "And the newest?"}]


def request(context: Context, messages: list[Any], session: str = "s", **more: Any) -> list[Any] | None:
    body = {"model": "gpt-4o", "messages": messages}
    about = {"session_id": session, "api_mode": "chat_completions", **more}
    answer = context.middleware["llm_request"](request=body, original_request=body, **about)
    return None if answer is None else answer["request"]["messages"]


def recorded(name: str = "s") -> list[str]:
    with open_session(name, agent="hermes", create=False) as session:
        return [message.text for message in session.messages()]


def sessions(home: Path) -> list[str]:
    return sorted(path.name for path in home.glob("home/*/agent/hermes/session/*"))


def test_a_hermes_without_per_request_selection_is_packed_by_its_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    context, packing = start(monkeypatch)
    assert isinstance(packing, Engine)
    assert packing.name == "daypack"
    packed = request(context, long_conversation())
    assert packed is not None
    assert packed[0] == SYSTEM
    assert packed[-1]["content"].startswith("And the newest?")
    assert len(packed) < 40
    assert len(recorded()) == 81
    assert not packing.should_compress(1_000_000)


def test_a_hermes_that_asks_its_engine_gets_no_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    context, packing = start(monkeypatch, AskingEngine)
    assert not context.middleware
    packed = packing.select_context(long_conversation(), conversation_messages=[], budget_tokens=12_000)
    assert packed is not None
    assert packed[-1]["content"].startswith("And the newest?")
    assert not packing.should_compress(1_000_000)


def test_apis_that_the_middleware_cannot_pack_are_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    context, packing = start(monkeypatch)
    packing.update_model(model="claude", context_length=12_000, api_mode="anthropic_messages")
    assert request(context, long_conversation(), api_mode="anthropic_messages") is None
    assert packing.should_compress(11_000)
    assert not packing.should_compress(1_000)
    compressed = packing.compress(long_conversation()[1:], current_tokens=11_000, focus_topic=None, force=True)
    assert len(compressed) < 40
    assert compressed[-1]["content"].startswith("And the newest?")
    packing.on_session_start("t", boundary_reason="compression", old_session_id="s")
    longer = [*compressed, {"role": "assistant", "content": "This."}, {"role": "user", "content": "And then?"}]
    packing.compress(longer)
    assert len(recorded()) == 83
    assert packing.session_id == "t"


def test_a_failure_sends_the_original_and_leaves_a_line(
    monkeypatch: pytest.MonkeyPatch, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context, packing = start(monkeypatch)
    (home / "home").write_text("not a folder")
    messages = long_conversation()
    with caplog.at_level(logging.WARNING, logger="daypack.hermes"):
        assert request(context, messages) is None
        assert packing.compress(messages) == messages
        assert packing.handle_tool_call("recall", {"id": "msg-1"}).startswith('{"error"')
        packing.on_session_end("s", messages)
    assert all(record.message.startswith("daypack could not ") for record in caplog.records)
    assert len(caplog.records) >= 3


def test_its_tools_find_what_left_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    context, packing = start(monkeypatch)
    request(context, long_conversation())
    assert [tool["name"] for tool in packing.get_tool_schemas()] == ["recall", "search_history"]
    assert "Question 3" in packing.handle_tool_call("search_history", {"query": "w3"}, messages=[])
    assert "Question 0" in packing.handle_tool_call("recall", {"id": "msg-1"})


def test_an_agent_that_reviews_the_conversation_of_another_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    context, packing = start(monkeypatch)
    packing.get_active_compression_failure_cooldown()
    conversation = long_conversation()
    packed = request(context, conversation)
    assert packed is not None
    reviewer = begin(context, "other")
    reviewer.get_active_compression_failure_cooldown()  # Hermes asks the agent that sends
    review = [*conversation, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Review it."}]
    packing.observe(review[1:-1])
    sent = request(context, review)  # with the id of the other
    assert sent == [*packed, *review[-2:]]
    longer = [*review, {"role": "assistant", "content": "Saved."}, {"role": "user", "content": "More?"}]
    assert request(context, longer) == [*packed, *longer[-4:]]
    assert sessions(home) == ["s"]
    assert len(recorded()) == 82


def test_two_agents_have_sessions_of_their_own(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    context, first = start(monkeypatch)
    second = begin(context, "u")
    for packing, text in ((first, "One"), (second, "Two"), (first, "Three")):
        packing.get_active_compression_failure_cooldown()
        request(context, [SYSTEM, {"role": "user", "content": text}])
    assert sessions(home) == ["s", "s.2", "u"]
    assert recorded("u") == ["Two"]


def test_the_end_of_a_turn_and_of_a_session_stores_the_last_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    context, packing = start(monkeypatch)
    asked = [{"role": "user", "content": "Which port?"}]
    request(context, [SYSTEM, *asked])
    packing.update_from_response(
        {"prompt_tokens": 50, "completion_tokens": 3, "total_tokens": 53, "cache_read_tokens": 9}
    )
    answered = [*asked, {"role": "assistant", "content": "8080."}]
    context.hooks["post_llm_call"](session_id="s", conversation_history=answered)
    assert recorded() == ["Which port?", "8080."]
    packing.on_session_end("s", [*answered, {"role": "user", "content": "Thanks."}])
    assert recorded()[-1] == "Thanks."
    assert packing.last_prompt_tokens == 50
    with open_session("s", agent="hermes", create=False) as session:
        assert [event.data["cached_tokens"] for event in session.events() if event.type == "context.usage"] == [9]


def test_sub_agents_are_children_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    context, _ = start(monkeypatch)
    request(context, [SYSTEM, {"role": "user", "content": "Delegate it."}])
    context.hooks["subagent_start"](parent_session_id="s", child_session_id="child", child_goal="Find the port")
    context.hooks["subagent_stop"](parent_session_id="s", child_session_id="child", child_summary="It is 8080.")
    with open_session("s", agent="hermes", create=False) as session:
        (child,) = session.children
        assert (child.handoff, child.result) == ("Find the port", "It is 8080.")


def test_another_session_of_an_agent_is_another_session(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    context, packing = start(monkeypatch)
    request(context, [SYSTEM, {"role": "user", "content": "One"}])
    packing.on_session_reset()
    packing.bind_session_state(None, "second")
    request(context, [SYSTEM, {"role": "user", "content": "Two"}], session="second")
    assert sessions(home) == ["s", "second"]


def test_the_module_needs_no_hermes_to_be_imported() -> None:
    code = "import sys, daypack.adapters.hermes; sys.exit('agent' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
