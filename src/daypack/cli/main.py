"""The `daypack` command: imports only the module of the command that runs."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from daypack.errors import BadInput, Damaged, DamageWarning, DaypackError

GROUPS: dict[str, dict[str, str]] = {
    "Record and pack": {
        "append": "Append a message, standard input or a JSONL stream to a session",
        "prepare": "Prepare the next turn, record it and show what it contains",
        "pack": "Show what the next turn would contain; records nothing",
        "accept": "Append a model's reply and print the text for the user",
        "log": "Show the newest messages or events; -f follows new ones",
        "search": "Search everything said and done in a session",
        "recall": "Print omitted history by its id",
        "session": "Create, list and show sessions",
        "import": "Import transcripts of other agents",
    },
    "Memory across sessions": {
        "memory": "Create, fill, search, bind and erase memories",
        "mcp": "Serve the memory tools to an agent over stdio, or install them",
        "serve": "Serve the memory tools over HTTP: MCP and a JSON API",
        "token": "Create, list and revoke tokens of the HTTP server",
        "user": "List users, show one, or set names and quotas",
    },
    "Control the window": {
        "budget": "Show or set the token budget of a session",
        "pin": "Pin a text to a session, list or remove pins",
        "rules": "List standing rules of the user; add, drop or pin one",
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
        "turns": "List the recorded turns with their ids, tokens and cache hits",
        "explain": "Explain why an item is in a turn or was omitted",
        "diff": "Compare two recorded turns",
        "replay": "Recreate a recorded turn and verify its bytes",
        "export": "Export a turn, task, session, tool call, review or handoff",
        "import-envelope": "Verify an exported envelope and add it to a session",
    },
    "Maintain": {
        "doctor": "Check sessions for damage and suggest repairs",
        "rebuild": "Rebuild context/ from the logs",
        "index": "Build the search index of sessions",
        "gc": "List removable files (nothing is deleted without --apply)",
        "lint": "Find duplicate, stale and overlong text in prompt files",
        "reflect": "Promote facts from sessions into MEMORY.md",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
# Commands whose name is not a valid module name.
MODULES = {"import": "import_transcripts", "import-envelope": "import_envelope", "check-reply": "check_reply"}
EXIT_FAILED, EXIT_USAGE, EXIT_DAMAGE = 1, 2, 3
_WITH_VALUE = ("--home", "--agent", "--uid")


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success, 1 failure, 2 usage error, 3 damage found."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except DaypackError as error:
        return _report(error)
    except BrokenPipeError:
        # The reader of our output is gone; keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    at = _command_position(arguments)
    if at is None:
        return _print_overview(arguments)
    name = arguments[at]
    if name not in COMMANDS:
        print(f"daypack: unknown command {name!r}; the commands are {', '.join(sorted(COMMANDS))}", file=sys.stderr)
        return EXIT_USAGE
    module = import_module(f"daypack.cli.{MODULES.get(name, name)}")
    parser = argparse.ArgumentParser(prog=f"daypack {name}", description=module.__doc__, allow_abbrev=False)
    module.configure(parser)
    warnings.simplefilter("ignore", DamageWarning)  # commands report damage themselves
    return module.run(_parse(parser, arguments[:at], arguments[at + 1 :]))


def _parse(parser: argparse.ArgumentParser, before: Sequence[str], after: Sequence[str]) -> argparse.Namespace:
    """Parse options before and after the command alike, in any order with positional arguments."""
    arguments = [*before, *after]
    if parser.get_default("actions"):  # options belong to the action: session list --home X
        at = _command_position(arguments)
        inner = _actions(parser).get(arguments[at]) if at is not None else None
        if at is None or inner is None:
            return parser.parse_args(arguments if at is None else [arguments.pop(at), *arguments])
        action = arguments.pop(at)
        return inner.parse_intermixed_args(arguments, argparse.Namespace(action=action))
    return parser.parse_intermixed_args(arguments)


def _actions(parser: argparse.ArgumentParser) -> "dict[str, argparse.ArgumentParser]":
    """Return the parsers of a command's actions; argparse has no public way to ask."""
    for action in parser._actions:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        choices = cast("object", action.choices)
        if isinstance(choices, dict):
            return cast("dict[str, argparse.ArgumentParser]", choices)
    return {}


def _command_position(arguments: Sequence[str]) -> int | None:
    skip = False
    for at, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument in _WITH_VALUE:
            skip = True
        elif not argument.startswith("-"):
            return at
    return None


def _print_overview(arguments: Sequence[str]) -> int:
    if "--version" in arguments:
        from daypack import __version__  # noqa: PLC0415 — only here

        print(f"daypack {__version__}")
        return 0
    is_error = "-h" not in arguments and "--help" not in arguments
    width = max(map(len, COMMANDS))
    lines = ["usage: daypack COMMAND …", "", "Run `daypack COMMAND --help` for the options of a command."]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<{width}}  {summary}" for name, summary in commands.items())]
    print("\n".join(lines), file=sys.stderr if is_error else sys.stdout, flush=True)
    return EXIT_USAGE if is_error else 0


def _report(error: DaypackError) -> int:
    from daypack.cli.terminal import print_error  # noqa: PLC0415 — only for errors

    print_error(error)
    if isinstance(error, Damaged):
        return EXIT_DAMAGE
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(run())
