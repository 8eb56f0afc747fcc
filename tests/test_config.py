"""Settings come from layers; the first that has one decides."""

from pathlib import Path

import pytest

import daypack
from daypack.config import Config, from_environment, from_file, settle
from daypack.errors import BadConfig


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
