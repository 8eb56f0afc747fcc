"""List the turns of a session, the newest last: their ids, tokens, epochs, cache hits and what broke the cache."""

import argparse
import time
from collections.abc import Sequence

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.observed_turns import NONE, next_commands, percent, short_model
from daypack.cli.options import add_place, natural, open_named, report_damage, shown
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, shell_word, table, terminal_width
from daypack.importers.places import PLACES
from daypack.session import Session
from daypack.text.columns import AGE_COLUMNS, age, fit
from daypack.turn.evidence.observed.calls import Call, Compacted, newest_calls
from daypack.turn.evidence.turn_list import ListedTurn, newest_turns
from daypack.turn.evidence.words import EPOCHS, cause_words, program_name

_Entry = ListedTurn | Call | Compacted
_PIPE_COLUMNS = 1000  # where no terminal cuts a line


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "-n", type=natural, default=20, metavar="COUNT", help="number to show, 0 for all (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print one line per turn; exit code 3 if the log of events is damaged."""
    with open_named(args) as session:
        entries, earlier = _newest(session, args.n)
        if args.json:
            print(json_text([shown(session, entry) for entry in entries]))
        elif not entries:
            print_note(_no_turn(session))
        elif any(isinstance(entry, Call) for entry in entries):
            print("\n".join(_observed_lines(entries)))
            _print_observed_hints(args, entries, earlier=earlier)
        else:
            turns = [entry for entry in entries if isinstance(entry, ListedTurn)]
            print("\n".join(_lines(turns)))
            _print_hints(session.name, turns, earlier=earlier)
        report_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0


def _no_turn(session: Session) -> str:
    """Return why there is no turn: an agent's transcript may have no requests, and is not for `prepare`."""
    program = next((place.title for place in PLACES.values() if place.format == session.agent), "")
    if not program:
        return f"no turn is recorded yet; `daypack prepare {shell_word(session.name)}` records one"
    log = f"`daypack log {shell_word(f'{session.agent}/{session.name}')}` shows what was said"
    return f"no turns: the transcript of {program} has no request and no token count; {log}"


def _newest(session: Session, count: int) -> tuple[list[_Entry], bool]:
    """Return the newest turns, the oldest first, and whether there are earlier ones."""
    prepared = newest_turns(session.history)
    observed = newest_calls(session.history)
    found: list[_Entry] = []
    turn, entry = next(prepared, None), next(observed, None)
    shown_turns = 0
    while (turn or entry) and not (count and shown_turns >= count):
        if turn and (entry is None or turn.at >= entry.at):
            found.append(turn)
            turn, shown_turns = next(prepared, None), shown_turns + 1
        elif entry:
            found.append(entry)
            shown_turns += isinstance(entry, Call)
            entry = next(observed, None)
    return found[::-1], turn is not None or entry is not None


# Turns that daypack prepared


def _lines(turns: list[ListedTurn]) -> list[str]:
    head = ["turn", "age", "tokens", "budget", "expected cache", "reported cache", "epoch"]
    with_target = any(turn.target != "model" for turn in turns)
    if with_target:
        head.insert(-1, "for")
    now, rows = time.time(), list[list[str]]()
    for turn in turns:
        row = [turn.event, age(turn.at, now).rjust(AGE_COLUMNS), f"{turn.tokens:,}", _number(turn.budget_tokens)]
        row += [f"{turn.expected_cached_tokens:,}", _reported(turn)]
        row += [turn.target] if with_target else []
        rows.append([*row, _epoch(turn)])
    return table(head, rows, right=6)


def _number(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _reported(turn: ListedTurn) -> str:
    """Return the cache hit that the provider reported, out of the input that it counted."""
    if turn.input_tokens is None:
        return NONE
    return f"{_number(turn.cached_tokens)} of {turn.input_tokens:,}"


def _epoch(turn: ListedTurn) -> str:
    erased = f"; erased in part by {turn.erased}" if turn.erased else ""
    if turn.new_epoch is None:
        return f"continues {turn.epoch}{erased}"
    return f"new: {EPOCHS.get(turn.new_epoch, turn.new_epoch)}{erased}"


def _print_hints(session: str, turns: list[ListedTurn], *, earlier: bool) -> None:
    name = shell_word(session)
    if earlier:
        print_note("earlier turns are not shown; -n 0 shows all")
    whole = [turn.event for turn in turns if not turn.erased]
    if len(whole) < len(turns):
        print_note("turns that showed what was erased no longer verify: `replay` and `export` refuse them")
    if not whole:
        print_note(f"`daypack prepare {name}` records the next turn")
        return
    hint = f"`daypack explain {name} --event {whole[-1]}` lists what is in it"
    if len(turns) > 1 and not any(turn.erased for turn in turns[-2:]):
        hint += f"; `daypack diff {name}` compares the newest two"
    print_note(hint)


# Calls of other programs, and turns among them


def _observed_lines(entries: Sequence[_Entry]) -> list[str]:
    models = {entry.model for entry in entries if not isinstance(entry, Compacted)}
    programs = {_program(entry) for entry in entries if not isinstance(entry, Compacted)}
    head = ["turn", "age", "tokens", "cached", "", "new", "out"]
    head += (["by"] if len(programs) > 1 else []) + (["model"] if len(models) > 1 else []) + ["what changed"]
    now = time.time()
    rows: list[list[str]] = []
    for entry in entries:
        row = [entry.event, age(entry.at, now).rjust(AGE_COLUMNS)]
        if isinstance(entry, Compacted):
            rows.append([*row, *[""] * (len(head) - 2)])
            continue
        row += [_number(_tokens(entry)), *_cache(entry), _number(entry.output_tokens)]
        row += [_program(entry)] if len(programs) > 1 else []
        row += [short_model(entry.model)] if len(models) > 1 else []
        rows.append([*row, _change(entry)])
    first, *lines = table(head, rows, right=7)
    return [first, *(_line(line, entry) for line, entry in zip(lines, entries, strict=True))]


def _line(line: str, entry: _Entry) -> str:
    """Return a line of the table that fits the terminal, in the colour of what happened."""
    name = ""
    if isinstance(entry, Compacted):
        line, name = f"{line}  {_compacted(entry)}", "cyan"
    elif isinstance(entry, Call) and entry.cache_break:
        name = "yellow"
    line = fit(line, terminal_width(_PIPE_COLUMNS))
    return colour(line, name) if name else line


def _program(entry: ListedTurn | Call) -> str:
    return program_name(entry.program) if isinstance(entry, Call) else "daypack"


def _tokens(entry: ListedTurn | Call) -> int | None:
    return entry.input_tokens if isinstance(entry, Call) or entry.input_tokens is not None else entry.tokens


def _cache(entry: ListedTurn | Call) -> list[str]:
    """Return what was read from the cache, its share, and the tokens that were new to the provider."""
    if entry.cached_tokens is None or entry.input_tokens is None:
        return [NONE, "", NONE]
    share = percent(entry.cached_tokens, entry.input_tokens)
    return [f"{entry.cached_tokens:,}", share, f"{entry.input_tokens - entry.cached_tokens:,}"]


def _change(entry: ListedTurn | Call) -> str:
    if isinstance(entry, ListedTurn):
        return _epoch(entry)
    facts = [f"erased in part by {entry.erased}"] if entry.erased else []
    if entry.first:
        facts.insert(0, "first call")
    elif entry.cache_break:
        facts.insert(0, f"cache break: {cause_words(entry.cache_break)}")
    elif entry.added is not None:
        facts.insert(0, f"+{counted(entry.added, 'message')}")
    return "; ".join(facts)


def _compacted(entry: Compacted) -> str:
    sizes = ""
    if entry.before_tokens is not None:
        sizes = f" at {entry.before_tokens:,} tokens"
        if entry.after_tokens is not None:
            sizes = f": {entry.before_tokens:,} → {entry.after_tokens:,} tokens"
    trigger = f" ({safe_line(entry.trigger)})" if entry.trigger else ""
    return f"── compacted{trigger}{sizes} ──"


def _print_observed_hints(args: argparse.Namespace, entries: Sequence[_Entry], *, earlier: bool) -> None:
    calls = [entry for entry in entries if isinstance(entry, Call)]
    print_note(_sum(calls))
    if earlier:
        print_note("earlier turns are not shown; -n 0 shows all")
    unknown = [call for call in calls if call.content == "unknown"]
    if unknown:
        which = "these calls" if len(unknown) == len(calls) else "calls named msg-…"
        print_note(f"what {which} contained is unknown: {program_name(unknown[-1].program)} recorded only their usage")
    hints: list[str] = []
    if calls[-1].content == "recorded":
        hints.append(f"`daypack explain {{}} --event {calls[-1].event}` lists what is in it")
    if len(calls) > 1:
        hints.append("`daypack diff {}` compares the newest two")
    if hints:
        print_note(next_commands(args.session, *hints))


def _sum(calls: Sequence[Call]) -> str:
    """Return what the listed calls cost together."""
    known = [call for call in calls if call.input_tokens is not None]
    total, read = sum(call.input_tokens or 0 for call in known), sum(call.cached_tokens or 0 for call in known)
    breaks = [call.cache_break for call in calls if call.cache_break]
    models = {short_model(call.model) for call in calls if call.model}
    who = f"{counted(len(calls), 'call')}{f' of {models.pop()}' if len(models) == 1 else ''}"
    words = f"{who}: {total:,} tokens in, {percent(read, total)} from the cache"
    if breaks:
        lost = sum(found.lost_tokens or 0 for found in breaks)
        words += f"; {counted(len(breaks), 'cache break')}: {lost:,} tokens read again"
    return words
