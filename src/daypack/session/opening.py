"""Opening a session: its folder, its settings, and its first meta.json."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from daypack.config import OF_SESSIONS, Config, Settings, from_environment, from_file, settle
from daypack.errors import BadConfig, StorageFailed
from daypack.files import atomic
from daypack.history import creation
from daypack.history.facets import Facets, parse_meta
from daypack.history.home import find_home
from daypack.history.layout import Layout
from daypack.history.logs.reader import Reader
from daypack.history.message_events import Describe
from daypack.history.session import History
from daypack.session.repeats import Repeats
from daypack.session.session import Session
from daypack.types.history import Event, Message

if TYPE_CHECKING:
    from daypack.history.postgres.store import Opened


def open_session(
    name: str,
    *,
    agent: str = "default",
    home: str | os.PathLike[str] | None = None,
    uid: str | None = None,
    store: str | None = None,
    create: bool = True,
    **settings: Unpack[Settings],
) -> Session:
    """Open a session; create it if it does not exist, unless `create` is false.

    `home` is the root folder (default: DAYPACK_HOME, else /ctx if writable, else ~/.daypack), `uid` the user's
    folder in it. `store` is the address of a database, postgresql://…: the session is there, for every worker that has
    the address, and the folder is a cache (default: DAYPACK_STORE_URL, else [store] url in config.toml; "": files of
    the home). Settings passed here take precedence over the environment, the session's meta.json and the user's
    config.toml:

    - `model`: the model that is called, which decides how tokens are counted.
    - `workspace`: the folder with AGENTS.md and such files; "" for none. Default: where the session was created.
    - `compaction_model`, `embedding_model`: "none", or a model such as openai:URL#NAME.
    - `window`: numbers of the window's policy; `redaction`: on or off.
    - `durability`, `locking`: how appends reach the disk.
    """
    if unknown := settings.keys() - set(OF_SESSIONS):
        raise BadConfig(
            f"no setting {', '.join(sorted(unknown))}",
            operation="open session",
            place=name,
            hint=f"there are {', '.join(OF_SESSIONS)}",
        )
    _check_models(settings)
    place = find_home(home, uid, store)
    layout = place.session(agent, name)
    opened = None if place.database is None else creation.find_stored(layout)
    # First: settings of an unreadable home would be taken as missing.
    known = atomic.exists(layout.meta) if place.database is None else opened is not None
    meta = Facets(layout).meta() if opened is None else parse_meta(opened.files.meta) or {}
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("argument", settings),
        ("environment", from_environment(os.environ)),
        (layout.meta, meta),
        (place.config, from_file(place.config)),
    ]
    chosen = settle(layers)
    creation.check_format(layout, meta)
    if create and not known:
        opened = _create(layout, _first_meta(name, agent, chosen))
    history = History(layout, chosen, describe=_LazyDescription(), opened=opened)
    history.on_large = Repeats(history)
    return Session(history, name=name, agent=agent)


def _create(layout: Layout, meta: Mapping[str, Any]) -> "Opened | None":
    if layout.home.database is not None:
        return creation.create_stored(layout, meta)
    try:
        creation.create(layout, meta)
    except StorageFailed:
        if not atomic.exists(layout.messages):
            raise  # a session without meta.json can still be read on a read-only file system
    return None


class _LazyDescription:
    """Describes messages as events; the code is loaded with the first message that needs it (25 ms)."""

    def __init__(self) -> None:
        self._description: Describe | None = None

    def __call__(self, messages: Sequence[Message], reader: Reader[Message]) -> list[Event]:
        if self._description is None:
            from daypack.derived.tool_events import Description  # noqa: PLC0415

            self._description = Description()
        return self._description(messages, reader)


def _check_models(settings: Settings) -> None:
    """Refuse a model that cannot be one now, not when a turn compacts or searches."""
    if "compaction_model" in settings or "embedding_model" in settings:
        from daypack.llm.choice import read_choice, read_embedding  # noqa: PLC0415 — few sessions name one

        read_choice(settings.get("compaction_model", "none"))
        read_embedding(settings.get("embedding_model", "none"))


def _first_meta(name: str, agent: str, config: Config) -> dict[str, Any]:
    from daypack import __version__  # noqa: PLC0415 — the package's root imports this module

    return {
        "session": name,
        "agent": agent,
        "scope": "session",
        "client": f"daypack/{__version__}",
        "model": config.model,
        **({} if config.workspace is None else {"workspace": config.workspace}),
        "protocols": {"history": creation.HISTORY_FORMAT},
        "counters": {"messages": 0, "events": 0},
    }
