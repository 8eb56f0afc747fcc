"""Print a script that completes commands, options and session names in bash, zsh or fish."""

import argparse
import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from daypack.cli.options import add_place
from daypack.cli.parser import Parser
from daypack.cli.terminal import json_text, safe_line
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.history.sessions import CHILD, Found

SHELLS = ("bash", "zsh", "fish")
_LISTS = ("sessions", "agents")
_SUMMARY_CHARS = 70
_WORDS = re.compile(r"[a-z]+(?:[-.|][a-z]+)*")  # a metavar such as on|off
# What a value is, by the name or the metavar of its argument. Other values are not completed.
_KINDS = {
    "session": "@session",
    "sessions": "@session",
    "SESSION": "@session",
    "agent": "@agent",
    "AGENT": "@agent",
    "file": "@file",
    "path": "@file",
    "FILE": "@file",
    "PATH": "@file",
    "FILE|JSON": "@file",
    "FILE|DIR": "@file",
    "FORMAT": "@file",  # or a path, if the format is recognised
    "workspace": "@folder",
    "DIR": "@folder",
}
_NOTHING = "-"


class Option(NamedTuple):
    """An option, with its short and its long name; `kind` is None if it takes no value."""

    names: tuple[str, ...]
    kind: str | None
    summary: str


class Spec(NamedTuple):
    """What follows a command, or an action such as `session list`; a kind that ends with + can be repeated."""

    name: str
    summary: str
    actions: tuple[str, ...]
    options: tuple[Option, ...]
    places: tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "what", choices=(*SHELLS, *_LISTS), help="the shell; sessions and agents print the names that its script offers"
    )
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print a script, or names one per line."""
    if args.what in SHELLS:
        script = write_script(args.what)
        print(json_text(script) if args.json else script.removesuffix("\n"))
        return 0
    home = find_home(args.home, args.uid)
    names = home.agents() if args.what == "agents" else _sessions(home, args.agent, any_agent=args.any_agent)
    if args.json:
        print(json_text(names))
    for name in () if args.json else names:
        print(safe_line(name))
    return 0


def _sessions(home: Home, agent: str, *, any_agent: bool) -> list[str]:
    """Return the names by which commands find sessions: of an agent, then of the others; not those of children."""
    names = home.list(agent)
    taken = set(names)
    for other in home.agents() if any_agent else ():
        if other != agent:
            names += [str(Found(other, name)) if name in taken else name for name in home.list(other)]
    return [name for name in names if CHILD not in name]


def write_script(shell: str) -> str:
    """Return the script for a shell."""
    with open(os.path.join(os.path.dirname(__file__), "shells", f"completion.{shell}"), encoding="utf-8") as file:
        text = file.read()
    for mark, value in _FILLED[shell](list(specs())).items():
        text = text.replace(f"@{mark}@", value)
    return text


# Reading the parsers


def specs() -> Iterator[Spec]:
    """Yield what every command and action accepts."""
    from daypack.cli.main import COMMANDS, MODULES  # noqa: PLC0415 — it imports this module by name

    for name, summary in COMMANDS.items():
        parser = Parser(prog=f"daypack {name}")
        import_module(f"daypack.cli.{MODULES.get(name, name)}").configure(parser)
        yield _read(name, summary, parser)
        for action, inner in parser.actions.items():
            yield _read(f"{name} {action}", inner.description or "", inner)
    yield Spec("help", "Show the options of a command", (), (), ("|".join(COMMANDS),))


def _read(name: str, summary: str, parser: Parser) -> Spec:
    options = dict.fromkeys(
        Option(tuple(action.option_strings), None if action.nargs == 0 else _kind(action), _shorten(action.help or ""))
        for each in (parser, *parser.actions.values())
        for action in each.arguments
        if action.option_strings
    )
    places = [
        _kind(action) + ("+" if action.nargs in ("+", "*") else "")
        for action in parser.arguments
        if not action.option_strings and not parser.actions
    ]
    return Spec(name, _shorten(summary), tuple(parser.actions), tuple(options), tuple(places))


def _kind(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if kind := _KINDS.get(metavar) or _KINDS.get(action.dest):
        return kind
    return metavar if _WORDS.fullmatch(metavar) else _NOTHING


def _shorten(summary: str) -> str:
    """Return the beginning of a help text, without its default and its further sentences."""
    text = re.split(r"; |, e\.g\. |\. | \(|\.$", summary)[0]
    return text if len(text) <= _SUMMARY_CHARS else f"{text[: _SUMMARY_CHARS - 1].rstrip()}…"


# Writing the tables of the shells


def _fill_bash(found: list[Spec]) -> dict[str, str]:
    rows: list[str] = []
    for spec in found:
        options = [name for option in spec.options for name in option.names]
        values = [f"{name}={option.kind}" for option in spec.options if option.kind for name in option.names]
        sets = {"options": options, "values": values, "places": spec.places, "actions": spec.actions}
        rows.append(_row(spec.name, {name: _quote(" ".join(items)) for name, items in sets.items()}))
    return {"TABLE": "\n".join(rows), "COMMANDS": " ".join(_commands(found))}


def _fill_zsh(found: list[Spec]) -> dict[str, str]:
    summaries = {spec.name: spec.summary for spec in found}

    def described(name: str, summary: str) -> str:
        return _quote(f"{name}:{summary}".replace("\\", "\\\\"))

    rows: list[str] = []
    for spec in found:
        options = [described(name, option.summary) for option in spec.options for name in option.names]
        values = [f"{name} {_quote(option.kind)}" for option in spec.options if option.kind for name in option.names]
        actions = [described(action, summaries[f"{spec.name} {action}"]) for action in spec.actions]
        sets = {"options": options, "values": values, "places": map(_quote, spec.places), "actions": actions}
        rows.append(_row(spec.name, {name: f"({' '.join(items)})" for name, items in sets.items()}))
    commands = [f"        {described(name, summary)}" for name, summary in _commands(found).items()]
    return {"TABLE": "\n".join(rows), "COMMANDS": "\n".join(commands)}


def _row(name: str, sets: dict[str, str]) -> str:
    return f"    {_quote(name)}) {' '.join(f'{variable}={value}' for variable, value in sets.items())} ;;"


def _fill_fish(found: list[Spec]) -> dict[str, str]:
    summaries = {spec.name: spec.summary for spec in found}
    lines = [_complete("", f"-a {name}", summary) for name, summary in _commands(found).items()]
    valued: list[str] = []
    for spec in found:
        lines += [_complete(spec.name, f"-a {name}", summaries[f"{spec.name} {name}"]) for name in spec.actions]
        for option in spec.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(_complete(spec.name, f"{names}{_fish_values(option.kind)}", option.summary))
        for number, kind in enumerate(spec.places):
            at = f"{number}{'+' if kind.endswith('+') else ''}"
            if kind.rstrip("+") != _NOTHING:
                lines.append(_complete(spec.name, _fish_values(kind.rstrip("+"), place=True).strip(), "", at))
        taking = [name for option in spec.options if option.kind for name in option.names]
        valued.append(f"        case {_quote(spec.name)}\n            echo {' '.join(taking)}")
    nouns = " ".join(spec.name for spec in found if spec.actions)
    return {"COMPLETE": "\n".join(lines), "VALUED": "\n".join(valued), "NOUNS": nouns}


def _complete(name: str, what: str, summary: str, at: str = "") -> str:
    condition = f"__daypack_at {_double(name)}{f' {at}' if at else ''}"
    about = f" -d {_double(summary)}" if summary else ""
    return f"complete -c daypack -n {_quote(condition)} {what}{about}"


def _fish_values(kind: str | None, *, place: bool = False) -> str:
    if kind is None:
        return ""
    if kind == "@file":
        return " -F" if place else " -rF"
    taken = "" if place else " -x"
    if kind == _NOTHING:
        return taken
    lists = {"@folder": "(__fish_complete_directories)"} | {
        f"@{name[:-1]}": f"(__daypack_names {name})" for name in _LISTS
    }
    return f"{taken} -a {_quote(lists.get(kind) or kind.replace('|', ' '))}"


def _commands(found: list[Spec]) -> dict[str, str]:
    return {spec.name: spec.summary for spec in found if " " not in spec.name}


def _quote(text: str) -> str:
    """Quote a text for bash and zsh, and for fish if it has no backslash."""
    return "'" + text.replace("'", "'\\''") + "'"


def _double(text: str) -> str:
    """Quote a text for fish with double quotes."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", text) + '"'


_FILLED: dict[str, Callable[[list[Spec]], dict[str, str]]] = {"bash": _fill_bash, "zsh": _fill_zsh, "fish": _fill_fish}
