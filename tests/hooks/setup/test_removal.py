"""`daypack setup --remove`: the home is as it was before, whatever was in it, and whatever the agents wrote since."""

import json
import tomllib

import pytest
from user_home import PROGRAMS, UserHome

SETTINGS = ".claude/settings.json"
CONFIG = ".codex/config.toml"
JSON_TEXTS = [
    "",
    "{}",
    "{}\n",
    "{\n}\n",
    '{"model": "opus", "env": {"A":"b"}}',
    '{\n    "permissions": {\n        "allow": []\n    }\n}',
    '{\r\n\t"theme": "dark"\r\n}\r\n',
    '{"enabledPlugins": {}, "extraKnownMarketplaces": {}}',
    '{\n  "enabledPlugins": {\n    "other@market": false\n  },\n  "hooks": {"Stop": []}\n}\n',
    '\ufeff{"a": "\\u00e9é"}\n\n',
    '{"mcpServers": {"daypack": {"command": "x"}}, "enabledPlugins": {"daypack@daypack": false}}',
]
TOML_TEXTS = [
    "",
    "\n",
    "# only a comment",
    'model = "gpt-5"   # mine\n\n[tui]\na = """\n[no table]\n"""\n',
    'model = "gpt-5"\r\n\r\n[plugins."other@market"]\r\nenabled = true\r\n',
    '[mcp_servers.daypack]\ncommand = "x"\n\n[[hooks.Stop]]\ncommand = "y"',
    '[plugins."daypack@daypack"]\nenabled = false # off\n\n[features]\nweb = true\n',
    '[features.code_mode]\ndirect_only_tool_namespaces = ["mcp__other"]\n',
]


def assert_taken_back(user: UserHome, before: dict[str, bytes | str]) -> None:
    assert user.remove().returncode == 0
    assert user.tree() == before
    assert "not set up" in user.remove().stderr


def test_a_home_without_any_settings_is_empty_again(all_agents: UserHome) -> None:
    all_agents.set_up()
    assert_taken_back(all_agents, {})
    assert all_agents.tree(own=True) == {}


@pytest.mark.parametrize("text", JSON_TEXTS)
@pytest.mark.parametrize("name", [SETTINGS, ".copilot/settings.json"])
def test_settings_in_json_are_byte_for_byte_as_before(all_agents: UserHome, name: str, text: str) -> None:
    all_agents.write(name, text)
    before = all_agents.tree()
    all_agents.set_up()
    assert json.loads(all_agents.read(name).removeprefix("\ufeff"))["enabledPlugins"]["daypack@daypack"] is True
    assert_taken_back(all_agents, before)


@pytest.mark.parametrize("text", TOML_TEXTS)
def test_settings_in_toml_are_byte_for_byte_as_before(all_agents: UserHome, text: str) -> None:
    all_agents.write(CONFIG, text)
    before = all_agents.tree()
    all_agents.set_up()
    assert tomllib.loads(all_agents.read(CONFIG))["plugins"]["daypack@daypack"] == {"enabled": True}
    assert_taken_back(all_agents, before)


def test_comments_in_settings_stay(all_agents: UserHome) -> None:
    all_agents.write(".copilot/settings.json", '{\n  // mine\n  "model": "x", // this one\n}\n')
    before = all_agents.tree()
    all_agents.set_up()
    assert "// mine" in all_agents.read(".copilot/settings.json")
    assert_taken_back(all_agents, before)


def test_other_plug_ins_and_files_are_left_alone(all_agents: UserHome) -> None:
    all_agents.write(".claude/plugins/known_marketplaces.json", '{\n  "other": {"source": {}}\n}')
    all_agents.write(".claude/plugins/installed_plugins.json", '{\n  "version": 2,\n  "plugins": {"a@other": []}\n}')
    all_agents.write(".codex/plugins/cache/other/a/1/plugin.json", "{}")
    all_agents.write(".qwen/extensions/other/qwen-extension.json", "{}")
    before = all_agents.tree()
    all_agents.set_up()
    assert_taken_back(all_agents, before)


def test_links_are_respected(all_agents: UserHome) -> None:
    target = all_agents.write("dotfiles/settings.json", '{"a": 1}')
    (all_agents.folder / ".claude").mkdir()
    (all_agents.folder / SETTINGS).symlink_to(target)
    (all_agents.folder / "dotfiles/codex").mkdir()
    (all_agents.folder / ".codex").symlink_to(all_agents.folder / "dotfiles/codex")
    (all_agents.folder / ".copilot").mkdir()
    (all_agents.folder / ".copilot/settings.json").symlink_to(all_agents.folder / "dotfiles/missing.json")
    before = all_agents.tree()
    all_agents.set_up()
    assert_taken_back(all_agents, before)


def test_two_set_ups_are_taken_back_at_once(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"a": 1}')
    before = all_agents.tree()
    all_agents.set_up("--agent", "claude")
    on = all_agents.read(SETTINGS)
    all_agents.write(SETTINGS, on.replace("true", "false"))
    all_agents.set_up()
    assert_taken_back(all_agents, before)


def test_what_the_agent_wrote_since_stays(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"model": "opus"}')
    all_agents.set_up()
    settings = json.loads(all_agents.read(SETTINGS))
    settings["enabledPlugins"]["other@market"] = True
    all_agents.write(SETTINGS, json.dumps({**settings, "theme": "dark"}, indent=2))
    installed = json.loads(all_agents.read(".claude/plugins/installed_plugins.json"))
    installed["plugins"]["other@market"] = []
    all_agents.write(".claude/plugins/installed_plugins.json", json.dumps(installed))
    config = all_agents.read(CONFIG)
    all_agents.write(
        CONFIG,
        config + '\n[hooks.state."daypack@daypack:hooks/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
        '\n[hooks.state."other@market:stop:0:0"]\ntrusted_hash = "sha256:2"\n',
    )
    all_agents.write(".qwen/extension-store/state.json", "{}")
    assert all_agents.remove().returncode == 0
    assert json.loads(all_agents.read(SETTINGS)) == {
        "model": "opus", "enabledPlugins": {"other@market": True}, "theme": "dark",
    }  # fmt: skip
    assert json.loads(all_agents.read(".claude/plugins/installed_plugins.json")) == {
        "version": 2, "plugins": {"other@market": []},
    }  # fmt: skip
    assert tomllib.loads(all_agents.read(CONFIG)) == {
        "hooks": {"state": {"other@market:stop:0:0": {"trusted_hash": "sha256:2"}}}
    }
    assert set(all_agents.tree()) == {
        ".claude", SETTINGS, ".claude/plugins", ".claude/plugins/installed_plugins.json", ".codex", CONFIG,
        ".qwen", ".qwen/extension-store", ".qwen/extension-store/state.json",
    }  # fmt: skip


def test_trust_that_codex_stored_goes_with_the_hooks(all_agents: UserHome) -> None:
    text = 'model = "gpt-5"\n\n[tui]\na = 1\n'
    all_agents.write(CONFIG, text)
    before = all_agents.tree()
    all_agents.set_up()
    trust = '\n[hooks.state]\n\n[hooks.state."daypack@daypack:hooks/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    all_agents.write(CONFIG, all_agents.read(CONFIG) + trust)
    assert_taken_back(all_agents, before)


def test_a_value_that_was_there_before_comes_back_although_the_agent_wrote_the_file_anew(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"enabledPlugins": {"daypack@daypack": false}}')
    all_agents.set_up()
    all_agents.write(SETTINGS, json.dumps({**json.loads(all_agents.read(SETTINGS)), "theme": "dark"}))
    all_agents.remove()
    assert json.loads(all_agents.read(SETTINGS)) == {"enabledPlugins": {"daypack@daypack": False}, "theme": "dark"}


def test_one_agent_can_be_removed_and_the_others_keep_the_plug_in(all_agents: UserHome) -> None:
    all_agents.set_up()
    kept = {name: data for name, data in all_agents.tree(own=True).items() if ".codex" not in name and "json" in name}
    all_agents.remove("--agent", "codex")
    assert not [name for name in all_agents.tree() if ".codex" in name]
    after = all_agents.tree(own=True)
    assert {name: after.get(name) for name in kept if "setup.json" not in name} == {
        name: data for name, data in kept.items() if "setup.json" not in name
    }
    assert_taken_back(all_agents, {})


def test_an_agent_that_is_gone_can_still_be_removed(all_agents: UserHome) -> None:
    all_agents.set_up()
    for program in all_agents.bin.iterdir():
        program.unlink()
    assert_taken_back(all_agents, {})


def test_a_file_that_can_no_longer_be_parsed_is_named_and_the_rest_is_removed(all_agents: UserHome) -> None:
    all_agents.set_up()
    text = all_agents.read(SETTINGS)
    all_agents.write(SETTINGS, text + "}")
    done = all_agents.remove()
    assert done.returncode == 1
    assert "~/.claude/settings.json: cannot be changed safely" in done.stderr
    assert set(all_agents.tree()) == {".claude", SETTINGS}
    all_agents.write(SETTINGS, text)
    assert_taken_back(all_agents, {})


def test_a_dry_run_of_a_removal_writes_nothing(all_agents: UserHome) -> None:
    all_agents.set_up()
    before = all_agents.tree(own=True)
    done = all_agents.daypack("setup", "--remove", "--dry-run")
    assert "delete 3 files in ~/.claude" in done.stdout
    assert all_agents.tree(own=True) == before


def test_it_says_where_the_data_stays(all_agents: UserHome) -> None:
    all_agents.set_up()
    kept = all_agents.write(".daypack/home/ada/config.toml", "")
    done = all_agents.remove()
    assert f"rm -r {all_agents.folder}/.daypack" in done.stdout
    assert kept.exists()


def test_a_record_of_another_version_is_not_guessed_about(all_agents: UserHome) -> None:
    all_agents.set_up()
    [record] = all_agents.folder.glob(".daypack/home/*/setup.json")
    record.write_text('{"version": 9, "files": []}')
    done = all_agents.remove()
    assert done.returncode == 2
    assert "version 9 is not known" in done.stderr


def test_without_its_record_a_set_up_is_recognised_and_its_entries_are_removed(all_agents: UserHome) -> None:
    all_agents.write(SETTINGS, '{"model": "opus"}')
    all_agents.set_up()
    [record] = all_agents.folder.glob(".daypack/home/*/setup.json")
    record.unlink()
    assert all_agents.set_up().stdout.count("already set up") == len(PROGRAMS)
    assert all_agents.remove().returncode == 0
    left = b"".join(data for data in all_agents.tree(own=True).values() if isinstance(data, bytes))
    assert b"daypack" not in left
    assert json.loads(all_agents.read(SETTINGS))["model"] == "opus"


def test_a_file_of_the_plug_in_that_was_changed_is_written_again_and_removed(all_agents: UserHome) -> None:
    all_agents.set_up()
    (hooks,) = (all_agents.folder / ".daypack" / "home").glob("*/plugin/gemini/hooks/hooks.json")
    before = hooks.read_text()
    hooks.write_text("{}")
    assert "hooks.json" in all_agents.set_up().stdout
    assert hooks.read_text() == before
    assert all_agents.remove().returncode == 0
    assert not hooks.exists()
