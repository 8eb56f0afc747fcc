"""Which memory a command means: the one it names, the default, or that of the project in the current folder."""

import argparse
import os
from collections.abc import Iterable
from functools import partial

from daypack.cli.terminal import print_note, safe_line
from daypack.errors import BadConfig, BadInput, MemoryMissing
from daypack.history.home import find_home
from daypack.memory.port import MemoryTools
from daypack.memory.project.memory import USER, default_memory, ensure_memory
from daypack.memory.project.repository import find_project
from daypack.memory.store.port import is_id
from daypack.memory.tools import Memories
from daypack.types.memory import Memory
from daypack.types.names import did_you_mean

WITH_DEFAULT = ("show", "add", "search", "context", "export")
_OTHERS = {"add": "text", "export": "file", "search": "query"}  # the argument after the memory


def sort_arguments(memories: MemoryTools, args: argparse.Namespace) -> None:
    """Decide which argument is the memory, and let a command that names none mean that of the project.

    With --memory none is. Otherwise the first is; but with a default memory a single argument of `add` and `search` is
    the text or the query. In a project there always is one: there an argument is a memory only if it names one.
    """
    others = _OTHERS.get(args.action)
    rest = getattr(args, others) if others else None
    given: list[str] = [] if args.memory is None else [args.memory]
    given += rest if isinstance(rest, list) else [] if rest is None else [rest]
    if args.default is None and isinstance(memories, Memories) and (others or not given):
        use_project(memories, args)
    if args.default is None and not _is_text(memories, args.action, given):
        return
    if args.action != "search" and len(given) > bool(others):
        hint = f"leave out {given[0]!r}, or --memory"
        raise BadInput("two memories named", operation=f"memory {args.action}", place="arguments", hint=hint)
    args.memory = None
    if others:
        setattr(args, others, given if args.action == "search" else next(iter(given), None))


def _is_text(memories: MemoryTools, action: str, given: list[str]) -> bool:
    """Return True if no argument of `add` or `search` is a memory: all of them are the text or the query."""
    if not given or not memories.default_memory or action not in ("add", "search"):
        return False
    if memories.find_default is None:
        return len(given) == 1
    if action == "search":
        return len(given) == 1 or (_has_default(memories) and not _resembles(memories, given[0]))
    return len(given) == 1 and given[0] not in {
        name for memory in memories.memories() for name in (memory.memory_id, memory.title)
    }


def _has_default(memories: MemoryTools) -> bool:
    try:
        memories.get_memory()
    except MemoryMissing:
        return False
    return True


def _resembles(memories: MemoryTools, word: str) -> bool:
    """Return True if a word is a name of a memory, or may be a misspelt one."""
    try:
        memories.find_memory(word)
    except MemoryMissing:
        return bool(did_you_mean(word, (memory.title for memory in memories.memories())))
    except BadInput:  # of several memories
        pass
    return True


def use_project(memories: Memories, args: argparse.Namespace) -> None:
    """Make the memory of the current folder's project the default, unless a setting names another."""
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        return
    if memories.user != USER:
        return
    home = find_home(args.home, args.uid)
    named = memories.default_memory
    given, configured = ("", named) if memories.default_origin == home.config else (named, "")
    memories.default_memory, project = default_memory(home, folder, given=given, configured=configured)
    if not memories.default_memory and (here := find_project(folder)).off:
        memories.default_memory, project = here.settings, here  # the error of a command names the file
    if project is not None:
        writes = args.action in ("add", "bind") or getattr(args, "put", None) is not None
        memories.find_default = partial(ensure_memory, memories, home, project, create=writes)


def named_memory(memories: MemoryTools, args: argparse.Namespace) -> str:
    """Return the id of the memory the arguments name, or of the default memory."""
    if args.memory is not None:
        try:
            return memories.find_memory(args.memory)
        except MemoryMissing as error:
            error.hint = "; ".join(filter(None, (_other_reading(args, memories), error.hint)))
            raise
    if not memories.default_memory and isinstance(memories, Memories):
        hint = (
            "name it, or set a default: --memory, DAYPACK_MEMORY, or `default` in the [memory] table of config.toml; "
            "`daypack memory list` lists them"
        )
        raise BadInput("no memory named", operation=f"memory {args.action}", place="arguments", hint=hint)
    memory = memories.get_memory()  # a server may have a default of its own
    if memories.find_default is not None and isinstance(memories, Memories) and not args.json:
        print_note(
            f"memory of this project: {safe_line(memories.backend.shown(memory).title)} ({memory.memory_id[:8]})"
        )
    return memory.memory_id


def _other_reading(args: argparse.Namespace, memories: MemoryTools) -> str:
    """Return what to do if the argument that was read as a memory is a text or a part of a query."""
    if args.action == "add" and args.text is None:
        return "a text alone needs a default memory: pass --memory, or set DAYPACK_MEMORY"
    if args.action == "search" and memories.default_memory:
        try:
            memories.get_memory()
        except MemoryMissing as error:
            return f"if it is a part of the query: {error.problem} [{error.place}]"
        return "quote a query of several words, or pass --memory"
    return "the first argument is the memory" if args.action == "search" else ""


def mark_default(memories: MemoryTools, known: Iterable[Memory], args: argparse.Namespace) -> tuple[str, str]:
    """Return the id of the default memory and the mark it gets in a list; "" if there is none, or it fits several."""
    if isinstance(memories, Memories):
        try:
            use_project(memories, args)
        except BadConfig as error:  # a list needs no project
            print_note(f"{safe_line(error.place)}: {safe_line(error.problem)}")
    default = memories.default_memory
    mark = "this project" if memories.find_default is not None else "default"
    titled = [memory.memory_id for memory in known if memory.title == default]
    found = titled or [memory.memory_id for memory in known if default and memory.memory_id.startswith(default)]
    if is_id(default):
        found = [memory.memory_id for memory in known if memory.memory_id == default]
    return (found[0] if len(found) == 1 else ""), mark
