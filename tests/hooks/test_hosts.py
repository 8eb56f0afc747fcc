"""The coding agents: recognised by what they set, answered in the shape that they take."""

import json
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.hooks.call import HostName
from daypack.hooks.hosts import HOSTS, Host, recognise

# What the programs set for a hook, as far as another program may set it too.
CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDE_PROJECT_DIR": "/w", "CLAUDE_PLUGIN_ROOT": "/p"}
CODEX = {"PLUGIN_ROOT": "/p", "PLUGIN_DATA": "/d", "CLAUDE_PLUGIN_ROOT": "/p", "CODEX_MANAGED_BY_NPM": "1"}
COPILOT = {"COPILOT_CLI": "1", "PLUGIN_ROOT": "/p", "CLAUDE_PLUGIN_ROOT": "/p", "CLAUDE_PROJECT_DIR": "/w"}
QWEN = {"QWEN_CODE_SESSION_ID": "s-1", "QWEN_PROJECT_DIR": "/w", "CLAUDE_PROJECT_DIR": "/w"}
GEMINI = {"GEMINI_SESSION_ID": "s-1", "GEMINI_PROJECT_DIR": "/w", "CLAUDE_PROJECT_DIR": "/w", "GEMINI_CLI": "1"}
SHELL_OF_CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "another"}


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        (CLAUDE, "claude"),
        (CODEX, "codex"),
        (COPILOT, "copilot"),
        (QWEN, "qwen"),
        (GEMINI, "gemini"),
        (SHELL_OF_CLAUDE | CODEX, "codex"),
        (SHELL_OF_CLAUDE | COPILOT, "copilot"),
        (SHELL_OF_CLAUDE | QWEN, "qwen"),
        (SHELL_OF_CLAUDE | GEMINI, "gemini"),
        ({"GEMINI_CLI": "1"} | CLAUDE, "claude"),
        ({"GEMINI_CLI": "1"} | CODEX, "codex"),
        ({"COPILOT_CLI": "1"} | CLAUDE, "claude"),
        ({"QWEN_CODE_SESSION_ID": "another", "COPILOT_CLI": "1"} | CLAUDE, "claude"),
    ],
)
def test_a_host_is_recognised_also_when_another_agent_started_it(environ: dict[str, str], host: HostName) -> None:
    assert recognise({"session_id": "s-1"}, environ) == host


def test_an_unknown_environment_is_refused_with_the_names() -> None:
    with pytest.raises(BadInput, match=r"daypack hook claude\|codex\|copilot\|qwen\|gemini"):
        recognise({"session_id": "s-1"}, {"PATH": "/bin"})


def decoded(host: Host, event: str, text: str = "", message: str = "") -> Any:
    return json.loads(host.answer(event, text, message))


@pytest.mark.parametrize("name", ["claude", "codex", "qwen"])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_most_hosts_take_context_in_the_output_of_the_event(name: HostName, event: str) -> None:
    nested = {"hookEventName": event, "additionalContext": "Port 8080"}
    assert decoded(HOSTS[name], event, "Port 8080") == {"hookSpecificOutput": nested}
    both = decoded(HOSTS[name], event, "Port 8080", "a line")
    assert both == {"hookSpecificOutput": nested, "systemMessage": "a line"}


def test_copilot_takes_context_at_the_top_and_shows_no_messages() -> None:
    host = HOSTS["copilot"]
    assert decoded(host, "SessionStart", "Port 8080") == {"additionalContext": "Port 8080"}
    assert decoded(host, "SessionStart", "Port 8080", "a line") == {"additionalContext": "a line\n\nPort 8080"}
    assert decoded(host, "SessionStart", "", "a line") == {"additionalContext": "a line"}


def test_gemini_takes_context_with_prompts_only_and_its_events_have_other_names() -> None:
    host = HOSTS["gemini"]
    nested = {"hookEventName": "BeforeAgent", "additionalContext": "Port 8080"}
    assert decoded(host, "UserPromptSubmit", "Port 8080") == {"hookSpecificOutput": nested}
    assert decoded(host, "SessionStart", "", "a line") == {"systemMessage": "a line"}
    assert [event for event in ("SessionStart", "UserPromptSubmit", "PreCompact") if host.takes(event)] == [
        "UserPromptSubmit"
    ]


def test_instructions_for_a_summary_are_text_for_claude_and_json_for_qwen() -> None:
    assert HOSTS["claude"].answer("PreCompact", "Keep the rule.") == b"Keep the rule."
    assert decoded(HOSTS["qwen"], "PreCompact", "Keep it.")["hookSpecificOutput"]["additionalContext"] == "Keep it."
    assert not HOSTS["codex"].takes("PreCompact")
    assert not HOSTS["copilot"].takes("PreCompact")


@pytest.mark.parametrize("name", HOSTS)
def test_without_a_text_nothing_is_printed(name: HostName) -> None:
    assert HOSTS[name].answer("SessionStart") == b""


def test_the_length_of_a_text_is_counted_as_the_host_counts_it() -> None:
    assert HOSTS["claude"].fits("SessionStart", "a" * 9_500)
    assert not HOSTS["claude"].fits("SessionStart", "a" * 9_501)
    assert not HOSTS["claude"].fits("SessionStart", "😀" * 4_800)
    assert HOSTS["codex"].fits("SessionStart", "漢" * 3_200)
    assert not HOSTS["codex"].fits("SessionStart", "漢" * 3_300)
    assert not HOSTS["qwen"].fits("PreCompact", "a" * 4_000)
