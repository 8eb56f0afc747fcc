"""The rules of the protocol: a snapshot is read leniently, and every violation is reported with its rule.

A block that cannot be used is left out; the other blocks and the text of the reply are not affected.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, TypeGuard, cast

import msgspec
from msgspec import Struct, convert

from daypack.errors import BadInput
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import (
    POLICIES,
    PROTOCOL_VERSION,
    UNKNOWN,
    Block,
    Capability,
    Runtime,
    Snapshot,
    Tiers,
)

Expected = Snapshot | Runtime | Mapping[str, Any] | None
ASSUMED_CONFIDENCE = 0.5
ASSUMED_TYPE = "note"
_KNOWN = ("version", "runtime", "memory", "capabilities", "active_task")
_FIELDS = ("id", "type", "decay", "confidence", "round", "tags", "content")
_NUMBERS = {field: f"S0-R10.{number}" for number, field in enumerate(_FIELDS, 1)}
_SYSTEM = {"round": "S0-R8.2", "workspace": "S0-R8.3", "datetime": "S0-R8.4", "startup_at": "S0-R8.5"}
_COUNTS = ("round", "startup_at")
_CLOSE = 1e-9
_ANY_ROUND = 1 << 53  # the current round is unknown
_ABSENT: Any = object()
_FRACTION = re.compile(r"0(?:\.[0-9]{1,40})?|1(?:\.0{1,40})?")  # a number from 0 to 1 as JSON spells it
_MOST_BLOCKS = 1000  # of a tier that are read
_MOST_NAMED = 100  # capabilities that are read, unknown tiers that are named


_STAMPS = "give a Snapshot, a Runtime, or a mapping with round, workspace, datetime and startup_at"


class Violation(Struct, frozen=True):
    """A rule that a reply breaks: its id, what is wrong, and where. What "should" be so is no reason to refuse."""

    rule: str
    problem: str
    where: str = ""
    level: Literal["must", "should"] = "must"


def read_stamp(expected: Expected) -> tuple[float, Runtime] | None:
    """Return the version and the runtime fields a host sent; None: it does not say."""
    if expected is None:
        return None
    if isinstance(expected, Snapshot):
        return expected.version, expected.runtime
    if isinstance(expected, Runtime):
        return PROTOCOL_VERSION, expected
    try:
        fields = expected.get("runtime", expected)
        return convert(expected.get("version", PROTOCOL_VERSION), float), convert(fields, Runtime)
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise BadInput(str(error), operation="parse", place="expected", hint=_STAMPS) from error


def read_snapshot(value: Mapping[str, Any], stamp: tuple[float, Runtime] | None) -> tuple[Snapshot, list[Violation]]:
    """Return the snapshot of a JSON object, and where it departs from the rules."""
    violations: list[Violation] = []
    version, runtime = _system(value, stamp, violations)
    known = stamp is not None or not any(violation.rule == _SYSTEM["round"] for violation in violations)
    memory = _memory(value, runtime.round if known else _ANY_ROUND, violations)
    snapshot = Snapshot(
        version=version,
        runtime=runtime,
        memory=memory,
        capabilities=_capabilities(value, violations),
        active_task=_active_task(value, violations),
        extra={key: item for key, item in value.items() if key not in _KNOWN and key not in TIERS},
    )
    misplaced = (key for key in value if key in TIERS)
    violations += [
        Violation("S0-R9", f"{key} is a tier and belongs under memory; it is refused", key) for key in misplaced
    ]
    return snapshot, violations


def _system(
    value: Mapping[str, Any], stamp: tuple[float, Runtime] | None, violations: list[Violation]
) -> tuple[float, Runtime]:
    """Compare the fields the host owns with what it sent; the host's own count."""
    version = value.get("version", _ABSENT)
    sent = stamp[0] if stamp else PROTOCOL_VERSION
    if not _same(version, sent):
        violations.append(Violation("S0-R8.1", _differs(version, sent), "version"))
        if isinstance(version, str):
            violations.append(Violation("S0-T2", "the version is a number, not text", "version"))
    given: Any = value.get("runtime")
    fields = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    if stamp:
        violations += [
            Violation(rule, _differs(fields.get(name, _ABSENT), getattr(stamp[1], name)), f"runtime.{name}")
            for name, rule in _SYSTEM.items()
            if not _same(fields.get(name, _ABSENT), getattr(stamp[1], name))
        ]
        return stamp
    own: dict[str, Any] = {}
    for name, rule in _SYSTEM.items():
        found = fields.get(name, _ABSENT)
        usable = _is_count(found) if name in _COUNTS else isinstance(found, str)
        if usable:
            own[name] = int(found) if name in _COUNTS else found
        else:
            problem = "is missing" if found is _ABSENT else f"cannot be {_shown(found)}"
            violations.append(Violation(rule, problem, f"runtime.{name}"))
    return (float(version) if _is_number(version) else PROTOCOL_VERSION), msgspec.structs.replace(UNKNOWN, **own)


def _differs(found: object, sent: object) -> str:
    return "is missing" if found is _ABSENT else f"was {_shown(sent)} and came back as {_shown(found)}"


def _same(value: object, other: object) -> bool:
    """Whether two JSON values are the same: 2.30 is 2.3, and true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _memory(value: Mapping[str, Any], current: int, violations: list[Violation]) -> Tiers:
    memory = value.get("memory", _ABSENT)
    if not isinstance(memory, dict):
        problem = "is missing" if memory is _ABSENT else f"cannot be {_shown(memory)}"
        violations.append(Violation("S0-T7", f"{problem}; it is an object of three arrays", "memory"))
        if isinstance(memory, str):
            violations.append(Violation("S0-R7", "a story instead of a state", "memory"))
        return Tiers()
    tiers = cast(dict[str, Any], memory)
    violations += [Violation("S0-R9", "there is no such tier; what is in it is refused", f"memory.{_cut(key)}")
             for key in tiers if key not in TIERS]  # fmt: skip
    seen: dict[str, str] = {}
    return Tiers(*(_tier(tiers.get(tier, _ABSENT), tier, current, seen, violations) for tier in TIERS))


def _tier(
    given: object, tier: Tier, current: int, seen: dict[str, str], violations: list[Violation]
) -> tuple[Block, ...]:
    where = f"memory.{tier}"
    if not isinstance(given, list):
        if given is _ABSENT:
            violations.append(Violation("S0-T7", "is missing; it is taken as empty", where, "should"))
        else:
            violations.append(Violation("S0-T7", f"cannot be {_shown(given)}; it is an array", where))
        if isinstance(given, str):
            violations.append(Violation("S0-R7", "a story instead of a state", where))
        return ()
    blocks: list[Block] = []
    places: list[int] = []
    listed = cast(list[Any], given)
    if len(listed) > _MOST_BLOCKS:
        more = f"{len(listed) - _MOST_BLOCKS:,} blocks are refused: {_MOST_BLOCKS:,} of a tier are read"
        violations.append(Violation("S0-R10", more, where))
    for number, item in enumerate(listed[:_MOST_BLOCKS]):
        if block := _plain(item, current) or _block(item, f"{where}[{number}]", current, violations):
            blocks.append(block)
            places.append(number)
    _check_tier(blocks, places, tier, seen, violations)
    return tuple(blocks)


def _check_tier(
    blocks: Sequence[Block], places: Sequence[int], tier: Tier, seen: dict[str, str], violations: list[Violation]
) -> None:
    """Report weak blocks, repeated ids and contents, and bad order."""
    policy, before, unordered = POLICIES[tier], 2.0, False
    contents: dict[str, str] = {}
    for number, block in zip(places, blocks, strict=True):
        decay, confidence = block.decay, block.confidence
        if decay > policy.max_decay or confidence < policy.min_confidence:
            if block.deletes:
                continue
            where = f"memory.{tier}[{number}]"
            violations.append(Violation("S0-R13", f"should be left out: {policy.shortfall(block)[1]}", where, "should"))
        quality = 0.5 * (1 - decay) + 0.5 * confidence
        unordered = unordered or quality > before + _CLOSE
        before = quality
        if block.id in seen:
            problem = f"the id {_shown(block.id)} is already used at {seen[block.id]}"
            violations.append(Violation("S0-R14", problem, f"memory.{tier}[{number}].id", "should"))
        elif block.content in contents:
            problem = f"says the same as {_shown(contents[block.content])}"
            violations.append(Violation("S0-R15", problem, f"memory.{tier}[{number}].content", "should"))
        seen.setdefault(block.id, f"memory.{tier}[{number}]")
        contents.setdefault(block.content, block.id)
    if unordered:
        violations.append(Violation("S0-R15", "better blocks should come first", f"memory.{tier}", "should"))


def _plain(given: object, current: int) -> Block | None:
    """Return a block that is as it should be, fast; None: look closer."""
    try:
        if len(cast(dict[str, Any], given)) != len(_FIELDS):
            return None
        block = convert(given, Block)
    except (msgspec.ValidationError, TypeError):
        return None
    empty = not block.id.strip() or not block.content.strip() or not block.type.strip()
    return None if empty or block.round > current else _trimmed(block)


def _trimmed(block: Block) -> Block:
    """Return a block without white space around its tags and content; a tag of white space is none."""
    content, tags = block.content.strip(), _trim_tags(block.tags)
    if content == block.content and tags == block.tags:
        return block
    return msgspec.structs.replace(block, content=content, tags=tags)


def _trim_tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(trimmed for tag in tags if (trimmed := tag.strip()))


def _block(given: object, where: str, current: int, violations: list[Violation]) -> Block | None:
    """Return a block, mended; None when there is no id, content or decay to go by."""
    if isinstance(given, dict):
        return _mend(cast(dict[str, Any], given), where, current, violations)
    problem = f"a block cannot be {_shown(given)}; it is refused"
    violations += [
        Violation(rule, problem, where) for rule in (("S0-R7", "S0-R10") if isinstance(given, str) else ("S0-R10",))
    ]
    return None


def _mend(fields: Mapping[str, Any], where: str, current: int, violations: list[Violation]) -> Block | None:
    found = _Fields(fields, where, violations)
    identity = found.text("id")
    kind = found.text("type") or ASSUMED_TYPE
    decay = found.fraction("decay", "S0-R11")
    confidence = ASSUMED_CONFIDENCE
    if found.has("confidence"):
        confidence = found.fraction("confidence", "S0-R12")
    content = found.text("content")
    number = found.round(current)
    tags = found.tags()
    extra = {key: value for key, value in fields.items() if key not in _FIELDS}
    if identity is not None and (decay == 1 or confidence == 0):  # it is to go: no more has to be known of it
        gone = Block(identity, kind, 1 if decay is None else decay, confidence or 0, number, tags, content or "", extra)
        return _trimmed(gone)
    if identity is None or content is None or decay is None or confidence is None:
        lacking = [name for name, value in (("id", identity), ("content", content), ("decay", decay)) if value is None]
        problem = f"the block is refused: no usable {' and '.join(lacking) or 'confidence'}"
        violations.append(Violation("S0-R10", problem, where))
        return None
    return _trimmed(Block(identity, kind, decay, confidence, number, tags, content, extra))


class _Fields:
    """Reads the fields of an irregular block and reports every violation."""

    def __init__(self, fields: Mapping[str, Any], where: str, violations: list[Violation]) -> None:
        self._fields = fields
        self._where = where
        self._violations = violations

    def _report(self, name: str, problem: str, rule: str = "") -> None:
        self._violations.append(Violation(rule or _NUMBERS[name], problem, f"{self._where}.{name}"))

    def has(self, name: str) -> bool:
        """Return True if a field exists; report it if it does not."""
        if name in self._fields:
            return True
        self._report(name, "is missing" if name != "confidence" else f"is missing; {ASSUMED_CONFIDENCE} is assumed")
        return False

    def text(self, name: str) -> str | None:
        """Return a field with words in it; an id may be a number."""
        if not self.has(name):
            return None
        value = self._fields[name]
        if isinstance(value, str):
            if value and not value.isspace():
                return value
            self._report(name, "is empty")
            return None
        if name == "id" and _is_count(value):
            self._report(name, f"is the number {_shown(value)} instead of text; it is taken")
            return str(value)
        self._report(name, f"cannot be {_shown(value)}; it is text")
        return None

    def fraction(self, name: str, rule: str) -> float | None:
        """Return a number from 0 to 1; one that is written as text is taken."""
        if not self.has(name):
            return None
        value: Any = self._fields[name]
        if isinstance(value, str):
            if _FRACTION.fullmatch(value):
                self._report(name, f"is the text {_shown(value)} instead of a number; it is taken", rule)
                return float(value)
        elif _is_number(value) and 0 <= value <= 1:
            return float(value)
        self._report(name, f"is {_shown(value)}, not a number from 0 to 1", rule)
        return None

    def round(self, current: int) -> int:
        """Return the round a block is of; the current one when that is not to be had."""
        assumed = 0 if current == _ANY_ROUND else current
        if not self.has("round"):
            return assumed
        value = self._fields["round"]
        if not _is_count(value):
            self._report("round", f"cannot be {_shown(value)}; round {assumed} is assumed")
            return assumed
        if value > current:
            self._violations.append(_future(int(value), current, self._where))
        return int(value)

    def tags(self) -> tuple[str, ...]:
        """Return the tags that are text; a single text is accepted as a list."""
        if not self.has("tags"):
            return ()
        value: Any = self._fields["tags"]
        given = cast(list[Any], value) if isinstance(value, list) else [value]
        tags = tuple(tag for tag in given if isinstance(tag, str))
        if len(tags) < len(given) or not isinstance(value, list):
            self._report("tags", "is not an array of texts; what is text in it is taken")
        return tags


def _future(number: int, current: int, where: str) -> Violation:
    return Violation("S0-R10.5", f"round {number} is not yet: this is round {current}", f"{where}.round", "should")


def _capabilities(value: Mapping[str, Any], violations: list[Violation]) -> tuple[Capability, ...]:
    given: Any = value.get("capabilities", ())
    if not isinstance(given, (list, tuple)):
        violations.append(Violation("S0-T11", f"cannot be {_shown(given)}; it is an array", "capabilities", "should"))
        return ()
    found: list[Capability] = []
    for number, item in enumerate(cast(list[Any], given)[:_MOST_NAMED]):
        try:
            found.append(convert(item, Capability))
        except msgspec.ValidationError:
            where = f"capabilities[{number}]"
            violations.append(Violation("S0-T11", "has no name and scope; it is left out", where, "should"))
    return tuple(found)


def _active_task(value: Mapping[str, Any], violations: list[Violation]) -> str:
    given = value.get("active_task", "")
    if isinstance(given, str):
        return given
    violations.append(Violation("S0-T12", f"cannot be {_shown(given)}; it is text", "active_task", "should"))
    return ""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_count(value: object) -> TypeGuard[int | float]:
    return _is_number(value) and 0 <= value <= _ANY_ROUND and value == int(value)


def _shown(value: object) -> str:
    """Return a value as a message names it, short."""
    if isinstance(value, str):
        return repr(_cut(value))
    if isinstance(value, (list, dict)):
        return "an array" if isinstance(value, list) else "an object"
    return (
        {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)
    )


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
