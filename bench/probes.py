"""Extract the facts that a compaction must keep, by rules that are independent of daypack's own.

And the sessions it is looked for in: recorded ones, one after the other, or invented ones where there are none.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple, cast

import orjson

from bench.conversations import Conversation
from bench.transcripts import messages_of
from daypack.importers.formats import find_files, read_transcripts
from daypack.types.history import Message

_FILE_TOOLS = re.compile(
    r"(?:read|write|edit|multiedit|notebookread|notebookedit|glob|grep|ls|view|create|insert|open|apply_patch"
    r"|(?:read|write|edit|create|delete)_file|list_dir(?:ectory)?|search_files|read_many_files"
    r"|str_replace_(?:based_edit_tool|editor)|text_editor)"
)
_PATH_ARGUMENTS = re.compile(r"(?:notebook_|absolute_|file_?)?paths?|file(?:name)?|target_file")
_SHELLS = re.compile(r"bash|(?:local_)?shell|(?:exec|run|execute)_command")
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (\S.*?)\s*$", re.MULTILINE)
_READS = re.compile(r"(?:^|[;&|]\s*)(?:cat|head|tail|wc|rm|touch|nl|less)((?:\s+-\S+)*)\s+([^\s;&|<>\"'$*`(){}\\]+)")
_WRITES = re.compile(r"(?<=\s)>>?\s*([^\s;&|<>\"'$*`(){}\\]+)")

_URL = re.compile(r"https?://[^\s\"'<>`()\[\]{}\\|*$]+[^\s\"'<>`()\[\]{}\\|*$.,;:!?]")
_ID = re.compile(
    r"(?<![\w/.-])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}|[A-Z]{2,10}-\d{1,7}|[a-z]{2,8}_[A-Za-z0-9]*\d[A-Za-z0-9]{7,40})"
    r"(?![\w/-])"
)
_NUMBER = re.compile(r"(?<![\w.,:/#$-])\d+(?:[,.:]?\d+)+(?![\w/-]|[.,:]{1,2}\d)")
_GUTTER = re.compile(r"\s*(\d+)(?:→|\t)")  # before the lines of a file that a tool shows
LISTED = "line number"  # of a listing: it says nothing but where a line stood, so it is told apart
_KINDS = (("url", _URL), ("id", _ID), ("number", _NUMBER))
_PATH = re.compile(r"(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w")
_ENDS = re.compile(r"(?<=[.!?。])\s+(?=[A-Z\"'`*(\[])")
_WORD = re.compile(r"[^\W\d_]{2,}")
_BREAK, _QUOTE = re.compile(r"\\+[ntr]"), re.compile(r"\\+\"")
_SPACE = re.compile(r"\s+")
_LEAST_WORDS, _MOST_CHARS = 3, 500

_COMMON_SHARE = 0.02  # words in more of the messages than this are those of the language and of the tools
_TOKEN = re.compile(r"[A-Za-z0-9]+")
_LEAST_LETTERS, _LEAST_DIGITS = 5, 3
_SEED = 40


class Probe(NamedTuple):
    """A literal and the sentence it stands in."""

    kind: str
    literal: str
    sentence: str
    seq: int
    origin: str  # said, called or returned

    @property
    def query(self) -> str:
        """The sentence without the literal."""
        return " ".join(self.sentence.replace(self.literal, " ").split())

    def stands_in(self, text: str) -> bool:
        """Whether the literal is there, and not as a part of a longer one."""
        return stands(self.literal, plain(text))

    def is_told_in(self, text: str) -> bool:
        """Whether the whole sentence is there."""
        return squeeze(plain(self.sentence)) in squeeze(plain(text))


def touched_by_tools(messages: Iterable[Message]) -> dict[str, int]:
    """Return the paths in the arguments of file tools and in patches, each with the first message that has it."""
    found: dict[str, int] = {}
    for message in messages:
        for call in message.tool_calls:
            value = _decoded(call.arguments)
            paths = [one.strip() for text in strings_of(value) for one in _PATCHED.findall(text)]
            if _FILE_TOOLS.fullmatch(call.name.lower()) and isinstance(value, dict):
                fields = cast(dict[str, object], value)
                paths += [
                    text for name in filter(_PATH_ARGUMENTS.fullmatch, fields) for text in strings_of(fields[name])
                ]
            for path in filter(None, paths):
                found.setdefault(path, message.seq)
    return found


def touched_by_commands(messages: Iterable[Message]) -> dict[str, int]:
    """Return the paths that plain commands of one line read, write or remove."""
    found: dict[str, int] = {}
    for message in messages:
        for call in message.tool_calls:
            value = _decoded(call.arguments)
            if not _SHELLS.fullmatch(call.name.lower()) or not isinstance(value, dict):
                continue
            script = cast(dict[str, object], value).get("command")
            if not isinstance(script, str) or "\n" in script or "<<" in script:
                continue
            named = [path for _, path in _READS.findall(script)] + _WRITES.findall(script)
            for path in named:
                if ("/" in path or "." in path[1:]) and not path.startswith(("/dev/", "-", "&")):
                    found.setdefault(path, message.seq)
    return found


def draw(messages: Iterable[Message], each: int) -> tuple[list[Probe], int]:
    """Return `each` literals of every kind and origin, and how many there are to draw from."""
    pools: dict[tuple[str, str], dict[tuple[str, str], Probe]] = {}
    for message in messages:
        for origin, text in _texts(message):
            for probe in _probes(text, message.seq, origin):
                pool = pools.setdefault((probe.origin, probe.kind), {})
                pool.setdefault((probe.literal, probe.sentence), probe)
    chance = random.Random(40)
    drawn = [chance.sample(list(pool.values()), min(each, len(pool))) for _, pool in sorted(pools.items())]
    return [probe for some in drawn for probe in some], sum(map(len, pools.values()))


def literals_in(text: str) -> list[str]:
    """Return every address, path, id and number of a sentence."""
    found: list[str] = []
    for pattern in (_URL, _PATH, _ID, _NUMBER):
        found += (match[0] for match in pattern.finditer(text))
        text = pattern.sub(" ", text)
    return found


def stands(literal: str, text: str) -> bool:
    """Whether a text has a literal that is not a part of a longer word or number."""
    at = text.find(literal)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(literal) : at + len(literal) + 1]
        if not (before.isalnum() and literal[0].isalnum()) and not (after.isalnum() and literal[-1].isalnum()):
            return True
        at = text.find(literal, at + 1)
    return False


def plain(text: str) -> str:
    """Return a text with the breaks and quotes that JSON spells as two characters spelled as one."""
    return _QUOTE.sub('"', _BREAK.sub(" ", text)) if "\\" in text else text


def squeeze(text: str) -> str:
    """Return a text with single spaces."""
    return _SPACE.sub(" ", text).strip()


def words_of(message: Message) -> str:
    """Return everything a message says, its calls with the arguments decoded."""
    return "\n".join(text for _, text in _texts(message))


def strings_of(value: object) -> Iterator[str]:
    """Yield the strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in cast(dict[str, object], value).values():
            yield from strings_of(one)
    elif isinstance(value, list):
        for one in cast(list[object], value):
            yield from strings_of(one)


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    if message.role != "system":
        yield "returned" if message.role == "tool" else "said", message.text
    for call in message.tool_calls:
        for text in strings_of(_decoded(call.arguments)):
            yield "called", text


def _probes(text: str, seq: int, origin: str) -> Iterator[Probe]:
    for line in text.split("\n"):
        gutter = _GUTTER.match(line)
        if gutter and len(gutter[1]) > 1:
            yield from _asked(Probe(LISTED, gutter[1], line.strip(), seq, origin))
        for sentence in _ENDS.split((line[gutter.end() :] if gutter else line).strip()):
            rest = sentence if len(sentence) <= _MOST_CHARS else ""
            for kind, pattern in _KINDS:
                for match in pattern.finditer(rest):
                    yield from _asked(Probe(kind, match[0], sentence, seq, origin))
                rest = pattern.sub(" ", rest)


def _asked(probe: Probe) -> Iterator[Probe]:
    """Leave out what has no sentence to ask with."""
    if len(probe.sentence) <= _MOST_CHARS and len(_WORD.findall(probe.query)) >= _LEAST_WORDS:
        yield probe


def _decoded(arguments: str) -> Any:  # noqa: ANN401 — whatever JSON holds
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments


# Sessions


def real(kind: str, folder: str, least: int) -> tuple[list[dict[str, Any]], int]:
    """Return at least so many messages, and how many of them are as they were recorded."""
    recorded = [message for path in find_files(kind, folder) for message in _read(kind, path)]
    common = _common(recorded)
    messages: list[dict[str, Any]] = []
    for number in count():
        messages += (_varied(message, number, common) for message in recorded)
        if len(messages) >= least:
            return messages, len(recorded)
    raise AssertionError


def _read(kind: str, path: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file, each transcript in it as if it were a part of the same session."""
    for transcript in read_transcripts(kind, path):
        yield from map(_anew, messages_of(transcript, children=True))


def _anew(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without what ties it to the session it was recorded in."""
    return {name: value for name, value in message.items() if name not in ("client_key", "ts")}


def _common(messages: list[dict[str, Any]]) -> frozenset[str]:
    found: Counter[str] = Counter()
    for message in messages:
        found.update(set(_TOKEN.findall(orjson.dumps(message).decode())))
    return frozenset(word for word, times in found.items() if times > _COMMON_SHARE * len(messages))


def _varied(message: dict[str, Any], number: int, common: frozenset[str]) -> dict[str, Any]:
    """Return a message as another project would have it; the first time, as it is."""
    turn = _turning(number, common) if number else str
    calls = [_varied_call(call, number, turn) for call in message.get("tool_calls") or ()]
    varied = {**message, "content": _each(message["content"], turn)}
    if calls:
        varied["tool_calls"] = calls
    if "tool_call_id" in message:
        varied["tool_call_id"] = f"{message['tool_call_id']}.{number}"
    return varied


def _varied_call(call: dict[str, Any], number: int, turn: Callable[[str], str]) -> dict[str, Any]:
    try:
        arguments = orjson.dumps(_each(orjson.loads(call["arguments"]), turn)).decode() if number else call["arguments"]
    except orjson.JSONDecodeError:
        arguments = call["arguments"]
    return {**call, "id": f"{call['id']}.{number}", "arguments": arguments}


def _turning(number: int, common: frozenset[str]) -> Callable[[str], str]:
    """Return what replaces rarer words by others of their shape, and numbers by others of their length."""
    vowels, digits = "aeiou", "123456789"
    shifted = str.maketrans(
        vowels + vowels.upper() + digits,
        vowels[number:]
        + vowels[:number]
        + (vowels[number:] + vowels[:number]).upper()
        + digits[number:]
        + digits[:number],
    )

    def turn(token: re.Match[str]) -> str:
        word = token[0]
        least = _LEAST_DIGITS if word.isdecimal() else _LEAST_LETTERS
        if len(word) < least or word in common:
            return word
        # Of a digest only the digits: its letters are digits too.
        return word.translate(shifted) if word.isalpha() or word.isdecimal() else word.translate(_digits(shifted))

    return lambda text: _TOKEN.sub(turn, text)


def _digits(table: dict[int, int]) -> dict[int, int]:
    return {code: to for code, to in table.items() if chr(code).isdecimal()}


def _each(value: Any, turn: Callable[[str], str]) -> Any:  # noqa: ANN401 — whatever JSON holds
    """Return a JSON value with its strings replaced, but for those that say what the others are."""
    if isinstance(value, str):
        return turn(value)
    if isinstance(value, list):
        return [_each(one, turn) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {
            name: one if name in ("type", "meta", "signature") else _each(one, turn) for name, one in fields.items()
        }
    return value


def made_up(least: int) -> tuple[list[dict[str, Any]], int]:
    """Return so many invented messages: questions, files read, changed and patched, commands, and what came of it."""
    talk, chance = Conversation(), random.Random(_SEED)
    messages: list[dict[str, Any]] = []
    while len(messages) < least:
        messages.append({"role": "user", "content": f"{_invent(talk)}. Please mend {_path(talk, chance)}."})
        for _ in range(chance.randint(2, 8)):
            messages += _step(talk, chance, len(messages))
        messages.append({"role": "assistant", "content": f"Done. {_fact(talk, chance)}"})
    return messages, len(messages)


def _step(talk: Conversation, chance: random.Random, number: int) -> list[dict[str, Any]]:
    path = _path(talk, chance)
    name, arguments = chance.choice(
        [
            ("Read", {"file_path": path}),
            ("Edit", {"file_path": path, "old_string": _invent(talk), "new_string": _fact(talk, chance)}),
            ("Write", {"file_path": path, "content": _fact(talk, chance)}),
            ("Bash", {"command": f"pytest {path} | tail -n 20"}),
            ("apply_patch", {"input": f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"}),
        ]
    )
    call = {"id": f"call_{number}", "name": name, "arguments": orjson.dumps(arguments).decode()}
    output = "\n".join(_fact(talk, chance) for _ in range(chance.randint(1, 30)))
    return [
        {"role": "assistant", "content": _fact(talk, chance), "tool_calls": [call]},
        {"role": "tool", "content": output, "tool_call_id": call["id"]},
    ]


def _invent(talk: Conversation) -> str:
    return " ".join(str(next(talk.take(1))["content"]).split()[:12])


def _path(talk: Conversation, chance: random.Random) -> str:
    return f"/work/{'/'.join(_invent(talk).split()[-2:])}_{chance.randint(1, 99)}.py"


def _fact(talk: Conversation, chance: random.Random) -> str:
    value = chance.choice(
        (
            f"{chance.randint(10, 99_999):,}",
            f"{chance.getrandbits(32):08x}",
            f"https://example.org/{_invent(talk).split()[-1]}/{chance.randint(1, 999)}",
        )
    )
    return f"{_invent(talk)} is {value} now."
