"""Replies of a model as data: what stands in them, what must come out, and which rules they break."""

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from seed_snapshot import TEMPLATE

from daypack.protocol import SEPARATOR, Reply, Snapshot

SNAPSHOT: dict[str, Any] = json.loads(TEMPLATE)
RUNTIME: dict[str, Any] = SNAPSHOT["runtime"]
STAMP: dict[str, Any] = {"version": 2.3, "runtime": RUNTIME}
KEYS = ("version", "runtime", "memory", "capabilities", "active_task")
TIERS = ("core", "working", "ephemeral")


def compact(value: object) -> str:
    """The JSON of a value as a model would write it on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


GOOD = compact(SNAPSHOT)


def put(path: str, value: Any) -> dict[str, Any]:
    """The sample snapshot with one place changed: `put("memory.core.0.decay", 2)`."""
    whole = copy.deepcopy(SNAPSHOT)
    place, last = reach(whole, path)
    place[last] = value
    return whole


def drop(path: str) -> dict[str, Any]:
    """The sample snapshot without one place."""
    whole = copy.deepcopy(SNAPSHOT)
    place, last = reach(whole, path)
    del place[last]
    return whole


def reach(whole: dict[str, Any], path: str) -> tuple[Any, Any]:
    steps: list[Any] = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = whole
    for step in steps[:-1]:
        place = place[step]
    return place, steps[-1]


def block(name: str, decay: Any = 0.1, confidence: Any = 0.9, **fields: Any) -> dict[str, Any]:
    """A block as JSON; its content differs from that of every other name."""
    whole = {"id": name, "type": "note", "decay": decay, "confidence": confidence, "round": 1, "tags": ["t"]}
    return {**whole, "content": f"What {name} says.", **fields}


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot, read attribute by attribute, as plain values."""
    runtime = snapshot.runtime
    tiers = {
        tier: [
            {
                "id": entry.id,
                "type": entry.type,
                "decay": entry.decay,
                "confidence": entry.confidence,
                "round": entry.round,
                "tags": list(entry.tags),
                "content": entry.content,
                **entry.extra,
            }
            for entry in getattr(snapshot.memory, tier)
        ]
        for tier in TIERS
    }
    return {
        "version": snapshot.version,
        "runtime": runtime
        and {
            "round": runtime.round,
            "workspace": runtime.workspace,
            "datetime": runtime.datetime,
            "startup_at": runtime.startup_at,
        },
        **tiers,
        "capabilities": [{"name": entry.name, "scope": entry.scope} for entry in snapshot.capabilities],
        "active_task": snapshot.active_task,
        "extra": dict(snapshot.extra),
    }


def pictured(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The picture of the snapshot that a whole JSON object stands for."""
    return {
        "version": whole["version"],
        "runtime": whole["runtime"],
        **{tier: whole["memory"].get(tier, []) for tier in TIERS},
        "capabilities": whole.get("capabilities", []),
        "active_task": whole.get("active_task", ""),
        "extra": {key: value for key, value in whole.items() if key not in KEYS},
    }


PICTURE = pictured(SNAPSHOT)


def but(**parts: Any) -> dict[str, Any]:
    """The picture of the sample with some parts different."""
    return {**PICTURE, **parts}


class Case(NamedTuple):
    """One reply; `rules` is a list of ids without `S0-`, `snapshot` the parts of a picture that must be so, or None."""

    name: str
    reply: str
    text: str
    rules: str = ""
    snapshot: dict[str, Any] | None = None
    expected: dict[str, Any] | None = STAMP

    @property
    def broken(self) -> set[str]:
        """The ids of the broken rules."""
        return {rule if rule.startswith("X") else f"S0-{rule}" for rule in self.rules.split()}

    def __repr__(self) -> str:
        return self.name


def good(name: str, reply: str, text: str, rules: str = "", snapshot: dict[str, Any] | None = None) -> Case:
    """A reply out of which a snapshot comes, the sample unless another picture is given."""
    return Case(name, reply, text, rules, PICTURE if snapshot is None else snapshot)


def bad(name: str, reply: str, text: str, rules: str) -> Case:
    """A reply without a usable snapshot."""
    return Case(name, reply, text, rules)


def holding(name: str, whole: object, rules: str = "", **parts: Any) -> Case:
    """A well-formed reply around a JSON value; the picture differs from the sample in the given parts."""
    return Case(name, f"Done.\n{SEPARATOR}\n{compact(whole)}", "Done.\n", rules, but(**parts))


def broken_rules(reply: Reply) -> set[str]:
    return {violation.rule for violation in reply.violations}


def musts(reply: Reply) -> list[str]:
    return [violation.rule for violation in reply.violations if violation.level == "must"]


def apart(found: str, wanted: str) -> str:
    """Where two texts part, short enough to read even when they are megabytes long; "" when they are equal."""
    if found == wanted:
        return ""
    at = next((at for at, (one, two) in enumerate(zip(found, wanted, strict=False)) if one != two), -1)
    at = min(len(found), len(wanted)) if at < 0 else at
    around = slice(max(at - 20, 0), at + 60)
    return f"at {at}: {found[around]!r} instead of {wanted[around]!r}"
