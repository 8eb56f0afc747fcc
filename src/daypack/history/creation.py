"""New sessions, and whether there is one: its first files, or its row in a database; the format it is written in."""

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from daypack.errors import BadConfig, Damaged, DaypackError
from daypack.files import atomic
from daypack.files.atomic import refusal
from daypack.history.facets import Facets, format_meta, moment
from daypack.history.layout import Layout
from daypack.history.sessions import session_missing

if TYPE_CHECKING:
    from daypack.history.postgres.store import Opened

HISTORY_FORMAT = "1"


def create(layout: Layout, meta: Mapping[str, Any], clock: Callable[[], float] = time.time) -> None:
    """Create the missing files of a session; an existing session is unchanged."""
    layout.refuse_lookalike()
    atomic.make_folders(layout.folder)
    layout.guard()
    now = f"{moment(clock())}\n".encode()
    for path in (layout.messages, layout.events):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise refusal(path, error, "create session") from error
    for path, data in (
        (layout.created_at, now),
        (layout.updated_at, now),
        (layout.cwd, _here() + b"\n"),
        (layout.state, b"active\n"),
    ):
        atomic.create(path, data, named=False)
    # Last, and durable: if it exists, all files above do.
    if atomic.read(layout.meta) is None:
        Facets(layout).write_meta(with_tokenizer(meta))


def create_stored(layout: Layout, meta: Mapping[str, Any], clock: Callable[[], float] = time.time) -> "Opened":
    """Create a session in the database of its home, unless it exists, and return it; its folder is made when opened."""
    from daypack.history.postgres.cache import store_of  # noqa: PLC0415 — most sessions are files
    from daypack.history.postgres.stored import SmallFiles  # noqa: PLC0415

    layout.refuse_lookalike()
    files = SmallFiles(format_meta(with_tokenizer(meta)), _here() + b"\n", f"{moment(clock())}\n".encode())
    return store_of(layout).create(layout.agent, layout.name, files)


def with_tokenizer(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first meta.json of a session: the token counter of its model never changes."""
    return {**meta, "tokenizer": default_tokenizer(meta.get("model"))}


def find_stored(layout: Layout) -> "Opened | None":
    """Return the session of a folder in the database of its home; None if there is none."""
    from daypack.history.postgres.cache import store_of  # noqa: PLC0415

    return store_of(layout).find(layout.agent, layout.name)


def require_stored(layout: Layout) -> "Opened":
    """Return the session of a folder in the database of its home, or raise SessionMissing."""
    found = find_stored(layout)
    if found is None:
        raise session_missing(layout.home, layout.agent, layout.name, "open session")
    return found


def check_format(layout: Layout, meta: Mapping[str, Any]) -> None:
    """Raise BadConfig if the session was written in another format."""
    protocols = meta.get("protocols")
    written = cast(Mapping[str, Any], protocols).get("history") if isinstance(protocols, Mapping) else None
    if written not in (None, HISTORY_FORMAT):
        raise BadConfig(
            f"the session is written in history format {written!r}, this daypack knows {HISTORY_FORMAT!r}",
            operation="open session",
            place=layout.meta,
            hint="use the daypack that wrote it, or a newer one",
        )


def absent(layout: Layout, operation: str) -> DaypackError:
    """Return the error for a session without messages.jsonl: damaged, or no session at all."""
    if atomic.exists(layout.meta):
        hint = "restore it from a backup; no other file has the messages"
        return Damaged("the log is missing", operation=operation, place=layout.messages, hint=hint)
    return session_missing(layout.home, layout.agent, layout.name, operation)


def _here() -> bytes:
    try:
        return os.getcwdb()
    except OSError:
        return b""  # the current folder was deleted


def default_tokenizer(model: str | None) -> str:
    """Return the name of the token counter of a model."""
    from daypack.text.tokens import counter_for  # noqa: PLC0415

    return counter_for(model).name
