"""The one table of known places: where each program leaves its transcripts or memories on this machine.

To add a program, add a row to PLACES; its format must be one of `formats.FORMATS`, or of the readers of memories.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from daypack.importers.folders import Folders
from daypack.importers.place_settings import basic_memory_projects, claude_mem_folder, mcp_memory_files, user_home

Match = Callable[[str, str], Iterator[str]]
_DATABASES = (".db", ".sqlite", ".sqlite3")
_MCP_MEMORY = "_npx/*/node_modules/@modelcontextprotocol/server-memory/dist"
_WRITE_AHEAD = "-wal"  # beside a database, with what is not yet in it
CODEX_ROLLOUTS = ("sessions/*/*/*/rollout-*.jsonl*", "archived_sessions/rollout-*.jsonl*")
CODEX_HISTORY = "thread_history_*.sqlite"  # read for threads without a rollout
_EVENTS = "events"  # of a conversation of OpenHands: a file for each


class Folder(NamedTuple):
    """A folder: the one that an environment variable names, if it is set, else the default one."""

    variable: str  # "" if there is none
    default: str  # in the user's home
    below: str = ""  # in the folder that the variable names: "opencode" in XDG_DATA_HOME
    second_variable: str = ""  # names the folder if the first is not set

    def find(self, environ: Mapping[str, str]) -> str:
        """Return the path of the folder, which need not exist."""
        for variable in filter(None, (self.variable, self.second_variable)):
            if named := environ.get(variable):
                return os.path.abspath(os.path.join(named, self.below))
        return os.path.abspath(os.path.join(user_home(environ), self.default))


class Place(NamedTuple):
    """A program, its folder, and the files in it with its transcripts, or with its memories.

    `patterns` are relative to the folder, or to each of `data` if the files are elsewhere; `named` finds the files and
    folders that the program's own settings name. A file may have one session, or, as a database does, many.
    """

    title: str
    program: str  # on PATH
    format: str
    folder: Folder
    patterns: tuple[str, ...]
    data: tuple[Folder, ...] = ()
    kind: Literal["transcripts", "memory"] = "transcripts"
    named: Callable[[Mapping[str, str]], Iterable[str]] | None = None

    def find_files(self, environ: Mapping[str, str], match: "Match | None" = None) -> Iterator["PlacedFile"]:
        """Yield the files that are not empty, each once; `match` finds those of a pattern below a folder."""
        seen: set[str] = set()
        for root in self._roots(environ):
            patterns = ("",) if os.path.isfile(root) else self.patterns
            for pattern in patterns:
                for path in (match or Folders().match)(root, pattern) if pattern else (root,):
                    found = find_file(path)
                    if found and path not in seen:
                        seen.add(path)
                        yield found._replace(root=root)

    def _roots(self, environ: Mapping[str, str]) -> list[str]:
        """Return the folders and files to look at; a folder in another one is not looked at twice."""
        roots = [folder.find(environ) for folder in self.data or (self.folder,)]
        roots += map(os.path.abspath, self.named(environ) if self.named else ())
        return [
            root
            for root in dict.fromkeys(roots)
            if not any(root.startswith(os.path.join(other, "")) for other in roots if other != root)
        ]


class PlacedFile(NamedTuple):
    """A file at a known place, and when and to what size it was written last."""

    path: str
    modified: int  # ns
    size: int
    root: str = ""  # the folder of the place that it was found in


PLACES: dict[str, Place] = {
    "claude": Place(
        "Claude Code", "claude", "claude-code", Folder("CLAUDE_CONFIG_DIR", ".claude"), ("projects/*/*.jsonl",)
    ),
    "codex": Place(
        "Codex",
        "codex",
        "codex",
        Folder("CODEX_HOME", ".codex"),
        (*CODEX_ROLLOUTS, CODEX_HISTORY),
        (Folder("CODEX_HOME", ".codex"), Folder("CODEX_SQLITE_HOME", ".codex", second_variable="CODEX_HOME")),
    ),
    "copilot": Place(
        "Copilot CLI", "copilot", "copilot", Folder("COPILOT_HOME", ".copilot"), ("session-state/*/events.jsonl",)
    ),
    "opencode": Place(
        "opencode",
        "opencode",
        "opencode",
        Folder("XDG_CONFIG_HOME", ".config/opencode", "opencode"),
        ("opencode.db", "storage/session/*/ses_*.json"),
        (Folder("XDG_DATA_HOME", ".local/share/opencode", "opencode"),),
    ),
    "qwen": Place(
        "Qwen Code",
        "qwen",
        "qwen",
        Folder("QWEN_HOME", ".qwen"),
        ("projects/*/chats/*.jsonl",),
        (Folder("QWEN_RUNTIME_DIR", ".qwen", second_variable="QWEN_HOME"),),
    ),
    "gemini": Place(
        "Gemini CLI",
        "gemini",
        "gemini",
        Folder("GEMINI_CLI_HOME", ".gemini", ".gemini"),
        ("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
    ),
    "openhands": Place(
        "OpenHands",
        "openhands",
        "openhands",
        Folder("OH_PERSISTENCE_DIR", ".openhands"),
        ("conversations/*/base_state.json", "sessions/*/events/0.json"),
        (Folder("OH_PERSISTENCE_DIR", ".openhands"), Folder("", ".openhands-state")),
    ),
    "swe-agent": Place(
        "SWE-agent",
        "sweagent",
        "swe-agent",
        Folder("SWE_AGENT_TRAJECTORY_DIR", "SWE-agent/trajectories"),
        ("*/*/*.traj", "*/*/*/*.traj"),
    ),
    # Its sessions are recorded while they happen; its own database is not read.
    "hermes": Place("Hermes Agent", "hermes", "openai", Folder("HERMES_HOME", ".hermes"), ()),
    "basic-memory": Place(
        "basic-memory",
        "",
        "basic-memory",
        Folder("BASIC_MEMORY_HOME", "basic-memory"),
        ("**/*.md",),
        kind="memory",
        named=basic_memory_projects,
    ),
    "claude-mem": Place(
        "claude-mem",
        "",
        "claude-mem",
        Folder("CLAUDE_MEM_DATA_DIR", ".claude-mem"),
        ("claude-mem.db",),
        kind="memory",
        named=claude_mem_folder,
    ),
    "letta": Place("Letta", "", "letta", Folder("LETTA_DIR", ".letta"), ("sqlite.db",), kind="memory"),
    # Its file is beside its package, where npx unpacked it, unless MEMORY_FILE_PATH names another.
    "mcp-memory": Place(
        "MCP memory server",
        "",
        "mcp-memory",
        Folder("npm_config_cache", ".npm"),
        (f"{_MCP_MEMORY}/memory.jsonl", f"{_MCP_MEMORY}/memory.json"),
        kind="memory",
        named=mcp_memory_files,
    ),
    "mem0": Place("mem0", "", "mem0", Folder("MEM0_DIR", ".mem0"), ("history.db",), kind="memory"),
}
"""The known places, by the word that options use for the program."""


def stored_agent(word: str, agents: Collection[str]) -> str:
    """Return the agent that a word means, of those that have sessions: its name, or the word for its program."""
    place = PLACES.get(word)
    return place.format if place and word not in agents and place.format in agents else word


def find_file(path: str) -> PlacedFile | None:
    """Return the state of a file now; None if it is missing, empty or no plain file.

    A database also changes when its write-ahead log does, a conversation of OpenHands when its folder of events does.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not S_ISREG(found.st_mode):
        return None
    modified, size = found.st_mtime_ns, found.st_size
    if beside := _beside(path):
        try:
            other = os.stat(beside)
        except OSError:
            pass
        else:
            is_folder = S_ISDIR(other.st_mode)
            if is_folder or other.st_size:  # an empty log has nothing new: readers create it too
                modified, size = max(modified, other.st_mtime_ns), size + (0 if is_folder else other.st_size)
    return PlacedFile(path, modified, size) if size else None


def _beside(path: str) -> str:
    """Return what else changes when there is something new to import; "" if there is nothing."""
    if path.endswith(_DATABASES):
        return path + _WRITE_AHEAD
    folder, name = os.path.split(path)
    return {"base_state.json": os.path.join(folder, _EVENTS), "0.json": folder}.get(name, "")
