"""The `daypack` command: finds the command group and imports only that one."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from daypack.errors import BadInput, Damaged, DamageWarning, DaypackError

COMMANDS = {
    "session": "make, list and show sessions",
    "append": "append text, standard input or a JSONL stream",
    "import": "import transcripts of other agents",
    "accept": "take in a model's reply and print the words for the user",
    "log": "show messages or events, follow them with -f",
    "pin": "pin a text, list pins, take one off",
    "child": "list, show and record child agents",
    "pack": "prepare the next turn and say what is in it",
    "replay": "make a recorded turn again and prove it",
    "diff": "say what changed between two turns",
    "explain": "say why an item is in a turn or not",
    "budget": "show or set how much a pack may hold",
    "switch": "switch blocks of instructions on or off",
    "tiers": "show the model's own memory in its three tiers",
    "check-reply": "say which rules of the hybrid protocol a reply breaks",
    "export": "export a turn, task, session, call, review or handoff",
    "import-envelope": "check and keep an envelope made elsewhere",
    "compact": "let older messages leave the window",
    "compactions": "list compactions, what they covered and lost",
    "undo": "take a compaction back",
    "recall": "bring back what left the window, by its id",
    "search": "search everything said and done in a session",
    "memory": "make, fill, search and erase memories across sessions",
    "mcp": "serve the memory tools to an agent, or install that",
    "serve": "serve the memory tools over HTTP: MCP and a JSON API",
    "token": "make, list and revoke tokens of the server",
    "user": "show or set a user of the memories and quotas",
    "model": "fetch, choose, list and try models",
    "rebuild": "compute context/ again from the logs",
    "gc": "say what may go, remove it, put sessions aside",
    "lint": "say what prompt files repeat or no longer need",
    "reflect": "promote what sessions proved into MEMORY.md",
    "doctor": "say what is wrong, where, and what to do",
}
# Where the command's word cannot be the module's.
MODULES = {"import": "import_transcripts", "import-envelope": "import_envelope", "check-reply": "check_reply"}
EXIT_FAILED, EXIT_USAGE, EXIT_DAMAGE = 1, 2, 3
_WITH_VALUE = ("--home", "--agent", "--uid")


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong use, 3 damage found."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except DaypackError as error:
        return _explain(error)
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    at = _command_at(arguments)
    if at is None:
        return _overview(arguments)
    name = arguments[at]
    if name not in COMMANDS:
        print(f"daypack: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return EXIT_USAGE
    module = import_module(f"daypack.cli.{MODULES.get(name, name)}")
    parser = argparse.ArgumentParser(prog=f"daypack {name}", description=module.__doc__, allow_abbrev=False)
    module.configure(parser)
    warnings.simplefilter("ignore", DamageWarning)  # commands tell of damage themselves
    return module.run(_parse(parser, arguments[:at], arguments[at + 1 :]))


def _parse(parser: argparse.ArgumentParser, before: Sequence[str], after: Sequence[str]) -> argparse.Namespace:
    """Parse options that stand before the command like those behind it, and text before or behind options."""
    arguments = [*before, *after]
    if parser.get_default("actions"):  # the place belongs to the action: session list --home X
        at = _command_at(arguments)
        inner = _actions(parser).get(arguments[at]) if at is not None else None
        if at is None or inner is None:
            return parser.parse_args(arguments if at is None else [arguments.pop(at), *arguments])
        action = arguments.pop(at)
        return inner.parse_intermixed_args(arguments, argparse.Namespace(action=action))
    return parser.parse_intermixed_args(arguments)


def _actions(parser: argparse.ArgumentParser) -> "dict[str, argparse.ArgumentParser]":
    """Return the parsers of a command's actions; argparse has no other way to ask."""
    for action in parser._actions:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        choices = cast("object", action.choices)
        if isinstance(choices, dict):
            return cast("dict[str, argparse.ArgumentParser]", choices)
    return {}


def _command_at(arguments: Sequence[str]) -> int | None:
    skip = False
    for at, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument in _WITH_VALUE:
            skip = True
        elif not argument.startswith("-"):
            return at
    return None


def _overview(arguments: Sequence[str]) -> int:
    if "--version" in arguments:
        from daypack import __version__  # noqa: PLC0415 — only here

        print(f"daypack {__version__}")
        return 0
    wrong = "-h" not in arguments and "--help" not in arguments
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    text = "\n".join(["usage: daypack COMMAND … (daypack COMMAND --help tells more)", "", *lines])
    print(text, file=sys.stderr if wrong else sys.stdout, flush=True)
    return EXIT_USAGE if wrong else 0


def _explain(error: DaypackError) -> int:
    from daypack.cli.terminal import safe_line  # noqa: PLC0415 — only when something went wrong

    where = f" [{error.place}]" if error.place else ""
    print(f"daypack: {safe_line(error.problem)}{safe_line(where)}", file=sys.stderr)
    if error.hint:
        print(f"  → {safe_line(error.hint)}", file=sys.stderr)
    if isinstance(error, Damaged):
        return EXIT_DAMAGE
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(run())
