"""Memories across sessions: create, fill, search, read, export, bind to a session, erase."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from daypack.cli.input import read_text
from daypack.cli.memory_archive import export_archive, import_archive
from daypack.cli.memory_choice import WITH_DEFAULT, mark_default, named_memory, sort_arguments, use_project
from daypack.cli.memory_project import run_project
from daypack.cli.options import add_place, natural, open_named, shown
from daypack.cli.terminal import colour, counted, json_text, print_damaged, print_note, safe, safe_line, table
from daypack.errors import BadInput, EntryMissing
from daypack.memory.audit_log.record import acting
from daypack.memory.backend import Record
from daypack.memory.port import MemoryTools
from daypack.memory.store.port import is_id
from daypack.memory.tools import Memories, open_memory
from daypack.types.memory import About, ContextDocument, Entry, Hit, Memory, SearchResult, Where
from daypack.types.names import complete

_ACTIONS = {
    "new": "Create a memory and print its id.",
    "list": "List the memories of a user.",
    "show": "Show a memory and its newest entries.",
    "add": "Add an entry: one raw message, stored word for word.",
    "search": "Search a memory with words or a question.",
    "context": "Print the context document, or write a new version.",
    "export": "Export the entries and documents of a memory as JSONL.",
    "import": "Create a memory from exported JSONL, completely or not at all.",
    "bind": "Bind a session to a memory: its turns then include the context document and search results.",
    "project": "Show which memory the project in this folder has, or choose one for it.",
    "capture": "Add the messages of a bound session to its memory, each once.",
    "erase": "Erase a memory or an entry permanently; --hide only hides a memory, --restore shows it again.",
}
_OWN_PARTS = ("lexical", "dense", "author")  # of a score: what the entry itself matches, not what is beside it
_EXCERPT_CHARS, _EXCERPT_LINES = 300, 4  # of an entry that `search` prints
_NEWEST = 10  # entries that `show` prints


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(_ACTIONS))
    made = {name: actions.add_parser(name, help=what, description=what) for name, what in _ACTIONS.items()}
    for name, action in made.items():
        if name in ("bind", "capture"):
            action.add_argument("session", help="name of the session")
        if name not in ("new", "list", "import", "project", "capture"):
            wanted = None if name == "erase" else "?"
            action.add_argument("memory", nargs=wanted, help="id, start of the id, or title of the memory")
        if name in WITH_DEFAULT:
            help_text = (
                "the memory, instead of the first argument (default: DAYPACK_MEMORY, as config.toml says, or that of "
                "the project)"
            )
            action.add_argument("--memory", metavar="NAME", dest="default", help=help_text)
        add_place(action, session=None)
        if name not in ("project", "capture"):
            action.add_argument("--user", default="local", help="user who owns the memories (default: %(default)s)")
        if name not in ("project", "capture", "export", "import", "erase"):
            action.add_argument("--url", help="use a memory server instead of local files; token in DAYPACK_TOKEN")
    _configure_writing(made)
    _configure_reading(made)


def _configure_writing(made: dict[str, argparse.ArgumentParser]) -> None:
    made["new"].add_argument("title", help="title, 1 to 50 characters")
    made["new"].add_argument(
        "--type", default="chat", help="memory type: chat, task, project or your own (default: %(default)s)"
    )
    made["new"].add_argument("--description", default="", help="purpose of the memory")
    add = made["add"]
    add.add_argument("text", nargs="?", help="the message; - is standard input (default: -)")
    add.add_argument("--summary", help="summary, at most 512 characters (default: generated)")
    add.add_argument("--client-key", help="idempotency key: an entry with the same key is added once")
    _add_about(add)
    add.add_argument("--at", metavar="TIME", help="time of the message")
    made["context"].add_argument(
        "--put", metavar="FILE", help="write this file as the new document; - is standard input"
    )
    made["import"].add_argument("file", help="file written by `memory export`; - is standard input")
    made["import"].add_argument("--title", help="title of the new memory (default: as exported)")
    erase = made["erase"]
    erase.add_argument("--entry", metavar="ID", help="erase only this entry; the start of its id is enough")
    erase.add_argument("--yes", action="store_true", help="confirm; without it nothing is erased")
    erase.add_argument("--hide", action="store_true", help="hide the memory instead of erasing it")
    erase.add_argument("--restore", action="store_true", help="show a hidden memory again; name it by its id")
    project = made["project"].add_mutually_exclusive_group()
    project.add_argument("--set", metavar="MEMORY", dest="chosen", help="choose this memory for the project")
    project.add_argument("--reset", action="store_true", help="use the project's own memory again")
    made["bind"].add_argument("--off", action="store_true", help="unbind the session")
    made["capture"].add_argument(
        "--end", action="store_true", help="also update the context document, as at the end of a session"
    )


def _configure_reading(made: dict[str, argparse.ArgumentParser]) -> None:
    search = made["search"]
    search.add_argument("query", nargs="*", help="words or a question")
    search.add_argument(
        "-k", metavar="N", type=natural, default=10, help="at most so many entries (default: %(default)s)"
    )
    search.add_argument("--explain", action="store_true", help="show the parts of each score")
    search.add_argument("--full", action="store_true", help="print whole entries, and the best matching document")
    search.add_argument("--since", metavar="TIME", help="only entries at or after this ISO 8601 time")
    search.add_argument("--until", metavar="TIME", help="only entries at or before this ISO 8601 time")
    _add_about(search)
    made["export"].add_argument("file", nargs="?", help="file to write (default: standard output)")


def _add_about(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in", metavar="SESSION", dest="within", help="session of the message")
    parser.add_argument("--role", help="role of the speaker: user, assistant, person …")
    parser.add_argument("--author", help="name of the speaker")
    parser.add_argument("--tag", action="append", default=[], help="tag; may be repeated")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    _check_address(args)
    if args.action in _RUN_ALONE:
        return _RUN_ALONE[args.action](args)
    default = args.default if args.action in WITH_DEFAULT else None
    if args.action in _RUN_HERE:
        with acting("cli"), open_memory(home=args.home, uid=args.uid, user=args.user, memory=default) as memories:
            if args.action in WITH_DEFAULT:
                sort_arguments(memories, args)
            return _RUN_HERE[args.action](memories, args)
    with open_memory(home=args.home, uid=args.uid, url=args.url, user=args.user, memory=default) as tools:
        if args.action in WITH_DEFAULT:
            sort_arguments(tools, args)
        return _RUN[args.action](tools, args)


def _check_address(args: argparse.Namespace) -> None:
    if getattr(args, "url", None) and getattr(args, "store", None) and args.action != "bind":  # which has a session
        problem, hint = "--url and --store cannot be combined", "a server has its own store"
        raise BadInput(problem, operation=f"memory {args.action}", place="arguments", hint=hint)


def _find_entry(memories: Memories, memory_id: str, name: str) -> str:
    """Return the id of the entry with this id or start of an id."""
    if is_id(name):
        memories.list_entries(memory_id, limit=1, after=name)  # fails if the entry does not exist
        return name
    ids: list[str] = []
    page = memories.list_entries(memory_id)
    while page.entries:
        ids += (entry.entry_id for entry in page.entries)
        page = memories.list_entries(memory_id, after=ids[-1])
    if found := complete(name, ids, what="entries"):
        return found
    hint = f"`daypack memory export {memory_id[:8]}` prints the entries with their ids"
    raise EntryMissing("no such entry", operation="erase", place=name, hint=hint)


def _shown(memories: MemoryTools, record: Record) -> Record:
    """Return a record as a command may print it; a server has redacted its results."""
    return memories.backend.shown(record) if isinstance(memories, Memories) else record


def _new(memories: MemoryTools, args: argparse.Namespace) -> int:
    memory = memories.create_memory(args.title, args.type, args.description)
    same = [other for other in memories.memories() if other.title == memory.title]
    memory = _shown(memories, memory)
    print(json_text(memory) if args.json else memory.memory_id)
    if len(same) > 1 and not args.json:
        print_note(f"{len(same):,} memories have the title {safe_line(memory.title)!r}; name them by their ids")
    return 0


def _list(memories: MemoryTools, args: argparse.Namespace) -> int:
    known = memories.memories()
    found = [_shown(memories, memory) for memory in known]
    if args.json:
        print(json_text(found))
        return 0
    if found:
        default, mark = mark_default(memories, known, args)
        rows = [
            (
                memory.memory_id,
                safe_line(memory.memory_type),
                f"{memory.stats.entries:,}".rjust(len("entries")),
                safe_line(memory.title) + (f" ({mark})" if memory.memory_id == default else ""),
            )
            for memory in found
        ]
        print("\n".join(table(("memory", "type", "entries", "title"), rows)))
    if not (isinstance(memories, Memories) and _mention_set_aside(args, is_empty=not found)) and not found:
        print_note(f"{safe_line(args.user)} has no memories; create one with `daypack memory new TITLE`")
    print_damaged(memories.list_memories(1).damaged)
    return 0


def _mention_set_aside(args: argparse.Namespace, *, is_empty: bool) -> bool:
    """Say that a repair set memories aside, so that a list without them is not taken for complete."""
    from daypack.history.home import find_home  # noqa: PLC0415 — only for lists
    from daypack.memory.store.salvage import kept_aside  # noqa: PLC0415

    kept = kept_aside(find_home(args.home, args.uid).store)
    if not kept.unowned and not (is_empty and (kept.records or kept.files)):
        return False
    missing = [f"{counted(kept.unowned, 'memory', 'memories')} without a known owner"] if kept.unowned else []
    missing += [f"{counted(kept.records, 'record')} in quarantine"] if kept.records else []
    missing += [f"a damaged store kept as {safe_line(kept.files[0])}"] if kept.files else []
    print_note(f"not listed, because the store was damaged: {', '.join(missing)}")
    print_note("  → restore a backup: `daypack backup --list`, then `daypack restore FILE --replace memory`")
    return True


def _show(memories: MemoryTools, args: argparse.Namespace) -> int:
    memory = _shown(memories, memories.get_memory(named_memory(memories, args)))
    page = _shown(memories, memories.list_entries(memory.memory_id, limit=_NEWEST))
    if args.json:
        print(json_text({"memory": memory, "newest": page.entries, "damaged": page.damaged}))
        return 0
    for label, value in _facts(memory):
        print(f"{label:<11} {safe_line(value)}")
    if page.entries:
        print("\nnewest entries")
    for entry in page.entries:
        print(f"  {colour(_when(entry), 'dim')}  {safe_line(entry.summary)}")
    if older := memory.stats.entries - len(page.entries):
        command = f"`daypack memory export {memory.memory_id[:8]}`"
        print_note(f"… {counted(older, 'older entry', 'older entries')} not shown; {command} writes all")
    print_damaged(page.damaged)
    return 0


def _facts(memory: Memory) -> Iterator[tuple[str, str]]:
    yield "memory", memory.memory_id
    yield "title", memory.title
    yield "type", memory.memory_type
    yield "description", memory.description or "–"
    yield "created", memory.created_at
    yield "entries", f"{memory.stats.entries:,}"
    yield "documents", f"{memory.stats.documents:,}"
    yield "bytes", f"{memory.stats.bytes:,}"


def _add(memories: MemoryTools, args: argparse.Namespace) -> int:
    memory_id = named_memory(memories, args) if args.memory is not None else ""
    text = read_text("-", "add").rstrip("\n") if args.text in (None, "-") else args.text
    memory_id = memory_id or named_memory(memories, args)  # after the text: without one, none is created
    about = About(session=args.within, role=args.role, author=args.author, at=args.at, tags=tuple(args.tag))
    added = memories.add_entry(memory_id, text, args.summary, about=about, client_key=args.client_key)
    added = _shown(memories, added)
    if args.json:
        print(json_text(added))
        return 0
    print(added.entry_id)
    title = safe_line(_shown(memories, memories.get_memory(memory_id)).title)
    print_note(f"already in {title}" if added.replayed else f"added to {title}; summary: {safe_line(added.summary)}")
    if args.memory is None and any(memory.title == text for memory in memories.memories()):
        print_note(f"a memory is called {safe_line(text)!r} too: `daypack memory add MEMORY TEXT` adds to it")
    for note in added.notes:
        print_note(f"  → {note}")
    return 0


def _search(memories: MemoryTools, args: argparse.Namespace) -> int:
    where = Where(
        since=args.since,
        until=args.until,
        tags=tuple(args.tag),
        role=args.role,
        author=args.author,
        session=args.within,
    )
    if not args.query:
        hint = "write words or a question after the memory"
        raise BadInput("no query", operation="memory search", place="arguments", hint=hint)
    memory_id = named_memory(memories, args)
    found = memories.search_memories(memory_id, " ".join(args.query), top_k=args.k, explain=True, where=where)
    found = _shown(memories, _own_matches(found, explain=args.explain))
    if args.json:
        print(json_text(found))
        return 0 if found.entries else 1
    shortened = [hit for hit in found.entries if not _print_hit(hit, () if args.full else args.query)]
    if not args.full and (shortened or found.best_context):
        print_note("  → --full prints whole entries and the best matching context document")
    if found.best_context and args.full:
        print(f"\nbest matching context document, {found.best_context_timestamp}\n{safe(found.best_context)}")
    for note in found.notes:
        print_note(f"  → {safe_line(note)}")
    print_damaged(found.damaged)
    return 0 if found.entries else 1


def _own_matches(found: SearchResult, *, explain: bool) -> SearchResult:
    """Return a result without single facts that were found more by the entries beside them than by their own text.

    In a session the message after a match is often the answer; facts of no session only happen to be neighbours.
    """
    kept = [hit for hit in found.entries if hit.session or not hit.score_parts or _matches_itself(hit.score_parts)]
    entries = tuple(hit if explain else replace(hit, score_parts=None) for hit in kept)
    return replace(found, entries=entries, count=len(entries))


def _matches_itself(parts: Mapping[str, float]) -> bool:
    return sum(parts.get(name, 0.0) for name in _OWN_PARTS) >= parts.get("near", 0.0)


def _print_hit(hit: Hit, words: Sequence[str]) -> bool:
    """Print a hit, shortened around these words; return True if it is printed in full."""
    who = " in ".join(filter(None, (_who(hit), hit.session)))
    print(f"{colour(hit.entry_id, 'cyan')}  {hit.score:.3f}  {colour(_when(hit), 'dim')}  {safe_line(who)}")
    text = _excerpt(hit.raw_entry, words) if words else hit.raw_entry
    print(f"  {safe(text).replace(chr(10), chr(10) + '  ')}")
    if hit.superseded_by:
        print(f"  superseded by {hit.superseded_by}")
    if hit.score_parts:
        print("  = " + " + ".join(f"{name} {value:.3f}" for name, value in hit.score_parts.items()))
    return text == hit.raw_entry


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return a text of a few lines as it is, of a longer one the part with most of these words, on one line."""
    if len(text) <= _EXCERPT_CHARS and text.count("\n") < _EXCERPT_LINES:
        return text
    wanted = {word.strip(".,;:!?").lower() for word in " ".join(words).split()}
    line, folded = " ".join(text.split()), " ".join(text.split()).lower()
    starts = range(0, max(1, len(line) - _EXCERPT_CHARS // 2), _EXCERPT_CHARS // 2)

    def count(start: int) -> int:
        return sum(word in folded[start : start + _EXCERPT_CHARS] for word in wanted)

    start = max(starts, key=lambda start: (count(start), -start))
    stop = start + _EXCERPT_CHARS
    return ("… " if start else "") + line[start:stop] + (" …" if stop < len(line) else "")


def _when(entry: Entry) -> str:
    return safe_line(entry.at or entry.created_at)


def _who(entry: Entry) -> str:
    return entry.author or entry.role or ""


def _context(memories: MemoryTools, args: argparse.Namespace) -> int:
    memory_id = named_memory(memories, args)
    if args.put is None:
        document = memories.get_context(memory_id)
    else:
        document = memories.put_context(memory_id, read_text(args.put, "put context"))
    _print_document(_shown(memories, document), args)
    return 0


def _print_document(document: ContextDocument, args: argparse.Namespace) -> None:
    if args.json:
        print(json_text(document))
    elif args.put is None:
        print(safe(document.content.rstrip("\n")))
        print_damaged(document.damaged)
    else:
        print_note(f"version {document.version}, {counted(len(document.content), 'character')}")


def _export(memories: Memories, args: argparse.Namespace) -> int:
    return export_archive(memories, named_memory(memories, args), args.file)


def _erase(memories: Memories, args: argparse.Namespace) -> int:
    if args.entry and (args.hide or args.restore):
        hint = "omit --hide and --restore"
        raise BadInput("only a whole memory can be hidden", operation="erase", place="--entry", hint=hint)
    if args.restore:
        memory = memories.restore_memory(args.memory)
        print(json_text(memory) if args.json else f"{memory.memory_id} is visible again")
        return 0
    memory = _shown(memories, memories.get_memory(named_memory(memories, args)))
    entry_id = _find_entry(memories, memory.memory_id, args.entry) if args.entry else None
    whole = f"{memory.memory_id} ({memory.title}, {memory.stats.entries} entries)"
    what = f"entry {entry_id}" if entry_id else whole
    if not args.yes:
        print_note(f"{safe_line(what)} would be {'hidden' if args.hide else 'erased permanently'}; confirm with --yes")
        return 0
    if args.hide:
        memories.delete_memory(memory.memory_id)
    elif entry_id:
        memories.erase_entry(memory.memory_id, entry_id)
    else:
        memories.erase_memory(memory.memory_id)
    print_note(f"{safe_line(what)} was {'hidden; show it again with --restore' if args.hide else 'erased'}")
    return 0


def _bind(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        if args.off:
            session.unbind_memory()
            print_note(f"{safe_line(args.session)} is no longer bound to a memory")
            return 0
        with open_memory(home=args.home, uid=args.uid, url=args.url, user=args.user) as memories:
            if args.memory is None and isinstance(memories, Memories):
                use_project(memories, args)
            memory_id = named_memory(memories, args)
        session.bind_memory(memory_id, user=args.user, url=args.url)
        print(json_text(session.meta["memory"]) if args.json else f"{safe_line(args.session)} is bound to {memory_id}")
    return 0


def _capture(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        added = session.capture(end=args.end)
        added = shown(session, added)
    print(json_text(added) if args.json else f"{counted(len(added), 'entry', 'entries')} added")
    return 0


# Actions that open what they need themselves.
_RUN_ALONE: dict[str, Callable[[argparse.Namespace], int]] = {
    "bind": _bind,
    "project": run_project,
    "capture": _capture,
}
# Actions that also work against a server, with --url.
_RUN: dict[str, Callable[[MemoryTools, argparse.Namespace], int]] = {
    "new": _new,
    "list": _list,
    "show": _show,
    "add": _add,
    "search": _search,
    "context": _context,
}
_RUN_HERE: dict[str, Callable[[Memories, argparse.Namespace], int]] = {
    "export": _export,
    "import": import_archive,
    "erase": _erase,
}
