"""A session as one HTML file: the page with the answers of its views inside, to be read without a server.

<script type="application/json" id="daypack-export">H4sIA…</script>

The text is base64 of gzip of {"texts":[…],"answers":{"call?agent=default&event=ev-7&session=work":{…}}}. A value that
occurs more than once is in `texts`, and {"$":3} stands for it: a window holds mostly what the one before it held.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from gzip import compress
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from daypack.errors import DaypackError
from daypack.memory.times import format_time, now_ms
from daypack.serve.page.assets import standalone
from daypack.serve.page.start import show_start
from daypack.serve.page.views import registry
from daypack.serve.page.views.asked import Asked, Viewer
from daypack.serve.page.views.opened import OpenedHome

CALLS = 200  # the newest, unless another number is asked for
MESSAGES = 10_000  # the newest, unless all calls are asked for
BLOCK = 200  # messages of one answer, as the page asks for them
_REQUEST_CHARS = 4_000_000  # of the raw requests; about 400 kB in the file
_SHARED_CHARS = 64  # shorter texts are repeated
_SHARED = "$"
_UNESCAPED = "!~*'()"  # by encodeURIComponent, besides letters, digits, "-", "_" and "."

Json: TypeAlias = "dict[str, Any] | list[Any] | str | int | float | None"
Progress = Callable[[int, int], None]


class Contents(NamedTuple):
    """What an export holds, and of how much."""

    calls: int
    of_calls: int
    messages: int
    of_messages: int
    requests: int  # calls with their raw requests
    texts: int  # read again by their ids: what was left out, and what the page cuts
    unreadable: int  # answers that could not be made


class _Answers:
    """Asks views about one session and keeps what they answer."""

    def __init__(self, home: OpenedHome, agent: str, session: str) -> None:
        self.kept: dict[str, Json] = {}
        self.unreadable = 0
        self._home = home
        self.name = agent, session
        self._place = {"agent": agent, "session": session}
        self._viewer = Viewer("", owner=True, writes=False)

    def ask(self, view: str, **arguments: object) -> Any:  # noqa: ANN401 — JSON of many shapes
        """Return and keep the answer of a view about the session; None if it fails."""
        texts = self._place | {name: str(value) for name, value in arguments.items()}
        try:
            answer = self.show(view, texts)
        except DaypackError:
            self.unreadable += 1
            return None
        self.keep(view, texts, answer)
        return answer

    def show(self, view: str, arguments: Mapping[str, str]) -> Any:  # noqa: ANN401
        """Return the answer of a view as plain values."""
        answer = registry.show(self._home, Asked(view, arguments, self._viewer))
        return msgspec.json.decode(msgspec.json.encode(answer))

    def keep(self, view: str, arguments: Mapping[str, str], answer: Json) -> None:
        """Keep an answer under the key by which the page asks for it."""
        self.kept[key_of(view, arguments)] = answer

    def start(self, calls: int, counts: Mapping[str, int]) -> None:
        """Keep the answers that are about more than the session, of which `calls` calls are included.

        `counts` are those that a list may not know yet.
        """
        start = show_start(self._home, self._viewer, "")
        exported = {
            "exported_at": format_time(now_ms()),
            "session": list(self.name),
            "calls": calls,
            "total_calls": counts["calls"],
        }
        self.keep("start", {}, {**start, "home": "", **exported})
        rows: list[dict[str, Any]] = []
        with suppress(DaypackError):
            listed = self.show("sessions", {})["sessions"]
            rows = [{**row, **counts} for row in listed if (row["agent"], row["session"]) == self.name]
        self.keep("sessions", {}, {"sessions": rows, "counting": False})

    def key(self, view: str, **arguments: object) -> str:
        """Return the key of an answer about the session."""
        return key_of(view, self._place | {name: str(value) for name, value in arguments.items()})

    def copy(self, view: str, arguments: Mapping[str, object], answer: Json) -> None:
        """Keep an answer about the session under other arguments too."""
        self.keep(view, self._place | {name: str(value) for name, value in arguments.items()}, answer)


def export_session(
    home: OpenedHome, agent: str, session: str, calls: int = CALLS, progress: Progress = lambda _done, _total: None
) -> tuple[bytes, Contents]:
    """Return a session as HTML, and what that contains; `calls` 0: all calls and messages."""
    answers = _Answers(home, agent, session)
    strip = answers.show("session", {"agent": agent, "session": session})  # raises if there is no such session
    answers.copy("session", {}, strip)
    event = strip["columns"].index("event")
    events = [row[event] for row in strip["calls"]]
    chosen = events[-calls:] if calls else events
    answers.start(len(chosen), {"calls": strip["total"], "compactions": len(strip["folds"])})
    texts = _add_calls(answers, chosen, progress)
    requests = _add_requests(answers, chosen)
    count = strip["facts"]["messages"]
    first = 0 if not calls else max(0, count - MESSAGES) // BLOCK * BLOCK
    texts += _add_messages(answers, first, count)
    _add_others(answers)
    title = strip["facts"]["title"] or session
    data = pack(answers.kept)
    contents = Contents(len(chosen), len(events), count - first, count, requests, texts, answers.unreadable)
    return standalone(data, f"{title} · daypack").encode(), contents


def key_of(view: str, arguments: Mapping[str, str]) -> str:
    """Return the key of an answer: the view and its arguments, sorted, as the page writes them."""
    query = "&".join(f"{name}={quote(arguments[name], safe=_UNESCAPED)}" for name in sorted(arguments))
    return f"{view}?{query}"


def _add_calls(answers: _Answers, events: list[str], progress: Progress) -> int:
    """Add calls, their differences to the calls before them, and the texts that the page asks for by their ids."""
    recalled: set[str] = set()
    whole: dict[tuple[str, int], Json] = {}
    texts = 0
    for number, event in enumerate(events):
        progress(number, len(events))
        call = answers.ask("call", event=event)
        if call is None:
            continue
        if call["previous"] is not None:
            difference = answers.ask("diff", before="", after=event)
            answers.copy("diff", {"before": call["previous"], "after": event}, difference)
        for item in call["items"]:
            if item["chars"] <= len(item["text"]):
                continue
            same = (item["ref"] or "", item["chars"])  # a message does not change
            if item["ref"] and same in whole:
                answers.copy("item", {"event": event, "item": item["id"]}, whole[same])
            else:
                whole[same] = answers.ask("item", event=event, item=item["id"])
                texts += 1
        for read in [omission["read"] for omission in call["omitted"]]:
            if read is not None and read not in recalled:
                recalled.add(read)
                answers.ask("recall", id=read)
                texts += 1
    return texts


def _add_requests(answers: _Answers, events: list[str]) -> int:
    """Add the raw requests of the newest calls, in all dialects, and return of how many calls.

    Each is a text of its own that repeats the whole window, so there is room for some only.
    """
    size = calls = 0
    for event in reversed(events):
        call = answers.kept.get(answers.key("call", event=event))
        dialects = call["dialects"] if isinstance(call, dict) else ()
        for dialect in dialects:
            request = answers.ask("request", event=event, dialect=dialect)
            size += len(request["text"]) if request else 0
        calls += bool(dialects)
        if size > _REQUEST_CHARS:
            break
    return calls


def _add_messages(answers: _Answers, first: int, count: int) -> int:
    texts = 0
    for start in range(first + 1, count + 1, BLOCK):
        page = answers.ask("messages", start=start, count=BLOCK)
        for message in (page or {"messages": ()})["messages"]:
            if message["chars"] > len(message["text"]):
                answers.ask("message", seq=message["seq"])
                texts += 1
    return texts


def _add_others(answers: _Answers) -> None:
    for compaction in (answers.ask("compactions") or {"compactions": ()})["compactions"]:
        answers.ask("compaction", id=compaction["id"])
    answers.ask("children")
    for row in (answers.ask("tiers") or {"rounds": ()})["rounds"]:
        answers.ask("tiers", round=row["round"])


def pack(answers: Mapping[str, Json]) -> str:
    """Return answers as base64 of gzip of JSON, with every repeated value once."""
    counts: Counter[bytes] = Counter()
    for answer in answers.values():
        _count(answer, counts, inside=False)
    texts: list[Json] = []
    places: dict[bytes, int] = {}

    def place_of(value: Json) -> int | None:
        digest = _digest(value)
        if counts[digest] < 2 and not _looks_shared(value):
            return None
        if digest not in places:
            places[digest] = len(texts)
            texts.append(value)
        return places[digest]

    def shared(value: Json, *, inside: bool) -> Json:
        if (_may_be_shared(value, inside=inside) or _looks_shared(value)) and (place := place_of(value)) is not None:
            return {_SHARED: place}
        if isinstance(value, dict):
            return {name: shared(inner, inside=True) for name, inner in value.items()}
        return [shared(inner, inside=False) for inner in value] if isinstance(value, list) else value

    packed = {key: shared(answer, inside=False) for key, answer in answers.items()}
    data = msgspec.json.encode({"texts": texts, "answers": packed})
    return b64encode(compress(data, 6, mtime=0)).decode()


def _count(value: Json, counts: "Counter[bytes]", *, inside: bool) -> None:
    if _may_be_shared(value, inside=inside):
        counts[_digest(value)] += 1
    if isinstance(value, dict):
        for inner in value.values():
            _count(inner, counts, inside=True)
    elif isinstance(value, list):
        for inner in value:
            _count(inner, counts, inside=False)


def _may_be_shared(value: Json, *, inside: bool) -> bool:
    """Return True for long texts, and for objects that are not a field of another: items, messages, whole answers."""
    return len(value) >= _SHARED_CHARS if isinstance(value, str) else isinstance(value, dict) and not inside


def _looks_shared(value: Json) -> bool:
    """Return True for an object of the data that has the form of a reference to a shared value."""
    return isinstance(value, dict) and list(value) == [_SHARED]


def _digest(value: Json) -> bytes:
    return blake2b(msgspec.json.encode(value), digest_size=16).digest()
