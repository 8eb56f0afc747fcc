"""Replies of good form whose snapshot breaks a rule in one of its fields."""

from typing import Any

from protocol.replies import GOOD, PICTURE, RUNTIME, SNAPSHOT, STAMP, Case, block, compact, drop, holding, put

from daypack.protocol import SEPARATOR as SEP

CORE = SNAPSHOT["memory"]["core"][0]
TEMP = SNAPSHOT["memory"]["ephemeral"][0]


def written(name: str, old: str, new: str, rules: str = "", **parts: Any) -> Case:
    """The sample with one piece of its JSON written differently."""
    assert old in GOOD
    return Case(name, f"Done.\n{SEP}\n{GOOD.replace(old, new, 1)}", "Done.\n", rules, {**PICTURE, **parts})


def alone(name: str, whole: dict[str, Any], rules: str, **parts: Any) -> Case:
    """A snapshot that is judged without knowing what the host sent."""
    return Case(name, f"Done.\n{SEP}\n{compact(whole)}", "Done.\n", rules, parts, None)


def core(name: str, changes: dict[str, Any], rules: str = "", kept: dict[str, Any] | None = None) -> Case:
    """The core block of the sample, changed; `kept` is what becomes of it, or None when it is refused (R10)."""
    rules = f"{rules} R10" if kept is None else rules
    return holding(
        name, put("memory.core.0", {**CORE, **changes}), rules, core=[] if kept is None else [{**CORE, **kept}]
    )


def tier(name: str, blocks: list[Any], rules: str = "", kept: list[Any] | None = None) -> Case:
    """A core tier, and what becomes of it."""
    return holding(name, put("memory.core", blocks), rules, core=blocks if kept is None else kept)


SYSTEM = [
    holding("another version", put("version", 2.4), "R8.1"),
    holding("another round", put("runtime.round", 2), "R8.2"),
    holding("another workspace", put("runtime.workspace", "/workspace/path"), "R8.3"),
    holding("another time", put("runtime.datetime", "2026-02-25T10:00:00Z"), "R8.4"),
    holding("another start", put("runtime.startup_at", 1700000000), "R8.5"),
    holding("no version", drop("version"), "R8.1"),
    holding("no round", drop("runtime.round"), "R8.2"),
    holding("no workspace", drop("runtime.workspace"), "R8.3"),
    holding("no time", drop("runtime.datetime"), "R8.4"),
    holding("no start", drop("runtime.startup_at"), "R8.5"),
    holding("no runtime", drop("runtime"), "R8.2 R8.3 R8.4 R8.5"),
    holding("a runtime that is a string", put("runtime", "round 1"), "R8.2 R8.3 R8.4 R8.5"),
    holding("a runtime that is null", put("runtime", None), "R8.2 R8.3 R8.4 R8.5"),
    holding("a version that is a string", put("version", "2.3"), "R8.1 T2"),
    holding("a version that is null", put("version", None), "R8.1"),
    holding("a round that is true", put("runtime.round", True), "R8.2"),
    holding("a round that is a string", put("runtime.round", "1"), "R8.2"),
    holding("a start that is a string", put("runtime.startup_at", "1700000000000"), "R8.5"),
    holding("a workspace that is a number", put("runtime.workspace", 1), "R8.3"),
    written("2.30", '"version":2.3', '"version":2.30'),
    written("2.3e0", '"version":2.3', '"version":2.3e0'),
    written("0.23E+1", '"version":2.3', '"version":0.23E+1'),
    written("round 1.0", '"round":1', '"round":1.0'),
    written("a start with an exponent", "1700000000000", "1.7e12"),
    written("a workspace with escapes", '"/workspace/path/"', '"\\/workspace\\u002fpath\\/"'),
    written("a version that differs in the last digit", '"version":2.3', '"version":2.3000000000000003', "R8.1"),
    alone("no version, nothing expected", drop("version"), "R8.1", core=[CORE]),
    alone("version 2.4, nothing expected", put("version", 2.4), "R8.1", core=[CORE]),
    alone("a version as a string, nothing expected", put("version", "2.3"), "R8.1 T2", core=[CORE]),
    alone("no runtime, nothing expected", drop("runtime"), "R8.2 R8.3 R8.4 R8.5", core=[CORE]),
    alone("no start, nothing expected", drop("runtime.startup_at"), "R8.5", core=[CORE]),
    alone("a round as a string, nothing expected", put("runtime.round", "1"), "R8.2", core=[CORE]),
    alone("another round, nothing expected", put("runtime.round", 7), "", runtime={**RUNTIME, "round": 7}),
    holding(
        "an empty object",
        {},
        "R8.1 R8.2 R8.3 R8.4 R8.5 T7",
        core=[],
        working=[],
        ephemeral=[],
        capabilities=[],
        active_task="",
    ),
]

FIELDS = [
    holding("no id", drop("memory.core.0.id"), "R10.1 R10", core=[]),
    holding("no type", drop("memory.core.0.type"), "R10.2", core=[{**CORE, "type": "note"}]),
    holding("no decay", drop("memory.core.0.decay"), "R10.3 R10", core=[]),
    holding("no confidence", drop("memory.ephemeral.0.confidence"), "R10.4", ephemeral=[{**TEMP, "confidence": 0.5}]),
    holding("no round in a block", drop("memory.core.0.round"), "R10.5", core=[CORE]),
    holding("no tags", drop("memory.core.0.tags"), "R10.6", core=[{**CORE, "tags": []}]),
    holding("no content", drop("memory.core.0.content"), "R10.7 R10", core=[]),
    holding("a block of nothing", put("memory.core.0", {}), "R10 R10.1 R10.2 R10.3 R10.4 R10.5 R10.6 R10.7", core=[]),
    core("an id that is a number", {"id": 7}, "R10.1", {"id": "7"}),
    core("an id that is an object", {"id": {}}, "R10.1"),
    core("an id of blanks", {"id": " \n"}, "R10.1"),
    core("an id that is empty", {"id": ""}, "R10.1"),
    core("content that is a list", {"content": ["a"]}, "R10.7"),
    core("content that is null", {"content": None}, "R10.7"),
    core("a type that is a number", {"type": 7}, "R10.2", {"type": "note"}),
    core("tags with numbers among them", {"tags": ["a", 1, None]}, "R10.6", {"tags": ["a"]}),
    core("a round of -1", {"round": -1}, "R10.5", {}),
    core("a round of 0.5", {"round": 0.5}, "R10.5", {}),
    core("a round of true", {"round": True}, "R10.5", {}),
    core("a round in words", {"round": "one"}, "R10.5", {}),
    core("a round of 1.0", {"round": 1.0}, "", {}),
    core("a round of 0", {"round": 0}, "", {"round": 0}),
    core("a round that has not come yet", {"round": 9}, "R10.5", {"round": 9}),
    core("decay below 0", {"decay": -0.01}, "R11"),
    core("decay above 1", {"decay": 1.01}, "R11"),
    core("decay in words", {"decay": "low"}, "R11"),
    core("decay in a string", {"decay": "0.05"}, "R11", {"decay": 0.05}),
    core("decay out of range in a string", {"decay": "5"}, "R11"),
    core("decay that is NaN in a string", {"decay": "nan"}, "R11"),
    core("decay that is true", {"decay": True}, "R11"),
    core("decay that is false", {"decay": False}, "R11"),
    core("decay 0", {"decay": 0}, "", {"decay": 0}),
    core("decay -0.0", {"decay": -0.0}, "", {"decay": 0}),
    core("confidence below 0", {"confidence": -1e-9}, "R12"),
    core("confidence above 1", {"confidence": 95}, "R12"),
    core("confidence in a string", {"confidence": "0.95"}, "R12", {"confidence": 0.95}),
    core("confidence out of range in a string", {"confidence": "95"}, "R12"),
    core("confidence 1", {"confidence": 1}, "", {"confidence": 1}),
    core("fields nobody knows", {"status": "open", "x": {"y": [1]}}, "", {"status": "open", "x": {"y": [1]}}),
]

MEMORY = [
    holding("an unknown tier", put("memory.longterm", [block("far")]), "R9"),
    holding("a tier in capitals", put("memory.Core", [block("far")]), "R9"),
    holding("no memory", drop("memory"), "T7", core=[], working=[], ephemeral=[]),
    holding("a memory that is a list", put("memory", [CORE]), "T7", core=[], working=[], ephemeral=[]),
    holding("a memory that is null", put("memory", None), "T7", core=[], working=[], ephemeral=[]),
    holding("a memory without tiers", put("memory", {}), "T7", core=[], working=[], ephemeral=[]),
    holding("a tier left out", drop("memory.working"), "T7", working=[]),
    holding("a tier that is an object", put("memory.core", CORE), "T7", core=[]),
    holding("a tier that is null", put("memory.core", None), "T7", core=[]),
    holding(
        "empty tiers", put("memory", {"core": [], "working": [], "ephemeral": []}), core=[], working=[], ephemeral=[]
    ),
    holding("a memory in words", put("memory", "We spoke about Rome."), "R7 T7", core=[], working=[], ephemeral=[]),
    holding("a tier in words", put("memory.core", "We spoke about Rome."), "R7 T7", core=[]),
    holding("a block in words", put("memory.core", ["We spoke about Rome.", CORE]), "R7 R10"),
    tier("the same id twice, the better first", [block("a"), block("a", 0.2)], "R14"),
    tier("the same id twice, equally good", [block("a", round=0), block("a")], "R14"),
    tier(
        "the same content twice",
        [block("a", content="Same."), block("b", 0.2, content="Same.")],
        "R15",
    ),
    tier("the worse block first", [block("b", 0.2), block("a", 0.1)], "R15"),
    tier("blocks that are numbers and lists", [1, None, [], block("a")], "R10", [block("a")]),
    tier("equally good blocks", [block("a", 0.1, 0.8), block("b", 0.2, 0.9)]),
    tier("many blocks, best first", [block(f"b{n}", n / 100) for n in range(30)]),
    tier("a block that is to be forgotten", [block("a", 1)]),
    tier("a block nobody believes any more", [block("a", 0.1, 0)]),
    core("a field with the name extra", {"extra": {"a": 1}}, "", {"extra": {"a": 1}}),
    holding("a key with the name extra", {**SNAPSHOT, "extra": [1]}, extra={"extra": [1]}),
    tier("a weak block", [block("a", 0.36)], "R13"),
    tier("an uncertain block", [block("a", 0.1, 0.69)], "R13"),
    holding("a key nobody knows", {**SNAPSHOT, "todo": {"step": 1}}, extra={"todo": {"step": 1}}),
    holding("blocks of a tier at the top", {**SNAPSHOT, "core": [block("far")]}, "R9", extra={}),
    holding("a capability in words", put("capabilities", ["memory", *SNAPSHOT["capabilities"]]), "T11"),
    holding("capabilities that are an object", put("capabilities", {"name": "memory"}), "T11", capabilities=[]),
    holding("a task that is a list", put("active_task", ["a"]), "T12", active_task=""),
    holding("no capabilities, no task", {**STAMP, "memory": SNAPSHOT["memory"]}, "", capabilities=[], active_task=""),
]

STATES = [*SYSTEM, *FIELDS, *MEMORY]
