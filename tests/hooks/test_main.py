"""The program `daypack hook`: it answers, or it fails without a word to the agent and with a line in the log."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hooks.hook_process import HookProgram, event

from daypack.hooks.main import MAX_INPUT_BYTES


@pytest.mark.parametrize("name", ["claude", "claude-code", "codex", "copilot", "qwen", "gemini"])
def test_an_event_without_anything_to_add_prints_nothing(hook: HookProgram, name: str) -> None:
    assert hook(name, data=event("SessionStart", source="startup")) == (0, b"", b"", [])


def test_a_failure_prints_nothing_and_is_reported_at_the_next_start(hook: HookProgram) -> None:
    failed = hook("codex", data=b"{")
    assert (failed.code, failed.output, len(failed.log)) == (0, b"", 1)
    told = hook("codex", data=event("SessionStart"))
    assert told.fields["systemMessage"].startswith("daypack: 1 hook failure since 20")
    assert hook("codex", data=event("SessionStart")).output == b""


def test_copilot_which_shows_no_messages_is_reported_in_its_window(hook: HookProgram) -> None:
    hook("copilot", data=b"{")
    told = hook(data=event("SessionStart", source="new"), COPILOT_CLI="1", PLUGIN_ROOT="/p")
    assert list(told.fields) == ["additionalContext"]


def test_an_unknown_event_is_logged(hook: HookProgram) -> None:
    failed = hook("claude", data=event("Bedtime"))
    assert (failed.code, failed.output) == (0, b"")
    assert " claude Bedtime s-1 BadInput: " in failed.log[0]


def test_hooks_that_are_switched_off_do_nothing(hook: HookProgram) -> None:
    hook.folder.mkdir(parents=True)
    (hook.folder / "config.toml").write_text("[hooks]\nenabled = false\n")
    assert hook("claude", data=event("Bedtime")) == (0, b"", b"", [])


def test_more_input_than_the_limit_is_read_to_its_end_and_refused(hook: HookProgram) -> None:
    failed = hook("claude", data=b'{"prompt": "' + b"a" * (MAX_INPUT_BYTES + 1) + b'"}')
    assert (failed.code, failed.output) == (0, b"")
    assert "limit" in failed.log[0]


def test_wrong_arguments_are_refused_as_of_a_command_with_a_code_that_stops_no_agent(hook: HookProgram) -> None:
    refused = hook("cluade", data=event("UserPromptSubmit"))
    assert (refused.code, refused.output) == (1, b"")
    assert b"claude" in refused.errors
    assert hook("--help").output.startswith(b"usage: daypack hook")


def test_a_terminal_as_input_is_not_waited_for(hook: HookProgram) -> None:
    main, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "daypack", "hook"],
            stdin=terminal,
            capture_output=True,
            env=hook.environment(),
            timeout=60,
            check=False,
        )
    finally:
        os.close(main)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"daypack hook --help" in done.stderr


def started(hook: HookProgram) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "daypack", "hook", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=hook.environment(),
    )


def test_input_that_never_ends_is_not_waited_for(hook: HookProgram) -> None:
    with started(hook) as process:
        assert process.wait(timeout=60) == 0
    assert "TimeoutError" in hook.log[0]


def test_a_search_that_lets_no_other_thread_run_is_ended(hook: HookProgram) -> None:
    code = (
        "import re\n"
        "from daypack.hooks import dispatch, main\n"
        "dispatch.answer = lambda *_: re.match('(a|aa)+$', 'a' * 200 + 'b')\n"
        "main.run(['claude'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(event("UserPromptSubmit")).encode(),
        capture_output=True,
        env=hook.environment(),
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(hook.log) == 1
    assert "TimeoutError" in hook.log[0]


def test_a_log_that_does_not_answer_holds_no_hook_up(hook: HookProgram) -> None:
    code = (
        "import time\n"
        "from daypack.hooks import failures, main\n"
        "failures.record = lambda *_: time.sleep(600)\n"
        "main.run(['claude'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=hook.environment()) as process:
        assert process.wait(timeout=60) == 0


def test_a_host_that_ends_its_hook_finds_it_in_the_log(hook: HookProgram) -> None:
    with started(hook) as process:
        assert process.stdin
        process.stdin.write(b" " * 200_000)  # more than a pipe holds: the hook reads, so its signals are handled
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert "SIGTERM" in hook.log[0]


def test_a_reader_that_is_gone_is_logged(hook: HookProgram) -> None:
    hook("claude", data=b"{")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "daypack", "hook", "claude"],
        input=b'{"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/"}',
        stdout=writing,
        stderr=subprocess.PIPE,
        env=hook.environment(),
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "BrokenPipeError" in hook.log[-1]


def test_a_broken_installation_fails_without_a_word(hook: HookProgram, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "msgspec.py").write_text("raise ImportError('no such library')\n")
    path = f"{broken}{os.pathsep}{hook.environment()['PYTHONPATH']}"
    failed = hook("claude", data=event("Stop"), PYTHONPATH=path, TMPDIR=str(tmp_path))
    assert (failed.code, failed.output) == (0, b"")
    logs = [
        *failed.log,
        *(line for log in tmp_path.glob("daypack-hook-*.log") for line in log.read_text().splitlines()),
    ]
    assert "ImportError" in logs[0]
