"""The wheel in an empty environment: what is in it, and that it runs as its users run it."""

import json
import re
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from distribution.conftest import Built, Installed, build
from docs.example_runs import ROOT, SCRIPTS, Examples, run_page
from model_endpoint import ModelEndpoint
from tenants_server import TOOL_NAMES


def tracked(folder: str) -> set[str]:
    """Return the files of a folder, without what is made while running."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        [metadata] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]
    assert names == {name.removeprefix("src/") for name in tracked("src/daypack")}
    assert {"daypack/py.typed", "daypack/cli/shells/completion.bash"} <= names
    assert "daypack/hooks/plugin/daypack/.claude-plugin/plugin.json" in names  # a hidden folder
    needed = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata, re.MULTILINE)
    assert needed == ["msgspec", "splintr-rs"]
    assert built.wheel.name.endswith("-py3-none-any.whl")


def test_the_source_distribution_has_what_is_needed_to_build_test_and_read_it(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for folder in ("src/daypack", "docs", "tests/distribution", "tools", "examples", "schemas", ".claude-plugin"):
        assert tracked(folder) <= names, folder
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "Dockerfile"} <= names
    assert not any(name.startswith((".venv", ".git/", "build", "dist")) for name in names)


def test_the_environment_has_daypack_and_its_two_dependencies(installed: Installed) -> None:
    code = "from importlib.metadata import distributions as d; print(sorted(each.name for each in d()))"
    assert installed.run("python", "-c", code).stdout == "['daypack', 'msgspec', 'splintr-rs']\n"
    assert installed.run("daypack", "--version").stdout.startswith("daypack 0.")
    assert installed.run("python", "-m", "daypack", "--version").stdout.startswith("daypack 0.")


class InstalledExamples(Examples):
    """Runs the examples of a page with the installed daypack; the client of the model is that of the user."""

    def __init__(self, installed: Installed, home: Path, variables: Mapping[str, str]) -> None:
        super().__init__(home, variables)
        self.installed = installed
        self.environment |= {"PATH": installed.environment["PATH"]}
        self.environment.pop("PYTHONPATH", None)

    def python(self, code: str) -> str:
        """Return what a block of code prints; packages that daypack does not have come last."""
        clients = sysconfig.get_path("purelib")
        return self.run(self.installed.python, "-", text=f"import sys; sys.path.append({clients!r})\n{code}")


def test_the_session_of_the_readme_runs(installed: Installed, tmp_path: Path) -> None:
    with ModelEndpoint(*SCRIPTS["README.md"]) as endpoint:
        examples = InstalledExamples(installed, tmp_path / "ada", endpoint.environment)
        found = examples.python("import daypack, msgspec; print(daypack.__file__); print(msgspec.__file__)")
        assert all(line.startswith(str(installed.folder)) for line in found.splitlines())
        assert run_page("README.md", examples) >= 2
        assert endpoint.left == []


def test_the_memory_server_offers_its_nine_tools(installed: Installed) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    done = installed.run("daypack", "mcp", text="".join(f"{json.dumps(message)}\n" for message in asked))
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, answers[1]["serverInfo"]["name"]) == (0, "daypack")
    assert [tool["name"] for tool in answers[2]["tools"]] == TOOL_NAMES


@pytest.mark.parametrize("text", ["", "{}", "no JSON"])
def test_a_hook_without_a_known_event_says_nothing_and_succeeds(installed: Installed, text: str) -> None:
    done = installed.run("daypack", "hook", text=text)
    assert (done.returncode, done.stdout) == (0, "")


def test_setup_finds_no_agent_and_changes_nothing(installed: Installed) -> None:
    before = sorted(installed.home.rglob("*"))
    done = installed.run("daypack", "setup", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Claude Code" in done.stdout + done.stderr
    assert sorted(installed.home.rglob("*")) == before


def test_commands_that_need_more_say_what_to_install(installed: Installed) -> None:
    done = installed.run("daypack", "serve", "--port", "0")
    assert done.returncode == 1
    assert "pip install 'daypack[serve]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_tree_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    build(tmp_path, "--wheel")
    assert (tmp_path / built.wheel.name).read_bytes() == built.wheel.read_bytes()
