"""A status as text: one line that fits a width, or a page."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from daypack.hooks.status.status import Cache, LastCompaction, Status, Window
from daypack.text.columns import age, columns, fit, short_count

_GAP = " · "
_GONE = 3  # the level of a part that is left out
_BAR_CELLS = (12, 6, 0)  # from wide to narrow; 0: only the number
_PAGE_CELLS = 30
_NAME_COLUMNS = 24
_FULL, _FILLING = 0.85, 0.6  # shares of a window from which on it is red, yellow
_GOOD_CACHE = 0.8
_RED, _YELLOW, _GREEN, _DIM = "31", "33", "32", "2"


class Look(NamedTuple):
    """What the reader can show. `now` is in seconds since 1970."""

    width: int
    colour: bool = False
    blocks: bool = True  # characters beyond ASCII
    now: float = 0.0

    def paint(self, text: str, code: str) -> str:
        """Return a text in a colour, if there are colours."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text

    def plain(self, text: str) -> str:
        """Return our own text in characters that can be shown."""
        return text if self.blocks else text.translate(_ASCII)


_ASCII = {
    ord("−"): "-",
    ord("█"): "#",
    ord("░"): "-",
    ord("·"): "|",
    ord("→"): "->",
    ord("…"): ".",
    ord("⚠"): "!",
    ord("–"): "-",
}


class _Part(NamedTuple):
    """A part of a line: its forms from long to short. `rank`: of the parts of a full line the highest goes first."""

    rank: int
    forms: Sequence[str]
    code: str = ""


def draw_line(status: Status, look: Look) -> str:
    """Return a status as one line of at most `look.width` columns.

    Where there is no room, parts are shortened and then left out, the least important first.
    """
    parts = [part for part in _parts(status, look) if part.forms]
    levels = [0] * len(parts)
    gap = look.plain(_GAP)
    for at, level in _steps(parts):
        texts = [
            look.plain(part.forms[min(level, len(part.forms) - 1)]) if level < _GONE else ""
            for part, level in zip(parts, levels, strict=True)
        ]
        shown = [text for text in texts if text]
        if sum(map(columns, shown)) + len(gap) * (len(shown) - 1) <= look.width:
            return gap.join(look.paint(text, part.code) for text, part in zip(texts, parts, strict=True) if text)
        levels[at] = level
    return fit(look.plain(min(parts).forms[-1]), look.width)


def _steps(parts: Sequence[_Part]) -> Iterator[tuple[int, int]]:
    """Yield which part gets how short, until one part is left; the last step is not carried out."""
    order = sorted(range(len(parts)), key=lambda at: -parts[at].rank)
    for level in (1, 2):
        yield from ((at, level) for at in order)
    yield from ((at, _GONE) for at in order)


def _parts(status: Status, look: Look) -> Iterator[_Part]:
    if status.problem:
        yield _Part(1, (f"⚠ {fit(status.problem, look.width)}", f"⚠ {fit(status.problem, 40)}", "⚠"), _RED)
    if status.failures:
        failed = _number(status.failures, "hook failure", "hook failures")
        yield _Part(2, (f"⚠ {failed}: `daypack doctor`", f"⚠ {failed}", "⚠ daypack doctor"), _RED)
    name = fit(status.project, _NAME_COLUMNS)
    yield _Part(3, (name, name, fit(name, 12)))
    if window := status.window:
        yield _Part(0, [_window_text(window, cells) for cells in _BAR_CELLS], _window_colour(window))
    if cache := status.cache:
        yield _cache_part(cache, look.now)
    yield _memory_part(status)
    if compaction := status.compaction:
        yield _compaction_part(compaction, look.now)
    if session := status.session:
        count = short_count(session.messages)
        noun = "message" if session.messages == 1 else "messages"
        yield _Part(7, (f"{count} {noun} recorded", f"{count} recorded"), _DIM)
    elif status.host_session:
        yield _Part(7, ("not recorded yet",), _DIM)
    else:
        yield _Part(7, ("no session yet",), _DIM)


def _window_text(window: Window, cells: int) -> str:
    if not window.size:
        return f"{short_count(window.used)} tokens"
    of = f"{window.share:.0%} of {short_count(window.size)}"
    return f"{_bar(window, cells)} {of}" if cells else f"{window.share:.0%}"


def _bar(window: Window, cells: int) -> str:
    filled = round(window.share * cells)
    filled = max(1, filled) if window.used else 0
    return "█" * filled + "░" * (cells - filled)


def _window_colour(window: Window) -> str:
    return _RED if window.share >= _FULL else _YELLOW if window.share >= _FILLING else _GREEN


def _cache_part(cache: Cache, now: float) -> _Part:
    share = "" if cache.hit_share is None else f" {cache.hit_share:.0%}"
    state = "" if cache.warm is None else " warm" if cache.warm else " cold"
    left = _minutes_left(cache, now)
    missed = f", {_number(cache.misses, 'miss', 'misses')}" if cache.misses else ""
    good = cache.warm is not False and (cache.hit_share is None or cache.hit_share >= _GOOD_CACHE)
    forms = (f"cache{share}{state}{left}{missed}", f"cache{share}{state}", f"cache{share or state}")
    return _Part(4, forms, _GREEN if good else _YELLOW)


def _minutes_left(cache: Cache, now: float) -> str:
    seconds = cache.expires_at - now
    return f" {max(1, round(seconds / 60))} min" if cache.warm and seconds > 0 else ""


def _memory_part(status: Status) -> _Part:
    if status.memory_off:
        return _Part(6, ("memory off",), _DIM)
    if status.memory is None:
        return _Part(6, () if status.problem else ("memory empty",), _DIM)
    if status.memory.entries is None:
        known = ("memory in a database", "memory") if status.memory.place else ("memory ?",)
        return _Part(5, known, _DIM)
    short = f"memory {short_count(status.memory.entries)}"
    return _Part(5, (_number(status.memory.entries, "memory entry", "memory entries"), short))


def _compaction_part(compaction: LastCompaction, now: float) -> _Part:
    since = age(compaction.at, now) if compaction.at else ""
    when = f"compacted {since} ago" if since else "compacted"
    dropped = _dropped(compaction)
    return _Part(6, (f"{when}: {dropped}" if dropped else when, when, "compacted"), _DIM)


def _dropped(compaction: LastCompaction) -> str:
    left = f"−{_number(compaction.left, 'message', 'messages')}" if compaction.left else ""
    tokens = max(0, compaction.before_tokens - compaction.after_tokens) if compaction.after_tokens else 0
    return ", ".join(filter(None, (left, f"−{short_count(tokens)} tokens" if tokens else "")))


def draw_page(status: Status, look: Look) -> list[str]:
    """Return a status as lines: a label and what is known, each at most `look.width` columns."""
    lines: list[str] = []
    for label, text, code in _rows(status, look):
        shown = look.plain(fit(text, max(20, look.width - 12)))
        lines.append(f"{look.paint(f'{label:<11}', _DIM)} {look.paint(shown, code)}")
    return lines


def _rows(status: Status, look: Look) -> Iterator[tuple[str, str, str]]:
    yield "project", f"{status.project}  {status.folder or status.key}", ""
    yield "session", _session_text(status, look.now), ""
    if status.session and status.session.title:
        yield "", status.session.title, _DIM
    if status.model or status.cost_usd is not None:
        cost = "" if status.cost_usd is None else f"${status.cost_usd:,.2f}"
        yield "model", ", ".join(filter(None, (status.model, cost))), ""
    if window := status.window:
        counts = f"{window.used:,} of {window.size:,} tokens" if window.size else f"{window.used:,} tokens"
        bar = f"{_bar(window, min(_PAGE_CELLS, max(6, look.width - 50)))}  {window.share:.0%}  " if window.size else ""
        yield "window", bar + counts, _window_colour(window) if window.size else ""
    yield "cache", _cache_text(status, look.now), ""
    yield "memory", _memory_text(status), ""
    yield from _compaction_rows(status, look.now)
    if status.failures:
        failed = _number(status.failures, "failure", "failures")
        yield "hooks", f"{failed} since {status.failures_since}; `daypack doctor` shows the newest", _RED
    if status.problem:
        yield "problem", status.problem, _RED


def _session_text(status: Status, now: float) -> str:
    if session := status.session:
        since = age(session.at, now) if session.at else ""
        recorded = _number(session.messages, "message", "messages")
        return f"{session.name} of {session.agent}, {recorded}" + (f", the last {since} ago" if since else "")
    return f"{status.host_session}, not recorded yet" if status.host_session else "none of this project is recorded yet"


def _cache_text(status: Status, now: float) -> str:
    cache = status.cache
    if cache is None:
        return "not reported by this agent" if status.session or status.host_session else "unknown before a session"
    known: list[str] = []
    if cache.hit_share is not None:
        known.append(f"{cache.hit_share:.0%} of the input")
    if cache.warm is not None:
        left = _minutes_left(cache, now)
        known.append(f"warm for{left} more" if left else "warm" if cache.warm else "cold")
    if cache.misses:
        cause = f" (the last: {cache.cause})" if cache.cause else ""
        known.append(_number(cache.misses, "miss", "misses") + cause)
    return ", ".join(known) or "not reported by this agent"


def _memory_text(status: Status) -> str:
    if status.memory_off:
        return "switched off by .daypack.toml"
    if status.memory is None:
        return "none yet; it is created with the first entry"
    entries = status.memory.entries
    place = f"in {status.memory.place}" if status.memory.place else ""
    counted = _number(entries, "entry", "entries") if entries is not None else ""
    known = " ".join(filter(None, (counted, place))) or "erased, hidden or not readable now"
    return f"{known}  {status.memory.memory_id}"


def _compaction_rows(status: Status, now: float) -> Iterator[tuple[str, str, str]]:
    compaction = status.compaction
    if compaction is None:
        yield "compaction", "none", ""
        return
    since = age(compaction.at, now) if compaction.at else ""
    how = f" ({compaction.trigger})" if compaction.trigger else ""
    when = f"{since} ago{how}" if since else f"at an unknown time{how}"
    what: list[str] = []
    if compaction.left:
        what.append(f"{_number(compaction.left, 'message', 'messages')} left the window")
    if compaction.after_tokens:
        what.append(f"{compaction.before_tokens:,} → {compaction.after_tokens:,} tokens")
    yield "compaction", ": ".join(filter(None, (when, "; ".join(what)))), ""


def _number(count: int, noun: str, plural: str) -> str:
    return f"{count:,} {noun if count == 1 else plural}"


def look_at(width: int, *, colour: bool, blocks: bool) -> Look:
    """Return what a reader can show now."""
    return Look(width, colour, blocks, time.time())
