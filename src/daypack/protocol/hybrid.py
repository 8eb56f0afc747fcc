"""A reply of the hybrid protocol: `parse` separates text and snapshot, `emit` joins them.

`parse` never fails on a model's output: it returns a text, a snapshot or None, and the violations.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, BadReply
from daypack.protocol.rule_texts import describe_rules
from daypack.protocol.rules import Expected, Violation, read_snapshot, read_stamp
from daypack.protocol.sections import SEPARATOR, find_section
from daypack.protocol.verdict import scan, well_formed
from daypack.types.snapshot import Snapshot

_ESCAPED = "\\u003c" + SEPARATOR[1:]  # the same to JSON, and no separator


class Reply(Struct, frozen=True):
    """The text of a reply for people, its snapshot for the host, and the rules it breaks.

    `cut` is the part that is no text: `text == reply[:cut[0]] + reply[cut[1]:]`; `raw` is that part as it came.
    `unsent` is the end of the text that a stream held back until it was known to be text.
    """

    text: str
    snapshot: Snapshot | None
    violations: tuple[Violation, ...] = ()
    unsent: str = ""
    cut: tuple[int, int] | None = None
    raw: str = ""

    @property
    def whole(self) -> str:
        """The reply as it came."""
        at = self.cut[0] if self.cut else 0
        return f"{self.text[:at]}{self.raw}{self.text[at:]}"


def parse(reply: str | bytes, *, expected: Expected = None, strict: bool = False, cut_off: bool = False) -> Reply:
    """Separate text and snapshot.

    `expected`: the version and runtime fields the host sent; the snapshot carries them whatever came back. `strict`
    raises BadReply if the reply breaks a mandatory rule; otherwise the reply is repaired and the violation reported.
    `cut_off`: the reply is known to be unfinished, so that a beginning of the separator at its end is no text.
    """
    stamp = read_stamp(expected)
    violations: list[Violation] = []
    whole, spelled = _read_text(reply)
    if not spelled:
        violations.append(Violation("S0-T13", "bytes that are no UTF-8 were replaced"))
    section = find_section(whole, cut_off=cut_off)
    text, snapshot, cut, raw = whole, None, None, ""
    if section is None:
        violations += _without_section(whole)
    else:
        cut = section.start, section.stop
        text, raw = whole[: cut[0]] + whole[cut[1] :], whole[cut[0] : cut[1]]
        violations += section.violations
        if section.value is not None:
            snapshot, more = read_snapshot(section.value, stamp)
            violations += more
        if (others := whole.count(SEPARATOR) - 1) > 0:
            problem = f"the separator occurs in {others} other place{'s' if others > 1 else ''}"
            violations.append(Violation("S0-R3", problem))
    made = Reply(text, snapshot, tuple(violations), "", cut, raw)
    if strict:
        insist(made)
    return made


def _read_text(reply: object) -> tuple[str, bool]:
    """Return a reply as text, and whether all of its bytes were UTF-8."""
    if isinstance(reply, str):
        return reply, True
    if isinstance(reply, (bytes, bytearray)):
        text = reply.decode("utf-8", "replace")
        return text, "\ufffd" not in text or text.encode() == reply
    problem, hint = f"it is {type(reply).__name__}", "give the text of the reply, or its bytes"
    raise BadInput(problem, operation="parse", place="reply", hint=hint)


_NEARLY = re.compile(r"[<＜]{2,4}\s{0,3}context\s{0,3}[>＞]{2,4}", re.IGNORECASE)


def _without_section(whole: str) -> list[Violation]:
    problem = "the reply has no context section"
    if SEPARATOR not in whole and (nearly := _NEARLY.search(whole)):
        problem += f"; {nearly[0]!r} is nearly the separator {SEPARATOR}"
    violations = [Violation("S0-R1", problem)]
    if SEPARATOR in whole:
        where = f"line {whole.count(chr(10), 0, whole.rfind(SEPARATOR)) + 1}"
        problem = "no JSON follows the separator; it is taken as quoted"
        violations += [Violation(rule, problem, where) for rule in ("S0-R4", "S0-R5")]
    return violations


def insist(reply: Reply) -> None:
    """Raise BadReply if a reply breaks a mandatory rule."""
    broken = [violation for violation in reply.violations if violation.level == "must"]
    if broken:
        first = broken[0]
        rules = describe_rules(violation.rule for violation in broken)
        problem = f"it breaks {rules}: {f'{first.where} ' if first.where else ''}{first.problem}"
        error = BadReply(
            problem,
            operation="parse",
            place="reply",
            hint="without strict the reply is repaired and the violations are reported",
        )
        error.violations, error.reply = reply.violations, reply
        raise error


def emit(text: str, snapshot: Snapshot | Mapping[str, Any]) -> str:
    """Put a text and a snapshot together, so that `parse` gives both back unchanged."""
    value = _read_object(snapshot)
    stamp = read_stamp(value) if "runtime" in value else None
    made, violations = read_snapshot(value, stamp)
    broken = [violation for violation in violations if violation.level == "must"]
    # What reads back as it is was accepted by `parse` before: a deleted block, for instance, has no content.
    if broken and made.as_object() != value:
        problem = "; ".join(
            f"{violation.where} {violation.problem}: {describe_rules([violation.rule])}" for violation in broken[:3]
        )
        raise BadInput(problem, operation="emit", place="snapshot", hint="see schemas/snapshot.json")
    spelled = well_formed(made.as_object())
    try:
        written = msgspec.json.encode(spelled).decode()
        same = scan(written, 0).value == spelled
    except (TypeError, ValueError, OverflowError, RecursionError):
        written, same = "", False
    if not same:
        hint = "use texts, finite numbers, lists and objects, at most 64 levels and 4 Mi characters"
        raise BadInput(
            "it cannot be written as JSON that reads the same", operation="emit", place="snapshot", hint=hint
        )
    return f"{text}{SEPARATOR}\n{written.replace(SEPARATOR, _ESCAPED)}"


def _read_object(snapshot: object) -> dict[str, Any]:
    if isinstance(snapshot, Snapshot):
        return snapshot.as_object()
    if isinstance(snapshot, Mapping):
        return dict(cast(Mapping[str, Any], snapshot))
    problem, hint = f"it is {type(snapshot).__name__}", "give a Snapshot or its JSON object"
    raise BadInput(problem, operation="emit", place="snapshot", hint=hint)
