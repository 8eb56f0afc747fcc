"""Replies whose snapshot is no JSON, or JSON that is refused: the text must come through all the same."""

from typing import Any

from protocol.replies import GOOD, SNAPSHOT, TEMPLATE, Case, bad, compact, good, holding, put

from daypack.protocol import SEPARATOR as SEP

HI = "Hello, all is done.\n"
BYE = "\nTell me if anything is missing."
MIB = 1024 * 1024


def behind(name: str, rest: str, rules: str = "R4 R5") -> Case:
    """A reply with a text and something behind the separator that gives no snapshot."""
    return bad(name, f"{HI}{SEP}\n{rest}", HI, rules)


def changed(old: str, new: str) -> str:
    """The JSON of the sample with one piece replaced."""
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def nested(depth: int) -> list[Any]:
    """Empty arrays in each other."""
    inner: list[Any] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


CUTS = {
    "right behind the first brace": "{",
    "in the first key": '{"ver',
    "behind the first key": '{"version"',
    "behind the first colon": '{"version":',
    "in the first number": '{"version":2.',
    "behind the first comma": '{"version":2.3,',
    "in the runtime": GOOD[: GOOD.index('"workspace"') + 15],
    "in an array": GOOD[: GOOD.index('"agent"') + 7],
    "behind a backslash": '{"version":2.3,"active_task":"a\\',
    "in an escape": '{"version":2.3,"active_task":"a\\u4',
    "in a literal": '{"version":2.3,"active_task":nul',
    "in the last string": GOOD[:-4],
    "in front of the last brace": GOOD[:-1],
    "in the middle of many lines": TEMPLATE[: TEMPLATE.index("ephemeral")],
    "in a comment": '{"version":2.3 /* the pro',
}
TRUNCATED = [
    *(behind(f"cut {where}", rest) for where, rest in CUTS.items()),
    behind("cut in a fence", '```json\n{"version":2.3,', "R4 R5 R6 F2"),
    behind("cut in a tag", '<context>{"version":2.3,', "R4 R5 R6 F3"),
    bad("cut right behind the separator", f"{HI}{SEP}", HI, "R4 R5"),
    bad("cut behind the separator and a line break", f"{HI}{SEP}\n", HI, "R4 R5"),
    bad("only the token", SEP, "", "R4 R5"),
    bad("cut in front of a token in a string", f'{HI}{SEP}{{"active_task":"say {SEP} now', HI, "R3 R4 R5"),
]

SYNTAX = [
    behind("single quotes", "{'version': 2.3}"),
    good("a comma too many in a tier", f"{HI}{SEP}\n" + changed("}]", "},]"), HI, "R4 R5"),
    good("a comma too many at the end", f"{HI}{SEP}\n{GOOD[:-1]},}}", HI, "R4 R5"),
    good("a comma and a comment too many", f"{HI}{SEP}\n{GOOD[:-1]}, // the end\n}}", HI, "F4 R4 R5"),
    behind("two commas at the end", GOOD[:-1] + ",,}"),
    behind("a comma missing", changed('2.3,"', '2.3"')),
    behind("keys without quotes", "{version: 2.3, memory: {core: []}}"),
    behind("a leading zero", changed('"round":1', '"round":01')),
    behind("a plus sign", changed('"round":1', '"round":+1')),
    behind("a number that ends with a point", changed('"round":1', '"round":1.')),
    behind("a hexadecimal number", changed('"round":1', '"round":0x1')),
    behind("True of Python", changed('"round":1', '"round":True')),
    behind("None of Python", changed('"round":1', '"round":None')),
    behind("undefined", changed('"round":1', '"round":undefined')),
    behind("an ellipsis", '{"version":2.3, ...}'),
    behind("a line break in a string", changed("长期", "长\n期")),
    behind("a tab in a string", changed("长期", "长\t期")),
    behind("a NUL in a string", changed("长期", "长\x00期")),
    behind("an unknown escape", changed("长期", "长\\x期")),
    behind("curly quotes", "{\u201cversion\u201d: 2.3}"),
    behind("a no-break space inside", changed(":2.3", ":\u00a02.3")),
    good("one brace too many", f"{HI}{SEP}\n{GOOD}}}", HI, "R4 R5 R6"),
    good("one brace too many in a fence", f"{HI}{SEP}\n```json\n{GOOD}}}\n```", HI, "F2 R4 R5 R6"),
    good("a separator in bold", f"{HI}**{SEP}**\n{GOOD}", f"{HI}**", "R4 R5 R6"),
    good("a separator in backticks", f"{HI}`{SEP}`\n{GOOD}", f"{HI}`", "R4 R5 R6"),
    good("a comment before the JSON", f"{HI}{SEP} // the state\n{GOOD}", HI, "F4 R4 R5 R6"),
    good("an HTML comment before the JSON", f"{HI}{SEP}<!-- state -->{GOOD}", HI, "F4 R4 R5 R6"),
    good("the object twice behind one separator", f"{HI}{SEP}\n{GOOD}\n{GOOD}", HI, "R2 R4 R5 R6"),
    behind("one brace too many behind the runtime", GOOD.replace("},", "}},", 1)),
    behind("the words of the format", "{JSON}"),
    bad("single quotes and words behind", f"{HI}{SEP}\n{{'version': 2.3}}{BYE}", HI + BYE, "R2 R4 R5 R6"),
    bad("keys without quotes and words behind", f"{HI}{SEP}\n{{version: 2.3}}{BYE}", HI + BYE, "R2 R4 R5 R6"),
    bad("NaN and words behind", f'{HI}{SEP}\n{{"version": NaN}}{BYE}', HI + BYE, "R2 R4 R5 R6 X23"),
    bad("a duplicate key and words behind", f'{HI}{SEP}\n{{"a": 1, "a": 2}}{BYE}', HI + BYE, "R2 R4 R5 R6 X23"),
]

NUMBERS = [
    behind("NaN", changed('"decay":0.05', '"decay":NaN'), "R4 R5 X23"),
    behind("Infinity", changed('"decay":0.05', '"decay":Infinity'), "R4 R5 X23"),
    behind("minus Infinity", changed('"decay":0.05', '"decay":-Infinity'), "R4 R5 X23"),
    behind("NaN under an unknown key", changed('{"version"', '{"x":[NaN],"version"'), "R4 R5 X23"),
    behind("1e999", changed('"decay":0.05', '"decay":1e999'), "X23"),
    behind("-1E400 under an unknown key", changed('{"version"', '{"x":-1E400,"version"'), "X23"),
    behind("an integer of five thousand digits", changed('"round":1', '"round":1' + "0" * 5000), "X23"),
]

DUPLICATES = [
    behind("the same key twice at the top", changed('{"version":2.3', '{"version":2.3,"version":2.3'), "X23"),
    behind("the same key twice in the runtime", changed('"round":1', '"round":2,"round":1'), "X23"),
    behind("the same key twice in a block", changed('"id":"core-001"', '"id":"core-001","id":"x"'), "X23"),
    behind("the same tier twice", changed('"working":', '"core":[],"working":'), "X23"),
    behind(
        "the same key twice, deep and unknown", changed('{"version"', '{"x":[{"y":{"a":1,"a":1}}],"version"'), "X23"
    ),
    behind("the same key twice, once escaped", changed('{"version":2.3', '{"version":2.3,"\\u0076ersion":2.3'), "X23"),
]

ROOTS = [
    behind("an array", compact([SNAPSHOT]), "F1 X23"),
    behind("an empty array", "[]", "F1 X23"),
    behind("a string", '"I remember you."', "F1 X23"),
    behind("a number", "2.3", "F1 X23"),
    behind("null", "null", "F1 X23"),
    behind("true", "true", "F1 X23"),
    behind("an array that is not closed", '[{"version":2.3}'),
]

SIZES = [
    good(
        "a snapshot of a megabyte",
        f"{HI}{SEP}\n{compact(put('x', ['记' * 100] * (MIB // 300)))}",
        HI,
        "",
        {"extra": {"x": ["记" * 100] * (MIB // 300)}},
    ),
    behind("a snapshot of five mebibytes", compact(put("active_task", "x" * (5 * MIB))), "X23"),
    behind("a hundred thousand objects in each other", '{"a":' * 100_000 + "1" + "}" * 100_000, "X23"),
    behind("a hundred thousand arrays in each other", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "X23"),
    behind("a hundred thousand open objects", '{"a":' * 100_000, "R4 R5 X23"),
    behind("a hundred thousand open arrays", '{"a":' + "[" * 100_000, "R4 R5 X23"),
    behind("a hundred thousand bare braces", "{" * 100_000),
    holding("64 levels", put("x", nested(63)), extra={"x": nested(63)}),
    behind("65 levels", compact(put("x", nested(64))), "X23"),
]

STRINGS = [
    holding("NUL as an escape", put("active_task", "a\x00b"), active_task="a\x00b"),
    good(
        "every escape there is",
        f"{HI}{SEP}\n" + changed("当前执行任务摘要", r"\"\\\/\b\f\n\r\t\u957f\ud83c\udf89"),
        HI,
        "",
        {"active_task": '"\\/\b\f\n\r\t长🎉'},
    ),
    good(
        "half a pair of surrogates as an escape",
        f"{HI}{SEP}\n" + changed("当前执行任务摘要", r"a\ud800b"),
        HI,
        "T13",
        {"active_task": "a\ufffdb"},
    ),
    good(
        "the wrong half first",
        f"{HI}{SEP}\n" + changed("长期核心记忆", r"\udc00\ud800"),
        HI,
        "T13",
        {"core": [{**SNAPSHOT["memory"]["core"][0], "content": "\ufffd\ufffd"}]},
    ),
    good(
        "half a pair under an unknown key",
        f"{HI}{SEP}\n" + changed('{"version"', '{"x":["\\udfff"],"version"'),
        HI,
        "T13",
        {"extra": {"x": ["\ufffd"]}},
    ),
    good(
        "a bare surrogate in the JSON",
        f"{HI}{SEP}\n" + changed("当前执行任务摘要", "a\ud800b"),
        HI,
        "T13",
        {"active_task": "a\ufffdb"},
    ),
    good("a bare surrogate in the text", f"Hi \ud83c.\n{SEP}\n{GOOD}", "Hi \ud83c.\n"),
    bad("bare surrogates alone", "\ud800 \udfff", "\ud800 \udfff", "R1"),
]

BREAKS = [*TRUNCATED, *SYNTAX, *NUMBERS, *DUPLICATES, *ROOTS, *SIZES, *STRINGS]
