"""Settings: one typed value, merged from layers. The first layer that has a setting decides.

argument or flag > environment > the session's meta.json > home/<uid>/config.toml > default
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, cast, get_args

from msgspec import Struct

from daypack.errors import BadConfig
from daypack.plain_files import mentions, open_plain
from daypack.types.names import did_you_mean, one_line

Durability = Literal["sync", "os"]
Locking = Literal["flock", "single_writer"]
Redaction = Literal["on", "off"]


class Given(NamedTuple):
    """A value of a table, and the layer it is from."""

    value: object
    place: str


class Config(Struct, frozen=True):
    """All settings.

    `durability`: "sync" acknowledges an append when it is on disk, "os" when the kernel has it.
    `locking`: "single_writer" is for file systems without locks, with one writing process.
    `model`: the model the session is for, which determines how tokens are counted.
    `workspace`: the folder whose AGENTS.md and other files go into packs; empty: none. Default: the folder in which the
    session was created.
    `compaction_model`: the model for compaction: none, openai:URL#NAME, llama:PATH or llama:NAME. Default: the pulled
    local model, else none.
    `embedding_model`: the model for vector search in memories: none, static, minilm or openai:URL#NAME. Default: the
    best that is installed.
    `memory_ms`: how many milliseconds a turn waits for a memory on a server, if its budget has no `ms`.
    `redaction`: "off" keeps secrets in packs and exports.
    `window`: the numbers of the window that differ from the defaults; `turn/policy.py` has and checks them.
    `store_url`: the address of the database with the sessions and memories; None: they are files of the home.
    `replica_url`: of a copy of it that only answers reads.
    """

    durability: Durability = "sync"
    locking: Locking = "flock"
    model: str | None = None
    workspace: str | None = None
    compaction_model: str | None = None
    embedding_model: str | None = None
    memory_ms: int = 2_000
    redaction: Redaction = "on"
    window: dict[str, Given] = {}
    store_url: str | None = None
    replica_url: str | None = None

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in (*_NAMES, "window"))
        return f"Config({', '.join(shown)})"  # without addresses, which may contain passwords


class Settings(TypedDict, total=False):
    """The same settings as keyword arguments; omitted settings come from the other layers."""

    durability: Durability
    locking: Locking
    model: str
    workspace: str
    compaction_model: str
    embedding_model: str
    memory_ms: int
    redaction: Redaction
    window: Mapping[str, float | str]


OF_SESSIONS = tuple(name for name in Config.__struct_fields__ if name in Settings.__annotations__)
_ALLOWED: dict[str, tuple[str, ...]] = {
    "durability": get_args(Durability),
    "locking": get_args(Locking),
    "redaction": get_args(Redaction),
}
_NUMBERS = {"memory_ms": (1, 600_000)}
_WINDOW = "DAYPACK_WINDOW_"
STORE_VARIABLES = {"url": "DAYPACK_STORE_URL", "replica_url": "DAYPACK_STORE_REPLICA_URL"}  # of the table [store]
_IN_TABLES = ("window", "store_url", "replica_url")
_NAMES = tuple(name for name in Config.__struct_fields__ if name not in _IN_TABLES)
_DATABASES = ("postgresql", "postgres")
# What a config.toml has beside these settings is read where it is used: hooks/settings.py, memory/limits.py,
# derived/tiers.py.
_IN_FILE = (*_NAMES, "capabilities", "hooks", "memory", "store", "tiers", "window")


def settle(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Config:
    """Merge named layers, highest first; unknown keys are ignored."""
    chosen: dict[str, Any] = {"window": _table("window", layers)}
    chosen["store_url"], chosen["replica_url"] = _addresses(layers)
    for name in _NAMES:
        for layer, values in layers:
            value = values.get(name)
            if value is not None:
                chosen[name] = _checked(name, value, layer)
                break
    return Config(**chosen)


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in the environment: DAYPACK_DURABILITY, DAYPACK_WINDOW_EPOCH_SHARE and so on."""
    names = ((name, f"DAYPACK_{name.upper()}") for name in _NAMES)
    settings: dict[str, Any] = {name: environ[variable] for name, variable in names if environ.get(variable)}
    shares = {name: value for name, value in environ.items() if name.startswith(_WINDOW) and value}
    if shares:
        settings["window"] = {name.removeprefix(_WINDOW).lower(): value for name, value in shares.items()}
    store = {key: environ[name] for key, name in STORE_VARIABLES.items() if environ.get(name)}
    return {**settings, "store": store} if store else settings


def with_database(environ: Mapping[str, str], path: str) -> Config | None:
    """Return the settings of the environment and a config.toml if they name a database, else None.

    A file that mentions none is not parsed, which takes 15 ms.
    """
    if not environ.get(STORE_VARIABLES["url"]) and not mentions(path, b"store", b"postgres"):
        return None
    config = settle([("environment", from_environment(environ)), (path, from_file(path))])
    return config if config.store_url else None


def from_file(path: str) -> dict[str, Any]:
    """Return the settings in a config.toml; {} if the file is missing. An unknown name at its top is refused."""
    try:
        with open_plain(path) as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        hint = "run as the owner, or choose a home of your own with --home or DAYPACK_HOME"
        problem = (error.strerror or str(error)).lower()
        raise BadConfig(problem, operation="read settings", place=path, hint=hint) from error
    import tomllib  # noqa: PLC0415 — 15 ms, only with such a file

    try:
        settings = tomllib.loads(text.decode())
    except ValueError as error:
        raise BadConfig(str(error), operation="read settings", place=path, hint="fix or delete the file") from error
    for name in settings:
        if name not in _IN_FILE:
            hint = did_you_mean(name, _IN_FILE) or f"there are {', '.join(_IN_FILE)}"
            raise BadConfig(f"{one_line(name)[:40]} is unknown", operation="read settings", place=path, hint=hint)
    return settings


def _checked(name: str, value: object, layer: str) -> object:
    if name in _NUMBERS:
        return _number(name, value, layer)
    allowed = _ALLOWED.get(name)
    if not isinstance(value, str) or (allowed and value not in allowed):
        choice = f"one of {', '.join(allowed)}" if allowed else "text"
        raise BadConfig(f"{name} is {value!r}", operation="read settings", place=layer, hint=f"it must be {choice}")
    return value


def _number(name: str, value: object, layer: str) -> int:
    least, most = _NUMBERS[name]
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        hint = f"it must be a whole number from {least} to {most:,}"
        raise BadConfig(f"{name} is {value!r}", operation="read settings", place=layer, hint=hint)
    return number


def _table(name: str, layers: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Given]:
    """Merge a table key by key; its owner checks the values."""
    merged: dict[str, Given] = {}
    for layer, settings in layers:
        for key, value in _table_of(name, settings, layer).items():
            merged.setdefault(key, Given(value, layer))
    return merged


def _table_of(name: str, settings: Mapping[str, Any], layer: str) -> Mapping[str, object]:
    table = settings.get(name)
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        hint = f"write a table: [{name}]"
        raise BadConfig(f"{name} is not a table", operation="read settings", place=layer, hint=hint)
    return cast(Mapping[str, object], table)


def _addresses(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str | None, str | None]:
    """Return the addresses of the table [store]. A replica of a lower layer is that of another database: left out."""
    replica: str | None = None
    for layer, settings in layers:
        table = _table_of("store", settings, layer)
        for key, value in table.items():
            if key not in STORE_VARIABLES:
                hint = f"[store] has {' and '.join(STORE_VARIABLES)}"
                raise BadConfig(f"store.{key[:40]} is unknown", operation="read settings", place=layer, hint=hint)
            if not isinstance(value, str) or value.partition("://")[0] not in _DATABASES or "://" not in value:
                name = STORE_VARIABLES[key] if layer == "environment" else f"store.{key}"
                problem, hint = f"{name} is no address of a database", "write postgresql://USER@HOST/DATABASE"
                raise BadConfig(problem, operation="read settings", place=layer, hint=hint)
        replica = replica or cast("str | None", table.get("replica_url"))
        if url := cast("str | None", table.get("url")):
            return url, replica
    if replica:
        hint = f"set url in the table [store], or {STORE_VARIABLES['url']}"
        raise BadConfig("store.replica_url without store.url", operation="read settings", place="[store]", hint=hint)
    return None, None
