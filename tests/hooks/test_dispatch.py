"""Which module answers an event, and what is known of a window afterwards."""

import json
from types import ModuleType

import pytest

from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks import compaction, dispatch, prompt, start
from daypack.hooks.call import HookCall, HostName, Injection
from daypack.hooks.intake import take_in
from daypack.hooks.state import SessionState


@pytest.fixture
def place(home: str, monkeypatch: pytest.MonkeyPatch) -> Home:
    replace(monkeypatch, take_in, "request", None)
    return find_home(home)


def replace(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, answer: object) -> list[tuple[object, ...]]:
    """Let a function of a module return this, and return the arguments of its calls."""
    calls: list[tuple[object, ...]] = []

    def answered(*arguments: object) -> object:
        calls.append(arguments)
        return answer

    monkeypatch.setattr(module, name, answered)
    return calls


def call(event: str, source: str = "", host: HostName = "claude", text: str = "Which port?") -> HookCall:
    return HookCall(host=host, event=event, session="s-1", cwd="/", source=source, prompt=text)


def say(monkeypatch: pytest.MonkeyPatch, *items: str, text: str = "said") -> None:
    for module, name in ((prompt, "on_prompt"), (start, "on_start"), (compaction, "after_compaction")):
        replace(monkeypatch, module, name, Injection(text, items))


def test_what_is_in_the_window_is_not_said_again(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "compaction:4")
    assert dispatch.answer(call("SessionStart", "compact"), place)
    assert not dispatch.answer(call("SessionStart", "resume"), place)
    assert dispatch.answer(call("SessionStart", "compact"), place)


def test_a_resume_with_a_compaction_says_it_once(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "compaction:4")
    answers = [
        dispatch.answer(call(event, source, "codex"), place)
        for event, source in (("PreCompact", ""), ("SessionStart", "resume"), ("SessionStart", "compact"))
    ]
    assert [bool(answer) for answer in answers] == [False, True, False]


def test_a_text_over_the_limit_is_dropped_and_not_recorded(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "messages:1", text="a" * 20_000)
    with pytest.raises(BadInput, match="20,000"):
        dispatch.answer(call("UserPromptSubmit"), place)
    assert SessionState(place, "claude-code", "s-1").injected() == frozenset()


def test_the_functions_know_what_was_injected(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "messages:1")
    dispatch.answer(call("UserPromptSubmit"), place)
    calls = replace(monkeypatch, prompt, "on_prompt", None)
    dispatch.answer(call("UserPromptSubmit"), place)
    assert calls[0][2] == {"messages:1"}


@pytest.mark.parametrize(("host", "expected"), [("claude", b"rules"), ("codex", b""), ("copilot", b"")])
def test_only_hosts_that_take_them_get_instructions_for_a_summary(
    place: Home, monkeypatch: pytest.MonkeyPatch, host: HostName, expected: bytes
) -> None:
    replace(monkeypatch, compaction, "before_compaction", "rules")
    assert dispatch.answer(call("PreCompact", host=host), place) == expected


def test_a_message_for_the_user_is_shown_also_when_there_is_nothing_to_say(place: Home) -> None:
    assert json.loads(dispatch.answer(call("SessionStart", "startup"), place, "a line")) == {"systemMessage": "a line"}
