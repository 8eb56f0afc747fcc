"""`daypack setup`: which agents it finds, what it writes, and that it writes nothing twice, half or unasked."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from user_home import PROGRAMS, UserHome

from daypack.files import atomic

SETTINGS = ".claude/settings.json"
CONFIG = ".codex/config.toml"


def plugin(user: UserHome) -> str:
    return str(user.folder / ".daypack" / "home" / str(os.getuid()) / "plugin")


def test_without_an_agent_it_says_so_and_writes_nothing(user: UserHome) -> None:
    done = user.daypack("setup")
    assert done.returncode == 0
    assert "no coding agent found" in done.stdout
    assert user.tree(own=True) == {}


def test_an_agent_is_found_by_its_program_or_by_its_folder(user: UserHome) -> None:
    user.install("codex")
    (user.folder / ".qwen").mkdir()
    done = user.daypack("setup", "--dry-run")
    assert [line for line in done.stdout.splitlines() if line.startswith("found")] == [
        f"found Codex: {user.bin}/codex",
        "found Qwen Code: ~/.qwen",
    ]


def test_a_dry_run_shows_the_changes_and_writes_nothing(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"model": "opus"}')
    before = all_agents.tree(own=True)
    done = all_agents.daypack("setup", "--dry-run")
    assert done.returncode == 0
    assert '+    "daypack@daypack": true' in done.stdout
    assert '+[plugins."daypack@daypack"]' in done.stdout
    assert all_agents.tree(own=True) == before


def test_without_a_terminal_it_does_not_guess_the_answer(all_agents: UserHome) -> None:
    done = all_agents.daypack("setup")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert all_agents.tree(own=True) == {}


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("", False), ("no", False)])
def test_on_a_terminal_it_asks(
    all_agents: UserHome, monkeypatch: pytest.MonkeyPatch, answer: str, written: bool
) -> None:
    def give(_: str) -> str:
        return answer

    monkeypatch.setattr("builtins.input", give)
    done = all_agents.daypack("setup", terminal=True)
    assert done.returncode == (0 if written else 1)
    assert bool(all_agents.tree(own=True)) == written


def test_every_agent_gets_what_its_own_install_command_writes(all_agents: UserHome) -> None:
    all_agents.set_up()
    market, source = plugin(all_agents), {"source": "directory", "path": plugin(all_agents)}
    for name in (SETTINGS, ".copilot/settings.json"):
        settings = json.loads(all_agents.read(name))
        assert settings["extraKnownMarketplaces"] == {"daypack": {"source": source}}
        assert settings["enabledPlugins"] == {"daypack@daypack": True}
    installed = json.loads(all_agents.read(".claude/plugins/installed_plugins.json"))
    assert installed["version"] == 2
    [install] = installed["plugins"]["daypack@daypack"]
    assert (install["scope"], install["installPath"]) == ("user", f"{market}/daypack")
    known = json.loads(all_agents.read(".claude/plugins/known_marketplaces.json"))["daypack"]
    assert (known["source"], known["installLocation"]) == (source, market)
    config = tomllib.loads(all_agents.read(CONFIG))
    assert config["marketplaces"]["daypack"] == {"source_type": "local", "source": market}
    assert config["plugins"] == {"daypack@daypack": {"enabled": True}}
    assert config["features"]["code_mode"]["direct_only_tool_namespaces"] == ["mcp__daypack"]
    cache = all_agents.folder / f".codex/plugins/cache/daypack/daypack/{install['version']}"
    shared = Path(market) / "daypack"
    copies = {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    assert copies == {str(path.relative_to(shared)): path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    link = json.loads(all_agents.read(".qwen/extensions/daypack/.qwen-extension-install.json"))
    assert (link["source"], link["type"]) == (str(shared), "link")
    assert json.loads((shared / "qwen-extension.json").read_bytes())["mcpServers"].keys() == {"daypack"}
    link = json.loads(all_agents.read(".gemini/extensions/daypack/.gemini-extension-install.json"))
    assert link == {"source": f"{market}/gemini", "type": "link"}
    assert json.loads((Path(link["source"]) / "gemini-extension.json").read_bytes())["name"] == "daypack"


def test_a_second_set_up_changes_nothing(all_agents: UserHome) -> None:
    all_agents.set_up()
    before = all_agents.tree(own=True)
    done = all_agents.set_up()
    assert done.stdout.count("already set up") == len(PROGRAMS)
    assert all_agents.tree(own=True) == before


def test_a_second_set_up_changes_nothing_after_the_agent_wrote_its_files_anew(all_agents: UserHome) -> None:
    all_agents.set_up()
    settings = {"model": "opus", **json.loads(all_agents.read(SETTINGS)), "theme": "dark"}
    all_agents.write(SETTINGS, json.dumps(settings))
    before = all_agents.tree(own=True)
    assert all_agents.set_up().stdout.count("already set up") == len(PROGRAMS)
    assert all_agents.tree(own=True) == before


def test_only_the_chosen_agents_are_set_up(all_agents: UserHome) -> None:
    all_agents.set_up("--agent", "claude-code, qwen")
    assert {name.partition("/")[0] for name in all_agents.tree()} == {".claude", ".qwen"}
    all_agents.set_up()
    assert {name.partition("/")[0] for name in all_agents.tree()} == {
        ".claude", ".qwen", ".codex", ".copilot", ".gemini"
    }  # fmt: skip


@pytest.mark.parametrize(("name", "problem"), [("cursor", "unknown agent"), ("codex", "Codex is not installed")])
def test_an_agent_that_is_unknown_or_not_installed_is_named(user: UserHome, name: str, problem: str) -> None:
    user.install("claude")
    done = user.daypack("setup", "--yes", "--agent", f"claude,{name}")
    assert done.returncode == 2
    assert problem in done.stderr
    assert user.tree(own=True) == {}


def test_folders_that_variables_name_are_used(user: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    user.install(*PROGRAMS)
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(variable, str(user.folder / variable.lower()))
    user.set_up()
    assert {name.partition("/")[0] for name in user.tree()} == {
        "claude_config_dir", "codex_home", "copilot_home", "qwen_home", "gemini_cli_home",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (SETTINGS, "{"),
        (SETTINGS, "[]"),
        (SETTINGS, '{"enabledPlugins": []}'),
        (SETTINGS, "{\n  // no comment is allowed here\n}"),
        (".claude/plugins/installed_plugins.json", '{"plugins": 1}'),
        (CONFIG, "model = "),
        (CONFIG, "plugins = { other = { enabled = true } }"),
        (".copilot/settings.json", "{]"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_named_and_the_other_agents_are_set_up(
    all_agents: UserHome, name: str, text: str
) -> None:
    all_agents.write(name, text)
    done = all_agents.daypack("setup", "--yes")
    assert done.returncode == 1
    assert "left out: cannot be changed safely" in done.stderr
    assert name in done.stderr
    assert all_agents.read(name) == text
    assert [
        path for path in all_agents.tree() if path.startswith(name.partition("/")[0]) and path.endswith("daypack")
    ] == []
    assert done.stdout.count(": set up") == len(PROGRAMS) - 1


def test_bytes_that_are_no_text_are_left_alone(all_agents: UserHome) -> None:
    path = all_agents.write(SETTINGS, "")
    path.write_bytes(b'{"a": "\xff"}')
    assert all_agents.daypack("setup", "--yes").returncode == 1
    assert path.read_bytes() == b'{"a": "\xff"}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (SETTINGS, '{"extraKnownMarketplaces": {"daypack": {"source": {"source": "github", "repo": "a/b"}}}}'),
        (".claude/plugins/known_marketplaces.json", '{"daypack": {"source": {"source": "directory", "path": "/x"}}}'),
        (CONFIG, '[marketplaces.daypack]\nsource_type = "git"\nsource = "https://example.org/a.git"\n'),
        (".qwen/extensions/daypack/.qwen-extension-install.json", '{"source": "/x", "type": "local"}'),
        (".gemini/extensions/daypack/.gemini-extension-install.json", '{"source": "/x", "type": "local"}'),
    ],
)
def test_a_plug_in_from_another_source_is_not_installed_a_second_time(
    all_agents: UserHome, name: str, text: str
) -> None:
    all_agents.write(name, text)
    done = all_agents.set_up()
    assert "from another source" in done.stderr
    assert all_agents.read(name) == text
    top = name.partition("/")[0]
    assert all_agents.tree().keys() & {f"{top}/settings.json", f"{top}/plugins/installed_plugins.json"} <= {name}


def test_an_entry_that_the_user_switched_off_is_shown_and_switched_on(all_agents: UserHome) -> None:
    all_agents.set_up()
    on = all_agents.read(SETTINGS)
    all_agents.write(SETTINGS, on.replace('"daypack@daypack": true', '"daypack@daypack": false'))
    done = all_agents.set_up()
    assert "Claude Code: brought up to date" in done.stdout
    assert all_agents.read(SETTINGS) == on


def test_installations_for_single_projects_are_kept(all_agents: UserHome) -> None:
    name = ".claude/plugins/installed_plugins.json"
    project = {"scope": "project", "installPath": "/x", "projectPath": "/p"}
    all_agents.write(name, json.dumps({"version": 2, "plugins": {"daypack@daypack": [project]}}))
    all_agents.set_up()
    installs = json.loads(all_agents.read(name))["plugins"]["daypack@daypack"]
    assert [install["scope"] for install in installs] == ["project", "user"]


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        (".claude.json", '{"mcpServers": {"daypack": {"command": "x"}}}', "claude mcp remove daypack"),
        (CONFIG, '[mcp_servers.daypack]\ncommand = "x"\n', "codex mcp remove daypack"),
    ],
)
def test_a_server_that_was_installed_before_is_mentioned(
    all_agents: UserHome, name: str, text: str, command: str
) -> None:
    all_agents.write(name, text)
    done = all_agents.set_up()
    assert done.stderr.count("mcp remove") == 1
    assert f"~/{name} starts the memory tools too; to have them once: {command}" in done.stderr


def test_a_namespace_joins_those_that_are_there(all_agents: UserHome) -> None:
    all_agents.write(CONFIG, '[features.code_mode]\ndirect_only_tool_namespaces = ["mcp__other"]\n')
    all_agents.set_up()
    table = tomllib.loads(all_agents.read(CONFIG))["features"]["code_mode"]
    assert table["direct_only_tool_namespaces"] == ["mcp__other", "mcp__daypack"]


@pytest.mark.parametrize("text", ["[features]\ncode_mode = true\n", "[features]\ncode_mode = { a = 1 }\n"])
def test_a_feature_in_another_form_does_not_stop_the_set_up(all_agents: UserHome, text: str) -> None:
    all_agents.write(CONFIG, text)
    all_agents.set_up()
    assert all_agents.read(CONFIG).startswith(text)
    assert tomllib.loads(all_agents.read(CONFIG))["plugins"]["daypack@daypack"] == {"enabled": True}


def test_a_new_version_replaces_the_old_one_everywhere(all_agents: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    all_agents.set_up()
    old = all_agents.tree()
    monkeypatch.setattr("daypack.hooks.setup.installation.plugin_version", lambda: "9.9.9")
    done = all_agents.set_up()
    assert "Claude Code: brought up to date" in done.stdout
    assert "Codex: brought up to date" in done.stdout
    assert "Copilot CLI: already set up" in done.stdout
    new = all_agents.tree()
    cache = ".codex/plugins/cache/daypack/daypack"
    assert [name for name in new if name.startswith(f"{cache}/") and f"{cache}/9.9.9" not in name] == []
    assert {name.replace("9.9.9", "0.1.0") for name in new} == set(old)
    [install] = json.loads(all_agents.read(".claude/plugins/installed_plugins.json"))["plugins"]["daypack@daypack"]
    assert install["version"] == "9.9.9"
    assert all_agents.remove().returncode == 0
    assert all_agents.tree(own=True) == {}


def test_another_home_is_passed_on_to_the_commands(all_agents: UserHome) -> None:
    store = all_agents.folder.parent / "a store"
    all_agents.set_up("--home", str(store), "--uid", "ada")
    hooks = (store / "home/ada/plugin/daypack/hooks/hooks.json").read_text()
    assert (
        f"export DAYPACK_HOME='\"'\"'{store}'\"'\"'; export DAYPACK_UID=ada;"
        in json.loads(hooks)["hooks"]["Stop"][0]["hooks"][0]["command"]
    )


def test_links_stay_links_and_modes_stay_modes(all_agents: UserHome) -> None:
    dotfiles = all_agents.write("dotfiles/claude.json", '{"a": 1}')
    dotfiles.chmod(0o600)
    (all_agents.folder / ".claude").mkdir()
    (all_agents.folder / SETTINGS).symlink_to(dotfiles)
    all_agents.set_up()
    assert (all_agents.folder / SETTINGS).is_symlink()
    assert "daypack@daypack" in dotfiles.read_text()
    assert dotfiles.stat().st_mode & 0o777 == 0o600


def test_a_failure_half_way_leaves_everything_as_it_was(all_agents: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    all_agents.write(SETTINGS, '{"a": 1}')
    all_agents.write(CONFIG, "a = 1\n")
    before = all_agents.tree()
    publish = atomic.publish
    for failing in range(1, 30):
        writes: list[str] = []

        def publish_some(path: str, data: bytes, writes: list[str] = writes, failing: int = failing) -> None:
            writes.append(path)
            if len(writes) == failing:
                raise OSError(28, "No space left on device", path)
            publish(path, data)

        monkeypatch.setattr(atomic, "publish", publish_some)
        done = all_agents.daypack("setup", "--yes")
        if len(writes) < failing:
            break
        assert done.returncode == 1, failing
        assert all_agents.tree() == before, failing
        assert not os.path.exists(plugin(all_agents)), failing
    else:
        pytest.fail("the set-up has more than 30 writes")
    assert failing > 10
    assert all_agents.set_up().stdout.count("already set up") == len(PROGRAMS)


def test_a_set_up_that_was_killed_is_completed_or_taken_back(
    all_agents: UserHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_agents.write(SETTINGS, '{"a": 1}')
    before = all_agents.tree()
    publish, writes = atomic.publish, list[str]()

    class Killed(BaseException):
        pass

    def publish_some(path: str, data: bytes) -> None:
        writes.append(path)
        if len(writes) == 14:  # after the files of the plug-in
            raise Killed
        publish(path, data)

    def not_rolled_back(_: object) -> list[str]:
        raise Killed

    for completed in (True, False):
        writes.clear()
        with monkeypatch.context() as patch:
            patch.setattr(atomic, "publish", publish_some)
            patch.setattr("daypack.hooks.setup.apply._roll_back", not_rolled_back)
            with pytest.raises(Killed):
                all_agents.daypack("setup", "--yes")
        assert all_agents.tree() != before
        if completed:
            all_agents.set_up()
        assert all_agents.remove().returncode == 0
        assert all_agents.tree() == before


def test_a_file_that_changes_while_the_user_reads_the_plan_is_not_overwritten(
    all_agents: UserHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_agents.write(SETTINGS, "{}")

    def answer(_: str) -> str:
        all_agents.write(SETTINGS, '{"new": 1}')
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    done = all_agents.daypack("setup", terminal=True)
    assert done.returncode == 2
    assert "changed since" in done.stderr
    assert all_agents.tree() == {".claude": "", SETTINGS: b'{"new": 1}'}


def test_set_ups_at_the_same_time_end_like_one(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"a": 1}')
    before = all_agents.tree()
    command = [sys.executable, "-m", "daypack", "setup", "--yes", "--no-import"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out
    assert all_agents.set_up().stdout.count("already set up") == len(PROGRAMS)
    assert json.loads(all_agents.read(SETTINGS))["enabledPlugins"] == {"daypack@daypack": True}
    assert all_agents.remove().returncode == 0
    assert all_agents.tree() == before


def test_a_folder_that_cannot_be_written_is_named_in_the_plan(
    all_agents: UserHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_agents.write(SETTINGS, "{}")
    (all_agents.folder / ".claude").chmod(0o500)
    if os.geteuid() == 0:  # who may write everywhere
        access = os.access

        def access_as_others(path: str, mode: int) -> bool:
            return "/.claude" not in path and access(path, mode)

        monkeypatch.setattr(os, "access", access_as_others)
    done = all_agents.daypack("setup", "--dry-run")
    assert done.returncode == 1
    assert "not writable" in done.stderr


def test_a_folder_in_place_of_a_settings_file_is_named(all_agents: UserHome) -> None:
    (all_agents.folder / SETTINGS).mkdir(parents=True)
    done = all_agents.daypack("setup", "--yes")
    assert done.returncode == 1
    assert "not a plain file" in done.stderr


def test_sessions_in_a_database_are_named_and_a_variable_alone_is_warned_of(
    user: UserHome, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.install("codex")
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url.replace("//postgres@", "//postgres:s3cret@"))
    done = user.daypack("setup", "--yes")
    assert done.returncode == 0
    assert "sessions are recorded in postgresql://postgres@" in done.stdout
    assert "only DAYPACK_STORE_URL names it" in done.stderr
    config = user.folder / ".daypack" / "home" / str(os.getuid()) / "config.toml"
    config.write_text(f'[store]\nurl = "{database_url}"\n')
    monkeypatch.delenv("DAYPACK_STORE_URL")
    again = user.daypack("setup", "--yes")
    assert "sessions are recorded in postgresql://postgres@" in again.stdout
    assert "DAYPACK_STORE_URL" not in again.stderr
    removed = user.daypack("setup", "--remove", "--yes")
    assert "Sessions and memories stay in postgresql://postgres@" in removed.stdout
    assert "s3cret" not in done.stdout + done.stderr + again.stdout + removed.stdout
