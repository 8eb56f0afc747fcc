"""The meaning of tool arguments: one row per tool, and a guess for unknown tools.

    "read": ToolShape("read", start=("offset",), count=("limit",))

Names are compared folded: `read_file`, `ReadFile` and `mcp__filesystem__read_file` are one row. `TOOL_SHAPES` may be
added to; it is asked at every call.
"""

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

Verb = Literal["listed", "read", "written", "created", "deleted"]

# Arguments that name files and folders, folded.
PATHS = (
    "filepath",
    "path",
    "file",
    "filename",
    "notebookpath",
    "absolutepath",
    "targetfile",
    "relativepath",
    "relativeworkspacepath",
    "pathname",
    "targetpath",
    "paths",
    "filepaths",
    "files",
    "filenames",
    "absolutepaths",
    "dirpath",
    "directory",
    "directorypath",
    "directories",
    "dir",
    "folder",
    "folderpath",
    "searchpath",
    "searchdirectory",
    "uri",
)
SOURCES = ("source", "sourcepath", "src", "from", "frompath", "oldpath", "oldname", "oldfilepath")
TARGETS = ("destination", "destinationpath", "dest", "dst", "to", "topath", "newpath", "newname", "newfilepath")
URLS = ("url", "urls", "uri", "link", "href", "address", "website")


class ToolShape(Struct, frozen=True):
    """The meaning of the arguments of a tool; names are folded, and the first one present counts."""

    verb: Verb | None = None  # what happens to the files that are named
    paths: tuple[str, ...] = ()  # arguments that name files, beside those of `PATHS`
    content: tuple[str, ...] = ()  # the whole new text of the file
    old: tuple[str, ...] = ()  # text that is replaced …
    new: tuple[str, ...] = ()  # … by this one
    start: tuple[str, ...] = ()  # first line, counted from 1
    stop: tuple[str, ...] = ()  # last line
    count: tuple[str, ...] = ()  # number of lines
    command: tuple[str, ...] = ()  # a shell script, or a list of words
    patch: tuple[str, ...] = ()  # a patch, whose body names its files
    urls: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()  # file patterns; one without a wildcard is a path
    verbs: dict[str, Verb] = {}  # an editor's commands: the argument `command` decides
    moves: bool = False  # from a source to a destination
    copies: bool = False  # the same, and the source stays
    finds: bool = False  # the links of its result were looked for
    opened: bool = False  # without a path it means the file that is open
    says_content: bool = False  # its result is the text of the file and nothing else


_START = ("offset", "startline", "viewstart", "startlineoneindexed", "linenumber", "startlinenumber")
_STOP = ("endline", "endlineoneindexed", "endlineoneindexedinclusive", "endlinenumber", "viewend")
_COUNT = ("limit", "numlines", "maxlines")
_TEXT = ("content", "contents", "filetext", "text", "codecontent", "filecontent", "data")
_OLD = ("oldstring", "oldstr", "search", "oldtext", "old")
_NEW = ("newstring", "newstr", "replace", "newtext", "new", "replacement")
_SCRIPT = ("command", "cmd", "script", "commandline", "commands", "input", "bashcommand")

_READ = ToolShape("read", start=_START, stop=_STOP, count=_COUNT)
_WRITE = ToolShape("written", content=_TEXT)
_CREATE = ToolShape("created", content=_TEXT)
_EDIT = ToolShape("written", old=_OLD, new=_NEW)
_DELETE = ToolShape("deleted")
_LIST = ToolShape("listed", patterns=("glob", "include", "includepattern"))
_GLOB = ToolShape("listed", patterns=("pattern", "patterns", "glob", "globpattern"))
_SHELL = ToolShape(command=_SCRIPT)
_PATCH = ToolShape("written", patch=("input", "patch", "patchtext", "diff", "content"))
_FETCH = ToolShape(urls=URLS)
_MOVE = ToolShape("written", moves=True)
_COPY = ToolShape("written", copies=True)
_NOTHING = ToolShape()
_EDITOR = ToolShape(
    "read",
    content=("filetext", "content"),
    old=_OLD,
    new=_NEW,
    verbs={
        "view": "read",
        "read": "read",
        "create": "created",
        "write": "written",
        "str_replace": "written",
        "insert": "written",
        "undo_edit": "written",
        "edit": "written",
        "append": "written",
        "delete": "deleted",
    },
)

TOOL_SHAPES: dict[str, ToolShape] = {
    # Claude Code, and what took its names
    "read": _READ,
    "write": _WRITE,
    "edit": ToolShape("written", old=_OLD, new=_NEW, opened=True),
    "multiedit": _EDIT,
    "notebookread": _READ,
    "notebookedit": ToolShape("written"),
    "glob": _GLOB,
    "grep": _LIST,
    "ls": _LIST,
    "bash": _SHELL,
    "bashoutput": _NOTHING,
    "killshell": _NOTHING,
    "webfetch": _FETCH,
    "websearch": ToolShape(finds=True),
    "task": _NOTHING,
    "agent": _NOTHING,
    "todowrite": _NOTHING,
    "exitplanmode": _NOTHING,
    "askuserquestion": _NOTHING,
    "skill": _NOTHING,
    # Codex
    "shell": _SHELL,
    "shellcommand": _SHELL,
    "localshell": _SHELL,
    "localshellcall": _SHELL,
    "execcommand": _SHELL,
    "unifiedexec": _SHELL,
    "exec": _SHELL,
    "writestdin": _NOTHING,
    "applypatch": _PATCH,
    "updateplan": _NOTHING,
    "viewimage": ToolShape("read"),
    "listdir": _LIST,
    "grepfiles": _LIST,
    # The filesystem server of MCP, and the many tools that are called so
    "readfile": _READ,
    "readtextfile": ToolShape("read", says_content=True, count=("head", "tail")),
    "readmediafile": ToolShape("read"),
    "readmultiplefiles": _READ,
    "readmanyfiles": ToolShape("read", patterns=("include",)),
    "writefile": _WRITE,
    "writetofile": _WRITE,
    "createfile": _CREATE,
    "editfile": _EDIT,
    "replaceinfile": ToolShape("written", patch=("diff",)),
    "searchreplace": _EDIT,
    "replace": _EDIT,
    "replacestringinfile": _EDIT,
    "inserteditintofile": _EDIT,
    "deletefile": _DELETE,
    "removefile": _DELETE,
    "createdirectory": ToolShape("created"),
    "listdirectory": _LIST,
    "listdirectorywithsizes": _LIST,
    "directorytree": _LIST,
    "listfiles": _LIST,
    "searchfiles": _GLOB,
    "searchfilecontent": _LIST,
    "filesearch": _GLOB,
    "grepsearch": _LIST,
    "codebasesearch": ToolShape("listed", paths=("targetdirectories",)),
    "getfileinfo": _LIST,
    "movefile": _MOVE,
    "renamefile": _MOVE,
    "copyfile": _COPY,
    "pushfiles": _WRITE,
    "createorupdatefile": _WRITE,
    "getfilecontents": _READ,
    # Shells and browsers of other agents
    "executebash": _SHELL,
    "executecommand": _SHELL,
    "runcommand": _SHELL,
    "runshellcommand": _SHELL,
    "runterminalcmd": _SHELL,
    "runinterminal": _SHELL,
    "terminal": _SHELL,
    "fetch": _FETCH,
    "fetchurl": _FETCH,
    "browsernavigate": _FETCH,
    "webfetchtool": _FETCH,
    "googlewebsearch": ToolShape(finds=True),
    "bravewebsearch": ToolShape(finds=True),
    "search": ToolShape("listed", finds=True),
    # One editor with commands
    "strreplaceeditor": _EDITOR,
    "strreplacebasededittool": _EDITOR,
    "texteditor": _EDITOR,
    # SWE-agent
    "open": ToolShape("read", start=("linenumber",)),
    "create": _CREATE,
    "insert": ToolShape("written", opened=True),
    "append": ToolShape("written", opened=True),
    "scrollup": ToolShape("read", opened=True),
    "scrolldown": ToolShape("read", opened=True),
    "goto": ToolShape("read", opened=True),
    "findfile": _LIST,
    "searchdir": _LIST,
    "searchfile": _LIST,
    "submit": _NOTHING,
    # Our own, which bring back what is known
    "recall": _NOTHING,
    "searchhistory": _NOTHING,
}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_SEPARATOR = re.compile(r"__|[./:]")
# What the words of an unknown tool's name say, the first that fits.
_GUESSES: tuple[tuple[frozenset[str], ToolShape], ...] = (
    (frozenset({"delete", "remove", "unlink", "rm", "trash"}), _DELETE),
    (frozenset({"move", "rename", "mv"}), _MOVE),
    (frozenset({"copy", "cp", "duplicate"}), _COPY),
    (frozenset({"list", "ls", "glob", "find", "search", "tree", "grep", "stat", "exists"}), _LIST),
    (frozenset({"create", "new", "touch", "mkdir", "generate"}), _CREATE),
    (frozenset({"patch"}), _PATCH),
    (frozenset({"edit", "replace", "modify", "rewrite", "refactor", "format"}), _EDIT),
    (frozenset({"write", "save", "append", "insert", "update", "upload", "put", "store", "set"}), _WRITE),
    (frozenset({"shell", "bash", "terminal", "exec", "execute"}), _SHELL),
)

_FINDING = frozenset(
    {"list", "ls", "glob", "find", "search", "tree", "grep", "query", "fetch", "browse", "recall", "log"}
)
_RUNNING = frozenset(
    {"run", "test", "tests", "check", "checks", "build", "compile", "lint", "make", "install", "deploy", "verify"}
)


def shape_of(name: str) -> ToolShape:
    """Return what a tool does: its row, or the guess that its name allows."""
    last, words = _names(name)
    for candidate in (fold(name), last):
        if shape := TOOL_SHAPES.get(candidate):
            return shape
    for cues, shape in _GUESSES:
        if words & cues:
            return shape
    return _UNKNOWN


def speaks_for_itself(name: str, *, names_files: bool) -> bool:
    """Return True if a tool answers with its own report, not with a text it shows or results it found."""
    last, words = _names(name)
    if fold(name) in TOOL_SHAPES or last in TOOL_SHAPES or words & _FINDING:
        return False
    return not names_files or bool(words & _RUNNING)


_UNKNOWN = ToolShape("read", urls=URLS, start=_START, stop=_STOP, count=_COUNT)


@lru_cache(maxsize=512)
def _names(name: str) -> tuple[str, frozenset[str]]:
    """Return the folded last part of a name with a server before it, and the words of that part."""
    last = _SEPARATOR.split(name[:256])[-1] or name[:256]
    return fold(last), frozenset(word.lower() for word in _WORD.findall(last))


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """Return the name of a tool or an argument without what languages write differently."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
