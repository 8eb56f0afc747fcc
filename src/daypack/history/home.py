"""The home that arguments, the environment and config.toml name, and whether its sessions are in a database."""

import os

from daypack.history.layout import Home, default_root
from daypack.plain_files import mentions

_VARIABLE = "DAYPACK_STORE_URL"
_WORDS = (b"store", b"postgres")  # a config.toml with neither names no database, also if a name in it is misspelt


def find_home(home: "str | os.PathLike[str] | None" = None, uid: str | None = None, store: str | None = None) -> Home:
    """Return the home of these arguments; DAYPACK_HOME and DAYPACK_UID are the defaults.

    `store`: the address of the database with the sessions; "" for sessions in files; None for what the environment
    (DAYPACK_STORE_URL) or the table [store] of config.toml names. Nothing is connected here.
    """
    root: str = os.path.abspath(os.fspath(home)) if home else default_root(os.environ)
    place = Home(root, uid or os.environ.get("DAYPACK_UID") or str(os.getuid()))
    url = _configured(place) if store is None else store
    if not url:
        return place
    from daypack.history.postgres.store import open_store  # noqa: PLC0415 — most homes have files

    return place._replace(database=open_store(url, place.uid))


def _configured(place: Home) -> str | None:
    if not os.environ.get(_VARIABLE) and not mentions(place.config, *_WORDS):
        return None
    from daypack.config import with_database  # noqa: PLC0415 — 20 ms that a status line does without

    config = with_database(os.environ, place.config)
    return config.store_url if config is not None else None


def refresh_folders(home: Home) -> None:
    """Bring the folders of all sessions up to date, before many are read that are not opened; files are up to date.

    A session that cannot be fetched is not reported here: opening it says why.
    """
    if home.database is None:
        return
    from daypack.history.caches import refresh_all  # noqa: PLC0415 — most homes have files

    refresh_all(home)
