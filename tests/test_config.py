"""Settings come from layers; the first that has one decides."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.config import Config, from_environment, from_file, settle
from daypack.errors import BadConfig
from daypack.history.home import find_home


def test_the_first_layer_that_has_a_setting_decides() -> None:
    layers = [
        ("flag", {"model": "a"}),
        ("environment", {"model": "b", "durability": "os"}),
        ("file", {"locking": "flock"}),
    ]
    assert settle(layers) == Config(durability="os", locking="flock", model="a")
    assert settle([]) == Config(durability="sync", locking="flock", model=None)


@pytest.mark.parametrize(("name", "value"), [("durability", "never"), ("locking", "maybe"), ("model", 7)])
def test_a_wrong_value_is_refused_with_the_layer_it_came_from(name: str, value: object) -> None:
    with pytest.raises(BadConfig) as refused:
        settle([("config.toml", {name: value})])
    assert refused.value.place == "config.toml"
    assert name in refused.value.problem


def test_the_environment_has_one_variable_per_setting() -> None:
    assert from_environment({"DAYPACK_DURABILITY": "os", "DAYPACK_MODEL": "", "OTHER": "x"}) == {"durability": "os"}


_PRIMARY, _REPLICA = "postgresql://ada:s3cret@db/memories", "postgresql://ada:s3cret@copy/memories"


def test_the_addresses_of_the_store_come_from_the_environment_before_the_table_of_the_file() -> None:
    file = {"store": {"url": _PRIMARY, "replica_url": _REPLICA}}
    assert (settle([("file", file)]).store_url, settle([("file", file)]).replica_url) == (_PRIMARY, _REPLICA)
    both = from_environment({"DAYPACK_STORE_URL": "postgres://other/db", "DAYPACK_STORE_REPLICA_URL": ""})
    chosen = settle([("environment", both), ("file", file)])
    assert (chosen.store_url, chosen.replica_url) == ("postgres://other/db", None)  # a replica of another database
    added = settle([("environment", from_environment({"DAYPACK_STORE_REPLICA_URL": _REPLICA})), ("file", file)])
    assert (added.store_url, added.replica_url) == (_PRIMARY, _REPLICA)
    assert settle([]).store_url is None
    assert "s3cret" not in repr(added)


def test_a_wrong_address_in_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(BadConfig, match="DAYPACK_STORE_REPLICA_URL is no address of a database") as refused:
        settle([("environment", from_environment({"DAYPACK_STORE_REPLICA_URL": "s3cret"}))])
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "table",
    [
        {"url": "https://ada:s3cret@db"},
        {"url": "ada:s3cret@db"},
        {"url": 7},
        {"uri": _PRIMARY},
        {"replica_url": _REPLICA},
        _PRIMARY,
    ],
)
def test_a_wrong_table_of_the_store_is_refused_without_its_password(table: object) -> None:
    with pytest.raises(BadConfig) as refused:
        settle([("config.toml", {"store": table})])
    assert "store" in refused.value.problem
    assert refused.value.hint
    assert "s3cret" not in str(refused.value)


def test_a_file_that_is_not_toml_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert from_file(str(path)) == {}
    path.write_text("durability = ", encoding="utf-8")
    with pytest.raises(BadConfig) as refused:
        from_file(str(path))
    assert refused.value.place == str(path)


@pytest.mark.parametrize(
    ("text", "named", "hint"),
    [
        ('[stor]\nurl = "postgresql://ada:s3cret@db/memories"\n', "stor is unknown", "did you mean store?"),
        ('[Store]\nurl = "postgresql://ada:s3cret@db/memories"\n', "Store is unknown", "did you mean store?"),
        ('durabilty = "os"\n', "durabilty is unknown", "did you mean durability?"),
        ('url = "postgresql://ada:s3cret@db/memories"\n', "url is unknown", "store"),
    ],
)
def test_an_unknown_name_in_the_file_is_refused_before_anything_is_written(
    home: str, text: str, named: str, hint: str
) -> None:
    folder = Path(home) / "home" / "u"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")
    uses: list[Callable[[], object]] = [
        lambda: daypack.open_session("work", home=home, uid="u"),
        lambda: daypack.open_memory(home=home, uid="u"),
    ]
    if "postgresql" in text:  # lists of what is in the files would be empty, and look right
        uses.append(lambda: find_home(home, "u"))
    for use in uses:
        with pytest.raises(BadConfig) as refused:
            use()
        assert refused.value.place == str(folder / "config.toml")
        assert named in refused.value.problem
        assert hint in refused.value.hint
        assert "s3cret" not in str(refused.value)
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


def test_every_setting_of_the_documentation_is_known(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    settings = text[text.index("\n## Settings\n") :]
    path = tmp_path / "config.toml"
    for example in re.findall(r"```toml\n(.*?)```", settings, re.DOTALL):
        path.write_text(example, encoding="utf-8")
        assert from_file(str(path))
    for name in re.findall(r"^\| `(\w+)` \| `DAYPACK_", settings, re.MULTILINE):
        path.write_text(f'{name} = ""\n', encoding="utf-8")
        assert name in from_file(str(path))


def test_a_session_settles_argument_over_environment_over_meta_over_file(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(home) / "home" / "u"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('durability = "os"\nmodel = "gpt-4"\n', encoding="utf-8")

    def config(**settings: str) -> Config:
        return daypack.open_session("work", home=home, uid="u", **settings).history.config  # type: ignore[arg-type]

    assert config() == Config(durability="os", model="gpt-4")
    (folder / "config.toml").write_text('durability = "os"\nmodel = "gpt-4o"\n', encoding="utf-8")
    assert config().model == "gpt-4"  # of the session's meta.json
    monkeypatch.setenv("DAYPACK_MODEL", "claude-x")
    assert config().model == "claude-x"
    assert config(model="qwen3", durability="sync") == Config(durability="sync", model="qwen3")


def test_a_setting_that_does_not_exist_is_refused(home: str) -> None:
    with pytest.raises(BadConfig, match="colour"):
        daypack.open_session("work", home=home, colour="red")  # type: ignore[call-arg]
    assert not Path(home).exists()


@pytest.mark.parametrize("setting", ["compaction_model", "embedding_model"])
def test_a_model_that_cannot_be_one_is_refused_when_a_session_is_opened(home: str, setting: str) -> None:
    with pytest.raises(BadConfig, match="'gpt-5' is not"):
        daypack.open_session("work", home=home, **{setting: "gpt-5"})  # pyright: ignore[reportArgumentType]
    assert not (Path(home) / "home").exists()
