"""The `daypack` command: imports only the module of the command that runs."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn, TextIO

from daypack import postgres
from daypack.cli.parser import EXIT_USAGE, PLACE_OPTIONS, Parser, first_positional, is_option
from daypack.cli.suggested import forget_place, repeat_place
from daypack.errors import BadInput, Damaged, DamageWarning, DaypackError, StorageFailed
from daypack.types.names import did_you_mean

GROUPS: dict[str, dict[str, str]] = {
    "Find what was said and done": {
        "find": "Search all sessions of all agents, by words, project, agent and time",
        "search": "Search everything said and done in a session",
        "log": "Show the newest messages or events; -f follows new ones",
        "session": "Create, list and show sessions",
        "recall": "Print omitted history by its id",
    },
    "Coding agents": {
        "setup": "Connect the coding agents on this machine, such as Claude Code and Codex; --remove takes it back",
        "import": "Import transcripts of other agents, one or with --all those of all agents",
        "hook": "Answer an event of a coding agent (its plug-in runs this)",
    },
    "Record and pack": {
        "append": "Append a message, standard input or a JSONL stream to a session",
        "prepare": "Prepare the next turn, record it and show what it contains",
        "pack": "Show what the next turn would contain; records nothing",
        "accept": "Append a model's reply and print the text for the user",
    },
    "Memory across sessions": {
        "memory": "Create, fill, search, bind and erase memories",
        "mcp": "Serve the memory tools to an agent over stdio, or install them",
        "serve": "Serve the memory tools over HTTP: MCP, a JSON API and the page",
        "token": "Create, list and revoke tokens of the HTTP server",
        "user": "List and show users, set their names and quotas",
        "audit": "Report duplicates, contradictions, secrets and other rot in a memory store",
        "audit-log": "Show who read, wrote or erased which memories; verify or cut that log",
    },
    "Control the window": {
        "budget": "Show or set the token budget of a session",
        "pin": "Pin a text to a session, list or remove pins",
        "rules": "List standing rules of the user; add, drop or pin one",
        "question": "List open questions; ask one, or record its answer",
        "switch": "Turn instruction blocks on or off",
        "child": "List, show and record child agents",
        "compact": "Compact older messages into CONTEXT.md",
        "compactions": "List compactions with coverage and losses",
        "undo": "Undo a compaction",
        "model": "Download, choose, list and test local models",
        "tiers": "Show the model's own memory: core, working, ephemeral",
        "check-reply": "Check a reply against the rules of the hybrid protocol",
    },
    "Inspect and prove": {
        "view": "Open a page that shows every call of a session: what the model saw, what was left out and why",
        "status": "Show window, cache, memory and last compaction of this project's newest session",
        "turns": "List the recorded turns with their ids, tokens and cache hits",
        "explain": "Explain why an item is in a turn or was omitted",
        "diff": "Compare two recorded turns",
        "replay": "Recreate a recorded turn and verify its bytes",
        "export": "Export a turn, task, session, tool call, review or handoff; --html writes the page as one file",
        "import-envelope": "Verify an exported envelope and add it to a session",
        "conform": "Check envelopes of any runtime against the rules of the model",
    },
    "Maintain": {
        "doctor": "Check sessions and memories for damage; --repair plans a repair",
        "rebuild": "Rebuild context/ from the logs",
        "index": "Build the search index of sessions",
        "erase": "Erase a secret, a message or a memory entry from every file (plan first)",
        "backup": "Back up sessions and memories into one verified file (plan first)",
        "restore": "Restore sessions and memories from a backup (plan first)",
        "copy": "Copy sessions and memories between a home and a database, or two of them (plan first)",
        "gc": "List removable files (nothing is deleted without --apply)",
        "lint": "Find duplicate, stale and overlong text in prompt files",
        "reflect": "Promote facts from sessions into MEMORY.md",
        "completion": "Print a completion script for bash, zsh or fish",
    },
}
MOST_USED = ("setup", "find", "log", "status", "import", "memory", "turns")
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
# Commands whose name is not a valid module name.
MODULES = {
    "import": "import_transcripts",
    "import-envelope": "import_envelope",
    "check-reply": "check_reply",
    "audit-log": "audit_log",
}
EXIT_FAILED, EXIT_DAMAGE, EXIT_INTERRUPTED = 1, 3, 130
# Of an unbuffered standard output, whose failed bytes are gone when it is asked again.
_OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_GLOBAL = ("-h", "--help", "--version", "--json", *PLACE_OPTIONS)


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success, 1 failure, 2 usage error, 3 damage found, 130 Ctrl-C.

    Nothing is left to be written when it returns: a full disk as standard output is reported here.
    """
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except OSError as error:
        code = _report_os_error(error)
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)
    return code


def _run(arguments: list[str]) -> int:
    before, postgres.first_patience = postgres.first_patience, postgres.SHORT_SECONDS  # a person or an agent waits
    try:
        return _run_command(arguments)
    except DaypackError as error:
        return _report(error)
    except SystemExit as left:  # of argparse: help was printed, or the arguments were refused
        return left.code if isinstance(left.code, int) else EXIT_FAILED
    finally:
        postgres.first_patience = before
        forget_place()


def _run_command(arguments: list[str]) -> int:
    at = first_positional(arguments)
    if at is None:
        return _print_overview(arguments)
    name = arguments.pop(at)
    if name == "help":
        return _run_command(["--help", *arguments])  # first: after -- it would be a text
    if name not in COMMANDS:
        _refuse_command(name, arguments[:at])
    module = import_module(f"daypack.cli.{MODULES.get(name, name)}")
    parser = Parser(prog=f"daypack {name}", description=module.__doc__)
    module.configure(parser)
    warnings.simplefilter("ignore", DamageWarning)  # commands report damage themselves
    args = parser.parse(arguments)
    repeat_place(args)
    if not getattr(args, "store", None):
        return module.run(args)
    from daypack.cli.options import with_store  # noqa: PLC0415 — few commands name a database

    with with_store(args):
        return module.run(args)


def _refuse_command(name: str, before: Sequence[str]) -> NoReturn:
    """Refuse an unknown command, or an unknown option before it whose value was taken for the command."""
    from daypack.cli.synonyms import suggest_command  # noqa: PLC0415 — only for errors

    _check_options(before)
    hint = f"{suggest_command(name, [*COMMANDS, 'help'])} `daypack help` lists the commands".strip()
    Parser(prog="daypack").refuse(f"unknown command {name!r}", hint)


def _check_options(arguments: Sequence[str]) -> None:
    """Refuse options without a command that are not options of all commands."""
    for name in (argument.partition("=")[0] for argument in arguments if is_option(argument)):
        if name not in _GLOBAL:
            hint = did_you_mean(name, _GLOBAL) or "options follow the command: `daypack COMMAND --help` lists them"
            Parser(prog="daypack").refuse(f"unknown option {name!r}", hint)


def _print_overview(arguments: Sequence[str]) -> int:
    _check_options(arguments)
    if "--version" in arguments:
        from daypack import __version__  # noqa: PLC0415 — only here

        print(f"daypack {__version__}")
        return 0
    is_error = "-h" not in arguments and "--help" not in arguments
    width = max(map(len, COMMANDS))
    lines = ["usage: daypack COMMAND …", "", "Run `daypack help COMMAND` for the options of a command."]
    most_used = {name: COMMANDS[name] for name in MOST_USED}
    for group, commands in {"Most used": most_used, **GROUPS}.items():
        lines += ["", f"{group}:", *(f"  {name:<{width}}  {summary}" for name, summary in commands.items())]
    print("\n".join(lines), file=sys.stderr if is_error else sys.stdout, flush=True)
    return EXIT_USAGE if is_error else 0


def _report(error: DaypackError) -> int:
    from daypack.cli.terminal import print_error  # noqa: PLC0415 — only for errors

    print_error(error)
    if isinstance(error, Damaged):
        return EXIT_DAMAGE
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


def _report_os_error(error: OSError) -> int:
    """Report a failed system call: of standard output (a full disk, a closed pipe), or of a file that it names."""
    try:
        sys.stdout.flush()
    except OSError as left:
        error = left
    else:
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            return _report(StorageFailed(error.strerror or str(error), place=os.fsdecode(error.filename or "")))
    _discard(sys.stdout)
    if isinstance(error, BrokenPipeError):  # the reader of our output has seen enough
        return 0
    hint = "the command may have done its work: check before you repeat it"
    return _report(StorageFailed(f"cannot write: {error.strerror or error}", place="standard output", hint=hint))


def _discard(stream: TextIO) -> None:
    """Drop what a stream could not write, so that the interpreter does not report it again at exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
