"""Options that many commands share, and the session they name."""

import argparse
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from daypack.cli.suggested import place_given
from daypack.cli.terminal import print_note, safe_line, shell_word
from daypack.config import STORE_VARIABLES, Settings
from daypack.errors import BadConfig, BadInput
from daypack.history.home import find_home, refresh_folders
from daypack.history.layout import Home
from daypack.history.sessions import DEFAULT_AGENT, Found, find_anywhere, find_session
from daypack.system import start_detached

if TYPE_CHECKING:
    from daypack.memory.audit_log.record import Deed
    from daypack.session import Session

_Value = TypeVar("_Value")
_MOST_DIGITS = 6  # of an age


def add_place(
    parser: argparse.ArgumentParser, *, session: str | None = "name of the session", stored: bool = True
) -> None:
    """Add the session name, the options that locate it, and --json; `stored`: it may be in a database."""
    if session:
        parser.add_argument("session", help=session)
    parser.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    parser.add_argument(
        "--agent",
        action=_ChosenAgent,
        default=default_agent(),
        help="agent the session belongs to (default: DAYPACK_AGENT, else 'default' or any that has the session)",
    )
    parser.set_defaults(any_agent=not os.environ.get("DAYPACK_AGENT"), agent_given=False)
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    if stored:
        add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add --store, for a command that opens sessions or memories; `with_store` makes it the setting of the command."""
    parser.add_argument(
        "--store",
        metavar="URL",
        type=_database,
        help="database with sessions and memories, postgresql://USER@HOST/NAME (default: DAYPACK_STORE_URL, or [store] "
        "url in config.toml, else files of the home)",
    )


def _database(text: str) -> str:
    from daypack.postgres.address import check_address  # noqa: PLC0415 — few commands are given one

    try:
        return check_address(text, "--store")
    except BadConfig as error:
        raise argparse.ArgumentTypeError(f"{error.problem}: {error.hint}") from None


def store_words(args: argparse.Namespace) -> list[str]:
    """Return --store for a command to suggest; the address is left out if it has more than may be shown."""
    return [f"--store {shell_word(url)}"] if (url := place_given(args).get("--store")) else []


def place_words(args: argparse.Namespace) -> list[str]:
    """Return the options of `add_place` for a command to suggest, as they were given."""
    words: list[str] = []
    for option in ("home", "agent", "uid"):
        given = getattr(args, option)
        if given and not (option == "agent" and given == default_agent()):
            words += [f"--{option}", shell_word(given)]
    return words + store_words(args)


@contextmanager
def with_store(args: argparse.Namespace) -> Generator[None]:
    """Make the address of --store the setting of this process, and of those it starts; they never see it as a word."""
    url: str = getattr(args, "store", None) or ""
    if not url or url == os.environ.get(STORE_VARIABLES["url"]):
        yield
        return
    former = {name: os.environ.pop(name, None) for name in STORE_VARIABLES.values()}  # a replica of another database
    os.environ[STORE_VARIABLES["url"]] = url
    try:
        yield
    finally:
        for name, value in former.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class _ChosenAgent(argparse.Action):
    """Store --agent: sessions are then those of this agent only."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 — as in argparse
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        namespace.agent, namespace.any_agent, namespace.agent_given = values, False, True


def default_agent() -> str:
    """Return the agent of new sessions without --agent."""
    return os.environ.get("DAYPACK_AGENT") or DEFAULT_AGENT


def find_sessions(args: argparse.Namespace) -> Home:
    """Return the home of the arguments, for a command that reads the folders of many sessions: they are up to date."""
    home = find_home(args.home, args.uid)
    refresh_folders(home)
    return home


def existing_agent(home: Home, word: str) -> str:
    """Return the agent with sessions that a word means: its name, or the word for its program, as in `setup`."""
    from daypack.importers.places import stored_agent  # noqa: PLC0415 — few commands name one

    return stored_agent(word, home.agents())


def natural(text: str) -> int:
    """Parse an integer of 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of 0 or more, got {text!r}")
    return int(text)


def since(text: str) -> float:
    """Parse a time in the past to seconds since 1970: an age such as 7d, 12h or 2w, or an ISO 8601 date or time."""
    import time  # noqa: PLC0415 — few commands take one
    from datetime import datetime  # noqa: PLC0415

    units = {"h": 3_600, "d": 86_400, "w": 604_800}
    number, unit = text[:-1], text[-1:]
    if unit in units and number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
        return time.time() - int(number) * units[unit]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        problem = f"must be an age such as 7d or 12h, or a date such as 2026-11-01, got {text!r}"
        raise argparse.ArgumentTypeError(problem) from None


def tokens(text: str) -> int:
    """Parse a number of tokens: 8000, 8k, 1.5k, 1m."""
    from daypack.turn.budget import parse_tokens  # noqa: PLC0415 — few commands take one

    try:
        return parse_tokens(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number of tokens such as 8000 or 8k, got {text!r}") from None


def read_budget(text: str, place: str) -> int | dict[str, Any]:
    """Parse a budget: a number of tokens, or a JSON object."""
    from daypack.turn.budget import BUDGET_HINT, parse_budget  # noqa: PLC0415 — few commands take one

    try:
        return parse_budget(text)
    except ValueError as error:
        raise BadInput(str(error), operation="read budget", place=place, hint=BUDGET_HINT) from error


def find_named(args: argparse.Namespace, name: str) -> Found:
    """Return an existing session that was named exactly, or by the start of its name, and print which one it is.

    Without --agent it may be the session of any agent. AGENT/SESSION names it in any case.
    """
    home = find_home(args.home, args.uid)
    if "/" in name:
        agent, _, rest = name.rpartition("/")
        found = find_anywhere(home, args.agent, f"{existing_agent(home, agent)}/{rest}")
    elif getattr(args, "any_agent", False):
        found = find_anywhere(home, args.agent, name)
    else:
        agent = existing_agent(home, args.agent)
        found = Found(agent, find_session(home, agent, name))
    if found.agent != args.agent:
        print_note(f"session {safe_line(str(found))}")
    elif found.name != name:
        print_note(f"session {safe_line(found.name)}")
    return found


def find_name(args: argparse.Namespace, name: str) -> str:
    """Return the name of an existing session; from then on the arguments have its agent."""
    args.agent, found = find_named(args, name)
    args.any_agent = False
    return found


def open_named(args: argparse.Namespace, **settings: Unpack[Settings]) -> "Session":
    """Open the existing session that the arguments name; from then on they have its whole name."""
    from daypack.session import open_session  # noqa: PLC0415 — 60 ms that help and completion do without

    args.session = find_name(args, args.session)
    return open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, create=False, **settings)


def shown(session: "Session", value: _Value) -> _Value:
    """Return a value of a session as a command may print it: without secrets, unless redaction is off."""
    from daypack.session.shown import shown as shown_of_history  # noqa: PLC0415 — not for every command

    return shown_of_history(session.history, value)


def shown_of(home: Home, value: _Value) -> _Value:
    """Return a value about a whole home as a command may print it, by the setting of the home."""
    from daypack.memory.backend import open_backend  # noqa: PLC0415 — few commands need it

    if not open_backend(home).redacting:
        return value
    from daypack.text.redact.records import redact_any  # noqa: PLC0415

    return redact_any(value)


def record_deed(home: Home, deed: "Deed") -> bool:
    """Write a line to the audit log of the memories; return False if that is not possible now."""
    from daypack.memory.backend import open_backend  # noqa: PLC0415 — few commands need it

    backend = open_backend(home)
    try:
        return backend.audit is None or backend.audit.record(deed, durable=True)
    finally:
        backend.close()


def report_damage(session: "Session", reported: set[str]) -> None:
    """Print the damaged lines that were found, each once."""
    new = [text for text in map(str, session.damage) if text not in reported]
    for text in new:
        print_note(f"damaged: {safe_line(text)}")
    if new:
        print_note(f"  → all other lines were read; run `daypack doctor {shell_word(session.name)}`")
    reported.update(new)


def work_in_background(session: "Session", args: argparse.Namespace) -> None:
    """Let background work of a session run in processes of its own, because this one exits soon."""
    session.turns.compactions.start = lambda choice: _compact_in_background(args, choice)
    session.turns.inputs.history_search.index.start = lambda: index_in_background(args, [session.name])


def _compact_in_background(args: argparse.Namespace, choice: str) -> None:
    if choice == "none":
        _start_process(args, "compact", "--unread", sessions=[args.session])
        print_note("more messages left the window than a turn reads: the others are read in the background")
    else:
        _start_process(args, "compact", f"--model={choice}", sessions=[args.session])
        print_note("the window is filling up: compaction started in the background")


def index_in_background(args: argparse.Namespace, sessions: Sequence[str]) -> None:
    """Build the search indexes of sessions in a detached process."""
    _start_process(args, "index", sessions=sessions)
    names = " ".join(map(shell_word, sessions))
    print_note(f"the search index is being built in the background; `daypack index {names}` shows its progress")


def _start_process(args: argparse.Namespace, *command: str, sessions: Sequence[str]) -> None:
    """Start a command on sessions of the same place in a detached process, which outlives this one."""
    names = ("home", "uid") if getattr(args, "any_agent", False) else ("home", "agent", "uid")
    place = [f"--{name}={value}" for name in names if (value := getattr(args, name, None))]
    start_detached([*command, *place, "--", *sessions])
