"""Compaction: how much of a long session with tools is still reachable after it left the window, and at what cost."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from bench import data, probes
from bench.histories import Histories, append_recorded
from bench.measure import alternate, repeat, repeat_after, say
from bench.probes import Probe, made_up, real
from bench.table import Row, Section, compare
from daypack import Session
from daypack.text.tokens import counter_named
from daypack.turn.turn import Turn
from daypack.types.compaction import Compaction
from daypack.types.history import Message

MESSAGES = 2_000
TOKENS = 64_000
DRAWN = 200  # literals of each kind from each origin: said, called, returned; all there are when there are fewer
HITS = 5
ROUNDS = 5
_FORMAT = "claude-code"
_FOUND, _CACHED, _WINDOW, _SPEED = 0.8, 0.85, 0.5, 1.0
_TITLE = f"Compaction without a model, a session with tools under {TOKENS:,} tokens"


class _Call(NamedTuple):
    """The input of one call: tokens in all, and those that the call before began with too."""

    tokens: int
    cached: int


@dataclass
class _Lived:
    """What a session went through."""

    first: int  # messages of the first round, which is as it was recorded
    calls: list[tuple[int, _Call]] = field(default_factory=list[tuple[int, _Call]])  # with the messages so far
    epochs: Counter[str] = field(default_factory=Counter[str])
    windows: list[float] = field(default_factory=list[float])  # share of the window, right after each compaction
    others: list[float] = field(default_factory=list[float])  # the same, of epochs that only swap outputs out


def measure(histories: Histories) -> Section:
    """Live through a long session, and look for everything that left the window."""
    folder = data.find("transcripts", _FORMAT)
    messages, first = real(_FORMAT, folder, MESSAGES) if folder else made_up(MESSAGES)
    with histories.open("compaction", durability="os", workspace="") as session:
        lived = _live(session, messages, first)
        gone = tuple(session.messages(1, session.compactions[-1].through))
        rows = [_paths(session, gone), *_literals(session, gone), *_bullets(session, gone), *_windows(session, lived)]
    rows += [*_speed(histories, messages), *_cached(lived, len(messages))]
    return Section(_TITLE, tuple(rows), _notes(lived, is_real=folder is not None))


def _notes(lived: _Lived, *, is_real: bool) -> tuple[str, ...]:
    began = ", ".join(f"{count} {reason}" for reason, count in lived.epochs.most_common())
    source = (
        f"transcripts of {_FORMAT} (marot/spotter, MIT, read by path, no part of this project) one after the other:"
        f" {lived.first:,} messages,"
        if is_real
        else f"no data (name its folder in DAYPACK_DATA): invented messages, {lived.first:,} of them,"
    )
    return (
        source,
        "then again with other words, paths and numbers in the place of the rarer ones, up to the length; before every",
        f"message of the assistant a turn; {len(lived.windows)} compactions, epochs began: {began}",
        "paths and literals are found, and looked for, by rules of the benchmark, not by daypack's: of the literals",
        f"{DRAWN} at most of each kind, from what was said, arguments and results, in sentences with three more words;",
        "line numbers of listings are told apart and do not count towards the target by sentence",
        "in place: only the very sentence that a literal was drawn from counts, not any other with the same literal",
        "beside: the same messages, decoded from JSON",
    )


def _live(session: Session, messages: list[dict[str, Any]], first: int) -> _Lived:
    """Append the messages one by one; every one of the assistant is what a call answered."""
    say(f"compaction: a session of {len(messages):,} messages")
    lived = _Lived(first)
    before: list[bytes] = []
    weights: dict[bytes, int] = {}
    compacted, asked = 0, False
    for number, draft in enumerate(messages, 1):
        if draft["role"] == "assistant" and asked:
            turn = session.prepare(budget=TOKENS)
            before, call = _sent(turn, before, weights)
            lived.calls.append((number, call))
            if turn.new_epoch:
                lived.epochs[turn.new_epoch] += 1
                former, compacted = compacted, len(session.compactions)
                shares = lived.windows if compacted > former else lived.others
                shares.append(turn.tokens / TOKENS)
        append_recorded(session, [draft])
        asked = asked or draft["role"] == "user"
    return lived


def _sent(turn: Turn, before: list[bytes], weights: dict[bytes, int]) -> tuple[list[bytes], _Call]:
    """Return what a turn sends, and how much of it the turn before began with too."""
    sent = [orjson.dumps(message) for message in turn.messages("openai")]
    count = counter_named("o200k_base").count
    for one in sent:
        if one not in weights:
            weights[one] = count(one.decode())
    same = next((at for at, (one, other) in enumerate(zip(sent, before, strict=False)) if one != other), len(before))
    return sent, _Call(sum(weights[one] for one in sent), sum(weights[one] for one in sent[:same]))


# What is still at hand


def _paths(session: Session, gone: tuple[Message, ...]) -> Row:
    known, pack = _refs(session), _pack(session)
    tools, commands = probes.touched_by_tools(gone), probes.touched_by_commands(gone)
    lost = [path for path in tools if path not in known and not probes.stands(path, pack)]
    missed = [path for path in commands if path not in known and not probes.stands(path, pack)]
    for path in lost + missed:
        say(f"  not kept: {path}")
    name = f"paths of file tools in the pack or refs, {len(tools)}"
    ours, beside = _share(len(tools) - len(lost), len(tools)), _share(len(commands) - len(missed), len(commands))
    return Row(name, len(gone), ours, f"{beside} of {len(commands)} in commands", target="100 %", met=not lost)


def _refs(session: Session) -> set[str]:
    with open(session.history.layout.derived("refs"), "rb") as file:
        return {orjson.loads(line)["path"] for line in file}


def _pack(session: Session) -> str:
    """Return everything the next call would be sent."""
    turn = session.prepare(budget=TOKENS, dry_run=True)
    return probes.plain("\n".join(text for one in turn.messages("openai") for text in probes.strings_of(one)))


class _Asked(NamedTuple):
    """What became of one literal."""

    probe: Probe
    near: bool  # in the pack, or by the words around it
    searched: bool  # by them
    place: bool  # in the pack or by them, and in the very sentence
    itself: bool


def _literals(session: Session, gone: tuple[Message, ...]) -> Iterator[Row]:
    drawn, pool = probes.draw(gone, DRAWN)
    say(f"compaction: {len(drawn)} of {pool:,} literals")
    pack = _pack(session)
    every = [_ask(session, probe, pack) for probe in drawn]
    asked = [one for one in every if one.probe.kind != probes.LISTED]
    near = sum(one.near for one in asked) / len(asked)
    name = f"literals in the pack or by their sentence, k = {HITS}, {len(asked)}"
    place = _share(sum(one.place for one in asked), len(asked))
    yield Row(name, len(gone), f"{near:.1%}", f"{place} in place", target=f"≥ {_FOUND:.0%}", met=near >= _FOUND)
    yield Row("  by their sentence alone", ours=_share(sum(one.searched for one in asked), len(asked)))
    for group in dict.fromkeys((one.probe.origin, one.probe.kind) for one in every):
        some = [one for one in every if (one.probe.origin, one.probe.kind) == group]
        found, place = (_share(sum(getattr(one, name) for one in some), len(some)) for name in ("near", "place"))
        yield Row(f"  {group[1]}s {group[0]}, {len(some)}", ours=found, beside=f"{place} in place")
    itself = sum(one.itself for one in every)
    name = f"literals by themselves, {len(every)}"
    yield Row(name, len(gone), _share(itself, len(every)), target="100 %", met=itself == len(every))
    for one in every:
        if not (one.near and one.itself):
            told, probe = "by its sentence" if one.itself else "by itself", one.probe
            say(f"  not found {told}: {probe.kind} {probe.literal} in messages:{probe.seq}: {probe.query}")


def _ask(session: Session, probe: Probe, pack: str) -> _Asked:
    found = [hit.text for hit in session.search_history(probe.query, k=HITS)]
    place = probe.is_told_in(pack) or any(probe.is_told_in(text) for text in found)
    searched = any(probe.stands_in(text) for text in found)
    near = place or searched or probe.stands_in(pack)
    itself = any(probe.stands_in(hit.text) for hit in session.search_history(probe.literal, k=HITS))
    return _Asked(probe, near, searched, place, itself)


# Is it true


def _bullets(session: Session, gone: tuple[Message, ...]) -> Iterator[Row]:
    """Look at every record of every compaction, and at CONTEXT.md as it stands."""
    words = {message.seq: probes.squeeze(probes.words_of(message)) for message in gone}
    told = dict.fromkeys(one for compaction in session.compactions for one in _records(compaction))
    with open(session.history.layout.derived("context_doc"), encoding="utf-8") as file:
        shown = [line[2:].strip() for line in file if line.startswith("- ")]
    texts = {_bare(text) for text, _ in told}
    strange = [line for line in shown if not _heads(line) & texts]
    loose = [
        one for one in told if not all(probes.stands(it, _said(one[1], words)) for it in probes.literals_in(one[0]))
    ]
    other = [one for one in told if probes.squeeze(one[0]) not in _said(one[1], words)]
    for one in (*strange, *loose, *other):
        say(f"  not grounded: {one}")
    count = len(told)
    name = f"bullets with every literal in their message, {count}"
    yield Row(name, ours=_share(count - len(loose), count), target="100 %", met=not loose)
    name = "bullets word for word in their message"
    yield Row(name, ours=_share(count - len(other), count), target="100 %", met=not other and not strange)


def _heads(line: str) -> set[str]:
    """Return a line, and what is left of it without cause, cure and purpose, which follow a dash."""
    parts = line.split(" — ")
    return {_bare(" — ".join(parts[:count])) for count in range(1, len(parts) + 1)}


def _bare(text: str) -> str:
    """Return a bullet without its box and its full stop."""
    return probes.squeeze(text).removeprefix("[ ] ").rstrip(".")


def _records(compaction: Compaction) -> Iterator[tuple[str, str]]:
    records = compaction.records
    if records.task:
        yield records.task.text, records.task.source
    for decision in records.decisions:
        yield decision.decision, decision.source
    for one in (*records.facts, *records.todos):
        yield one.text, one.source
    for error in records.errors:
        yield error.error, error.source


def _said(source: str, words: dict[int, str]) -> str:
    first, *last = map(int, source.removeprefix("messages:").split("-"))
    return "\n".join(words.get(seq, "") for seq in range(first, (*last, first)[0] + 1))


# What it costs


def _windows(session: Session, lived: _Lived) -> Iterator[Row]:
    most = max(lived.windows)
    name = f"window right after each of {len(lived.windows)} compactions, fullest"
    yield Row(name, ours=f"{most:.1%}", target=f"≤ {_WINDOW:.0%}", met=most <= _WINDOW)
    name = f"  of {len(lived.others)} epochs that begin without one, fullest"
    yield Row(name, ours=f"{max(lived.others, default=0):.1%}")
    before = session.prepare(budget=TOKENS).tokens / TOKENS
    done = session.compact(model="none")
    after = session.prepare(budget=TOKENS).tokens / TOKENS
    name = f"window after a compaction by hand, before: {before:.1%}"
    yield Row(name, ours=f"{after:.1%}", target=f"≤ {_WINDOW:.0%}", met=done.changed and after <= _WINDOW)


def _speed(histories: Histories, messages: list[dict[str, Any]]) -> Iterator[Row]:
    """Compact everything at once, in a session that has not been read since it was opened."""
    with histories.open("compaction-whole", durability="os", workspace="") as session:
        append_recorded(session, messages)
        session.set_budget(TOKENS)
        path, folder = session.history.layout.messages, session.path
    with open(path, "rb") as file:
        lines = file.readlines()
    copies: list[Session] = []

    def copy() -> None:
        forget()
        shutil.copytree(folder, folder.with_name("compaction-copy"))
        copies.append(histories.open("compaction-copy", durability="os", workspace=""))

    def forget() -> None:
        while copies:
            copies.pop().close()
            shutil.rmtree(folder.with_name("compaction-copy"))

    def compact() -> None:
        if not copies[-1].compact(model="none").changed:
            raise RuntimeError("nothing was compacted")

    def decode() -> None:
        for line in lines:
            orjson.loads(line)

    say(f"compaction of {len(messages):,} messages at once: {ROUNDS} rounds")
    ours = repeat_after(copy, compact)
    series = alternate({"ours": ours, "plain": repeat(decode)}, rounds=ROUNDS, operations=1)
    forget()
    megabytes = os.path.getsize(path) / 1e6
    speed = megabytes / (series["ours"].middle("cpu") / 1e9)
    name = f"compaction of {megabytes:.1f} MB at once"
    yield Row(name, len(messages), f"{speed:.2f} MB/s CPU", target=f"≥ {_SPEED:.0f} MB/s CPU", met=speed >= _SPEED)
    yield compare("  beside decoding", series["ours"], series["plain"])


def _cached(lived: _Lived, count: int) -> Iterator[Row]:
    for length, told in ((lived.first, "as recorded"), (count, "all of it")):
        calls = [call for number, call in lived.calls if number <= length]
        share = sum(call.cached for call in calls) / sum(call.tokens for call in calls)
        name = f"cacheable share of all input, {told}, {len(calls)} calls"
        yield Row(name, length, f"{share:.3f}", target=f"≥ {_CACHED}", met=share >= _CACHED)


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"
