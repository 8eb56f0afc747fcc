"""The arguments of a command: parsed in any order, and refused in two lines that name the nearest valid spelling."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from daypack.types.names import did_you_mean

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_USAGE = 2
# Options that every command understands, also before its name, and that take a value.
PLACE_OPTIONS = ("--home", "--agent", "--uid", "--store")
_HELP = ("-h", "--help")
_MARK = "\0"  # no argument of a process contains it


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are short: the problem, then the nearest spelling or where to read more."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 — those of argparse
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Refuse with a message of argparse."""
        self.refuse(message.removeprefix("argument "))

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        """Print a problem and a hint, and exit with the code of a usage error."""
        from daypack.cli.terminal import error_line, print_note  # noqa: PLC0415 — only for errors

        print_note(f"{self.prog}: {error_line(problem)}")
        print_note(f"  → {error_line(hint)}" if hint else f"  → see `{self.prog} --help`")
        self.exit(EXIT_USAGE)

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help; unlike argparse, fail if it cannot be written."""
        print(self.format_help(), end="", file=file)

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 — as in argparse
        choices = [str(choice) for choice in cast("Iterable[object] | None", action.choices) or ()]
        if choices and value not in choices:
            name = "/".join(action.option_strings) or str(action.metavar or action.dest)
            hint = f"{did_you_mean(str(value), choices)} the choices are {', '.join(choices)}".strip()
            self.refuse(f"{name}: invalid choice: {value!r}", hint)

    @property
    def actions(self) -> "dict[str, Parser]":
        """The parsers of a command's actions, as in `session list`; argparse has no public way to ask."""
        for action in self._actions:
            choices = cast("object", action.choices)
            if isinstance(choices, dict):
                return cast("dict[str, Parser]", choices)
        return {}

    @property
    def arguments(self) -> list[argparse.Action]:
        """The options and positional arguments, without those of the actions."""
        return [action for action in self._actions if not isinstance(cast("object", action.choices), dict)]

    @property
    def all_options(self) -> list[str]:
        """The options, and those of the actions."""
        own = [name for action in self._actions for name in action.option_strings]
        return list(dict.fromkeys([*own, *(name for parser in self.actions.values() for name in parser.all_options)]))

    @property
    def options_with_value(self) -> set[str]:
        """The options that take a value, those of the actions included: they may come before the action."""
        own = {name for action in self._actions if action.nargs != 0 for name in action.option_strings}
        return own.union(*(parser.options_with_value for parser in self.actions.values()))

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse options and positional arguments in any order; the action of a command may come first or later."""
        if not self.actions:
            return self._parse_all(arguments)
        at = first_positional(arguments, with_value=self.options_with_value)
        name = self.get_default("action") if at is None else arguments[at]
        if at is None and any(option in arguments for option in _HELP):
            self.parse_args(_HELP[:1])
        if name is None:
            self.refuse(f"action required: {_join_or(self.actions)}")
        if name not in self.actions:
            self._refuse_action(name, arguments[:at])
        others = list(arguments) if at is None else [*arguments[:at], *arguments[at + 1 :]]
        parsed = self.actions[name].parse(others)
        parsed.action = name
        return parsed

    def _refuse_action(self, name: str, before: Sequence[str]) -> NoReturn:
        """Refuse an unknown action, or an unknown option before it whose value was taken for the action."""
        from daypack.cli.synonyms import suggest_action  # noqa: PLC0415 — only for errors

        self._check_options(before, self.all_options)
        suggested = suggest_action(self.prog.removeprefix("daypack "), name, self.actions)
        self.refuse(f"unknown action {name!r}", f"{suggested} the actions are {', '.join(self.actions)}".strip())

    def _parse_all(self, arguments: Sequence[str]) -> argparse.Namespace:
        given = _marked(arguments)
        self._check_options(given, self.all_options)
        parsed, others = self.parse_known_intermixed_args(given)
        if others:
            self.refuse(f"unexpected argument {others[0].removeprefix(_MARK)!r}")
        return parsed

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:  # noqa: ANN401 — as in argparse
        return super()._get_value(action, arg_string.removeprefix(_MARK))  # pyright: ignore — not in its stubs

    def _check_options(self, arguments: Sequence[str], known: Collection[str]) -> None:
        """Refuse unknown options first: argparse would name the arguments that it misses because of them."""
        if any(argument in _HELP for argument in arguments):
            return
        for argument in arguments:
            name = argument.partition("=")[0]
            if not is_option(argument) or name in known or argument[:2] in known:
                continue
            hint = did_you_mean(name, known)
            if not hint:
                hint = f"see `{self.prog} --help`; put -- before a text that begins with -"
            self.refuse(f"unknown option {name!r}", hint)


def _marked(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without --, and those after it marked: argparse forgets them between its two passes."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:at], *(_MARK + argument for argument in arguments[at + 1 :])]


def is_option(argument: str) -> bool:
    """Return True if argparse takes an argument for an option: -x or --name, but not -, -5 or "- a text"."""
    return argument.startswith("-") and len(argument) > 1 and " " not in argument and not _is_number(argument)


def first_positional(arguments: Sequence[str], *, with_value: Collection[str] = PLACE_OPTIONS) -> int | None:
    """Return where the first argument is that is neither an option nor the value of one."""
    skip = False
    for at, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument in with_value:
            skip = True
        elif not argument.startswith("-"):
            return at
    return None


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdigit()


def _join_or(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
