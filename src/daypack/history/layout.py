"""Every path of daypack, in one place, and which names may be part of a path.

<root>/home/<uid>/config.toml
<root>/home/<uid>/agent/<agent>/session/<session>/messages.jsonl …
<root>/home/<uid>/store/<database>/agent/<agent>/session/<session>/messages.jsonl …   a cache of a database
"""

import os
import unicodedata
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from daypack.errors import BadName, UnsafePath
from daypack.files.atomic import exists, refusal
from daypack.types.digest import digest_text
from daypack.types.names import invisible_in

MAX_NAME_BYTES = 128
_SYSTEM_ROOT = "/ctx"
FIND_INDEX = os.path.join("find", "index.sqlite")
SESSION_ROWS = "sessions.idx"
LAST_SESSIONS, DECISIONS = "last.json", "decisions.json"  # of a project


def check_name(name: str, what: str) -> str:
    """Return `name` if it can be a component of a path on every system."""
    problem = _problem(name)
    if problem:
        raise BadName(
            f"{name!r} {problem}",
            operation="check name",
            place=what,
            hint=f"use letters, digits, '.', '_' and '-', at most {MAX_NAME_BYTES} bytes",
        )
    return name


def _problem(name: object) -> str:
    if not isinstance(name, str):
        return "is not text"
    if not name:
        return "is empty"
    if "/" in name or "\\" in name:
        return "has a path separator"
    if not (name.isascii() and name.isprintable()) and (problem := invisible_in(name)):
        return problem
    if name.startswith("."):
        return "begins with a dot"
    if name != name.strip():
        return "begins or ends with a space"
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode normal form C, so two spellings of it would be two names"
    if (length := len(name.encode())) > MAX_NAME_BYTES:
        return f"has {length} bytes"
    return ""


def refuse_lookalike(folder: str, name: str, what: str) -> None:
    """Raise BadName if a folder has an entry that differs from a new name only in case or normalisation.

    macOS takes both for one, and a home may be moved there.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return  # nothing is there yet, or creating something there reports the problem
    if name in names:
        return
    folded = fold(name)
    for other in names:
        if fold(other) == folded and not _is_spelled(folder, other, name):
            raise BadName(
                f"{name!r} differs from the existing {other!r} only in case or normalisation: macOS takes both for one",
                operation="check name",
                place=what,
                hint=f"use {other!r}, or choose another name",
            )


def fold(name: str) -> str:
    """Return what names have in common that macOS takes for one."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _is_spelled(folder: str, entry: str, name: str) -> bool:
    """Return True if an entry is `name`, on a file system that decomposes names (HFS+)."""
    return unicodedata.normalize("NFC", entry) == name and os.path.lexists(os.path.join(folder, name))


def _check_spelling(path: str, what: str) -> None:
    """Raise BadName if a folder was found only because its file system ignores case; elsewhere this is one call."""
    parent, name = os.path.split(path)
    other = name.upper() if name.upper() != name else name.lower()
    if other == name:
        return
    try:
        is_same = os.path.samestat(os.lstat(os.path.join(parent, other)), os.lstat(path))
    except OSError:
        return
    if is_same:
        refuse_lookalike(parent, name, what)


def safe_name(text: str) -> str:
    """Return a valid name made from any id or file name of another program."""
    cleaned = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in text)
    name = cleaned.lstrip(".-").rstrip("-") or "transcript"
    if len(name) <= MAX_NAME_BYTES:
        return name
    return f"{name[: MAX_NAME_BYTES - 17]}-{digest_text(text)[7:23]}"


def default_root(environ: Mapping[str, str]) -> str:
    """Return the default root: DAYPACK_HOME, else /ctx if it is writable, else ~/.daypack."""
    if named := environ.get("DAYPACK_HOME"):
        return os.path.abspath(named)
    if os.path.isdir(_SYSTEM_ROOT) and os.access(_SYSTEM_ROOT, os.W_OK):
        return _SYSTEM_ROOT
    return os.path.join(os.path.expanduser("~"), ".daypack")


class StoredSessions(Protocol):
    """The sessions of a user in a database: which there are, and the address. `history/postgres` has them."""

    @property
    def cache_name(self) -> str:
        """The name of the folder with their caches."""
        ...

    @property
    def url(self) -> str:
        """The address, which may have a password."""
        ...

    @property
    def place(self) -> str:
        """The address, without its password."""
        ...

    def agents(self) -> list[str]:
        """Return the agents that have sessions."""
        ...

    def names(self, agent: str) -> list[str]:
        """Return the names of an agent's sessions."""
        ...

    def has(self, agent: str, name: str) -> bool:
        """Return True if there is a session of that name."""
        ...

    def wait_at_most(self, seconds: float) -> None:
        """Give up after so many seconds if the database does not answer."""
        ...


class Home(NamedTuple):
    """The part of the root that belongs to one user. `database`: sessions are there, their folders are caches."""

    root: str
    uid: str
    database: StoredSessions | None = None

    @property
    def folder(self) -> str:
        """The user's folder."""
        return os.path.join(self.root, "home", check_name(self.uid, "uid"))

    @property
    def config(self) -> str:
        """The user's settings."""
        return os.path.join(self.folder, "config.toml")

    @property
    def memory(self) -> str:
        """The folder of the user's memories across sessions."""
        return os.path.join(self.folder, "memory")

    @property
    def store(self) -> str:
        """The file with all memories."""
        return os.path.join(self.memory, "store.sqlite")

    @property
    def memory_indexes(self) -> str:
        """The folder with the search index of each memory."""
        return os.path.join(self.memory, "index")

    @property
    def find_index(self) -> str:
        """The index of all sessions, which `find` searches."""
        return os.path.join(self.sessions_folder, FIND_INDEX)

    @property
    def audit(self) -> str:
        """The folder of the audit log."""
        return os.path.join(self.folder, "audit")

    @property
    def models(self) -> str:
        """The folder of the models the user pulled."""
        return os.path.join(self.folder, "model")

    def project(self, name: str) -> str:
        """The folder with the small files of one project."""
        return os.path.join(self.projects, check_name(name, "project"))

    @property
    def projects(self) -> str:
        """The folder with the small files of all projects."""
        return os.path.join(self.folder, "project")

    @property
    def caches(self) -> str:
        """The folder with the caches of sessions in databases; it may be deleted at any time."""
        return os.path.join(self.folder, "store")

    @property
    def sessions_folder(self) -> str:
        """The folder that holds the agents: the user's, or that of the caches of the database."""
        return self.folder if self.database is None else os.path.join(self.caches, self.database.cache_name)

    @property
    def _agents(self) -> str:
        return os.path.join(self.sessions_folder, "agent")

    @property
    def sessions_place(self) -> str:
        """Where the sessions are, to show: the user's folder, or the address of the database without its password."""
        return self.folder if self.database is None else self.database.place

    @property
    def here(self) -> "Home":
        """The same home with the sessions that have a folder here: nothing is asked of a database."""
        return self if self.database is None else self._replace(database=_CachedSessions(self, self.database))

    def sessions(self, agent: str) -> str:
        """The folder that holds an agent's sessions."""
        return os.path.join(self._agents, check_name(agent, "agent"), "session")

    def session(self, agent: str, name: str) -> "Layout":
        """The paths of one session."""
        return Layout(self.root, os.path.join(self.sessions(agent), check_name(name, "session")), self)

    def agents(self) -> list[str]:
        """The names of the agents that have sessions."""
        return _folders(self._agents) if self.database is None else self.database.agents()

    def list(self, agent: str) -> list[str]:
        """The names of an agent's sessions."""
        folder = self.sessions(agent)
        return _folders(folder) if self.database is None else self.database.names(agent)

    def has(self, agent: str, name: str) -> bool:
        """Return True if a session exists; one in a database may have no folder here."""
        folder = self.session(agent, name).folder
        return exists(folder) if self.database is None else self.database.has(agent, name)


class _CachedSessions:
    """The sessions of a database that have a folder here, for those who must not wait for it."""

    def __init__(self, home: Home, stored: StoredSessions) -> None:
        self._home = home
        self._stored = stored

    @property
    def cache_name(self) -> str:
        return self._stored.cache_name

    @property
    def url(self) -> str:
        return self._stored.url

    @property
    def place(self) -> str:
        return self._stored.place

    def agents(self) -> list[str]:
        return _folders(os.path.join(self._home.caches, self.cache_name, "agent"))

    def names(self, agent: str) -> list[str]:
        return _folders(self._home.sessions(agent))

    def has(self, agent: str, name: str) -> bool:
        return exists(self._home.session(agent, name).folder)

    def wait_at_most(self, seconds: float) -> None:
        self._stored.wait_at_most(seconds)


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as found:
            folders = (item.name for item in found if item.is_dir(follow_symlinks=False))
            return sorted(filter(None, (_usable(path, name) for name in folders)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise refusal(path, error, "list") from error


def _usable(folder: str, name: str) -> str:
    """Return the name by which an entry can be opened; "" for what is no name of ours."""
    if not _problem(name):
        return name
    composed = unicodedata.normalize("NFC", name)
    return composed if not _problem(composed) and _is_spelled(folder, name, composed) else ""


class Layout:
    """The files of one session."""

    def __init__(self, root: str, folder: str, home: Home | None = None) -> None:
        self.root = root
        self._home = home
        self.folder = folder
        self.messages = os.path.join(folder, "messages.jsonl")
        self.events = os.path.join(folder, "events.jsonl")
        self.meta = os.path.join(folder, "meta.json")
        self.latest = os.path.join(folder, "latest.md")
        self.state = os.path.join(folder, "state")
        self.cwd = os.path.join(folder, "cwd")
        self.created_at = os.path.join(folder, "created_at")
        self.updated_at = os.path.join(folder, "updated_at")
        self.blob = os.path.join(folder, "blob")
        self.context = os.path.join(folder, "context")

    @property
    def name(self) -> str:
        """The session's name."""
        return os.path.basename(self.folder)

    @property
    def agent(self) -> str:
        """The name of the agent the session belongs to."""
        return os.path.basename(os.path.dirname(os.path.dirname(self.folder)))

    @property
    def prompts(self) -> str:
        """The user's own prompt texts, which override those shipped with daypack."""
        return os.path.join(self.home.folder, "prompts")

    @property
    def models(self) -> str:
        """The folder of the models the user pulled."""
        return os.path.join(self.home.folder, "model")

    @property
    def home(self) -> Home:
        """The part of the root that belongs to the session's user."""
        if self._home is not None:
            return self._home
        above = self.folder
        for _ in ("<session>", "session", "<agent>", "agent"):
            above = os.path.dirname(above)
        return Home(self.root, os.path.basename(above))

    # Under context/: all of it can be deleted and is rebuilt.

    @property
    def offsets(self) -> str:
        """The sidecars of the logs."""
        return os.path.join(self.context, "offsets")

    def index(self, log: str) -> str:
        """The sidecar of one log, named like it: messages.idx, events.idx, keys.idx."""
        return os.path.join(self.offsets, f"{log}.idx")

    def may_have(self, names: Collection[str]) -> bool:
        """Return True if the folder `context` has files with these names, or cannot be listed."""
        try:
            return not frozenset(names).isdisjoint(os.listdir(self.context))
        except FileNotFoundError:
            return False
        except OSError:
            return True  # reading them reports the problem

    @property
    def pinned(self) -> str:
        """The folder of pinned texts."""
        return os.path.join(self.context, "pinned")

    def pin(self, name: str) -> str:
        """The path of a pinned text; a name without an extension gets .md."""
        check_name(name, "pin")
        return os.path.join(self.pinned, check_name(name if "." in name else f"{name}.md", "pin"))

    def derived(self, name: str) -> str:
        """One of the other derived files and folders (`DERIVED`)."""
        return os.path.join(self.context, DERIVED[name])

    def refuse_lookalike(self) -> None:
        """Raise BadName if a new session, or its new agent, has the name of another except for case."""
        sessions = os.path.dirname(self.folder)
        refuse_lookalike(sessions, self.name, "session")
        if not os.path.isdir(sessions):
            refuse_lookalike(os.path.dirname(os.path.dirname(sessions)), self.agent, "agent")

    def guard(self) -> None:
        """Raise if the path below the root, or a folder of the session, is a symbolic link or has another name."""
        root = os.path.realpath(self.root)
        expected = root + self.folder[len(self.root) :]
        if os.path.realpath(self.folder) != expected:
            raise UnsafePath(
                "a symbolic link leads out of the home",
                operation="open session",
                place=self.folder,
                hint="replace the link by a real folder",
            )
        _check_spelling(self.folder, "session")
        _check_spelling(os.path.dirname(os.path.dirname(self.folder)), "agent")
        own = (self.derived("child"), self.derived("swap"), self.derived("dedup"))
        for folder in (self.context, self.offsets, self.pinned, self.blob, *own):
            if os.path.islink(folder):
                raise UnsafePath("is a symbolic link", operation="open session", place=folder, hint="replace the link")


DERIVED = {
    "budget": "budget",
    "pack": "pack.json",
    "pack_text": "pack.md",
    "context_doc": "CONTEXT.md",
    "summary": "summary.md",
    "facts": "facts.jsonl",
    "decisions": "decisions.jsonl",
    "todo": "todo.md",
    "errors": "errors.jsonl",
    "refs": "refs.jsonl",
    "compaction": "compaction.json",
    "swap": "swap",
    "dedup": "dedup",
    "child": "child",
    "gc_policy": "gc.policy",
    "ledger": "ledger.json",
    "calls": "calls.jsonl",
    "search": "search.sqlite",
    "recap": "recap.json",
}
