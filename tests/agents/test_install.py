"""The script that installs the coding agents."""

import json
from pathlib import Path

import pytest

from tools import agents


def put(folder: Path, package: str, version: str) -> None:
    path = folder / "node_modules" / package / "package.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"name": package, "version": version}))


def test_agents_that_are_there_are_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, version in agents.VERSIONS.items():
        put(tmp_path, package, version)
    monkeypatch.setattr(agents, "NODE", tmp_path / "no-node")
    assert agents.main([str(tmp_path)]) == 0
    assert (tmp_path / "ready").exists()
    assert not (tmp_path / "package.json").exists()


def test_another_version_of_an_agent_counts_as_missing(tmp_path: Path) -> None:
    put(tmp_path, "@openai/codex", "0.165.0")
    put(tmp_path, "@github/copilot", agents.VERSIONS["@github/copilot"])
    assert agents.missing(tmp_path) == [
        "@anthropic-ai/claude-code",
        "@openai/codex",
        "@qwen-code/qwen-code",
        "@google/gemini-cli",
        "opencode-ai",
    ]


def test_a_registry_that_cannot_be_reached_is_reported_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agents, "_QUIET", ("--registry=http://127.0.0.1:9/", "--fetch-retries=0"))
    assert agents.main([str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "not installed: @anthropic-ai/claude-code" in told
    assert "ECONNREFUSED" in told
    assert not (tmp_path / "ready").exists()
