"""Documents at the corners of JSON, for a comparison with what `JSON.parse` says of them."""

from itertools import chain

_NUMBERS = """
0 -0 1 -1 10 42 9007199254740991 9007199254740993 18446744073709551616 -9223372036854775809 0.0 -0.0 0.1 2.3 2.30
1e0 1E0 1e+0 1e-0 1e5 1E+05 1e-05 0e0 0E+0 0.1e1 123.456e-7 1e308 1.7976931348623157e308 5e-324 1e-400 -1e-999
0e999999 123456789012345678901234567890 1.0000000000000000000000001 0.30000000000000004
"""
NUMBERS = _NUMBERS.split()
_NO_NUMBERS = """
01 -01 00 -00 1. .1 -.1 +1 - + 1e 1e+ 1e- 1E 1.e1 1e1.5 1.2.3 1-2 1+2 1_000 1,000 0x1 0b1 0o7 0x 1f 1n 1e5e5 --1 -+1
NaN -NaN nan Infinity -Infinity +Infinity inf ∞ １ ١ ½ 1️⃣ e1 1d .e1 -e1 1/2 0.0.0
"""
NO_NUMBERS = _NO_NUMBERS.split()
OVERFLOWS = ["1e309", "-1e309", "1E400", "1e999999", "9" * 400, "-" + "9" * 400, "1" + "0" * 5000, "9" * 400 + ".5"]
DIGITS = ["0." + "1" * 5000, "0." + "0" * 5000 + "1", "1" * 300, "1e-" + "0" * 5000 + "1"]

STRINGS = [
    '""', '"a"', '"记"', '"😀"', r'"\""', r'"\\"', r'"\/"', '"/"', r'"\b\f\n\r\t"', r'"\u0000"', r'"\u00e9"',
    r'"\u00E9"', r'"\ud83d\ude00"', r'"\uD83D\uDE00"', r'"\ud83d"', r'"\ude00"', r'"\ude00\ud83d"',
    r'"\ud83d\ud83d\ude00"', r'"a\ud800b"', r'"\ud83dA"', r'"\ud83d\n"', r'"\u2028"', '"\u2028\u2029"', '"\x7f"',
    '"\x80"', '"\u00a0"', '"\ufeff"', '"\ufffd"', '"\uffff"', '"\U0010ffff"', '"\ud800"', '"\udfff"', '"a\ud83d"',
    r'"\\u0000"', r'"\\\\"', r'"\\\""', '"\'"', '"//"', '"/* */"', '"<<<CONTEXT>>>"', r'"\u003c<<CONTEXT>>>"', '"é"',
    '"e\u0301"', '"' + "x" * 10_000 + '"', '"{"', '"]"', '" "', '"\u0085"',
]  # fmt: skip
NO_STRINGS = [
    '"', '"a', "'a'", "`a`", "\u201ca\u201d", '"a""', '""a"', '"\\"', '"\\', r'"\x41"', r'"\a"', r'"\v"', r'"\0"',
    r'"\'"', r'"\u"', r'"\u1"', r'"\u12"', r'"\u123"', r'"\u123g"', r'"\u 123"', r'"\u+123"', r'"\u0x1"',
    r'"\u１２３４"',
    r'"\U0001F600"', r'"\u{41}"', r'"\ "', '"\\\n"', '"\n"', '"\r"', '"\t"', '"\x00"', '"\x01"', '"\x08"', '"\x0b"',
    '"\x0c"', '"\x1f"', '"a\x1b[0m"', "a", "abc", '"a" "b"', '"a"+"b"', 'b"a"', 'u"a"', r'\u0022a\u0022', r'"\u-123"',
    r'"\u_123"', r'"\u1_23"', r'"\u12 4"',
]  # fmt: skip

LITERALS = ["true", "false", "null"]
_NO_LITERALS = """
True False None TRUE Null nul nulll tru truee fals undefined void yes true1 true, nulltrue null;
"""
NO_LITERALS = _NO_LITERALS.split()

SHAPES = [
    "[]", "{}", "[[]]", "[{}]", '{"a":{}}', '{"a":[]}', "[1,2]", '[1,"a",null,true,{"b":[]}]', '{"a":1,"b":2}',
    '{"":0}', '{" ":0}', '{"a":{"a":{"a":1}}}', '{"__proto__":1}', '{"constructor":1,"toString":2}', '{"1":1,"0":0}',
    '{"a\\u0000":1}', '{"\\ud800":1}', '{"记":"忆"}', "[[],[],[[]]]", '{"a":[{"b":[{"c":1}]}]}', "[0,-0,1e5]",
    '{"length":1}', '{"a":"}"}', '["]"]', '{"\\"":1}', "[" * 60 + "]" * 60, '{"a":' * 60 + "1" + "}" * 60,
    '[{"a":' * 30 + "1" + "}]" * 30,
]  # fmt: skip
NO_SHAPES = [
    "", "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]", "[1;2]", "[1}", "{]", "[}",
    '{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a" 1}', '{"a"::1}', '{"a":1 "b":2}', '{"a":1;"b":2}', '{"a"=1}',
    '{"a":1,,"b":2}', "{a:1}", "{'a':1}", "{1:1}", "{null:1}", '{"a":1', '{"a":', '{"a"', '{"a', '{"', "{,}", "[]]",
    "{}}", "[] []", "{} {}", "{}{}", "1 2", "1,2", "[1]x", "{}x", "{};", "({})", "[...[]]", '{"a":1}\x00', "\x00{}",
    "{\x00}", '{"a":1}//', '// a\n{"a":1}', '{/**/"a":1}', '{"a":/**/1}', '{"a":1/**/}', "#a\n{}", "<!-- -->{}",
    "{\"a\":1}'", "[1]\ufeff", "\ufeff[1]", "\ufeff{}", "{}\u00a0", "\u00a0{}", "{\u00a0}", "[\u20281]", "\u2029[]",
    "\u3000[]", "[\u2003]", "\x0b[]", "\x0c[]", "[]\x0b", "[\x0c]", "\x85[]", "\x1c[]", "\x1f[]", "\u200b[]",
    "\u180e[]", "```{}```", "[" * 60, "[" * 60 + "]" * 59, "[" * 59 + "]" * 60, '{"a":' * 60 + "}" * 60,
    "[" * 30 + "{" * 30, "\\", "/", ":", ",", '{"a":b}', '{a:"b"}', '{"a":1}}', "[[1]", '["a":1]', '{"a","b"}', "[a]",
    '{[]:1}', '{{}:1}', "{1}", "{{}}", "{[]}", '{"a":{}', "[-]", "[.]", "[+1]",
]  # fmt: skip

SPACES = ["", " ", "\n", "\r", "\t", "\r\n", "  \n\t\r "]
SPACED = [
    *(f'{space}{{{space}"a"{space}:{space}[{space}1{space},{space}2{space}]{space}}}{space}' for space in SPACES),
    *(f"{space}{value}{space}" for space in SPACES[1:] for value in ("null", "7", '""', "{}")),
]
NO_SPACED = [
    *(f"{begun}{space}" for begun in ("[1", '{"a"', "tru", "- 1", "1 .5", "1e 5") for space in SPACES),
    *SPACES[1:],
]

# What JSON.parse takes and we refuse, and why.
STRICTER = {
    **dict.fromkeys(chain(OVERFLOWS, (f"[{number}]" for number in OVERFLOWS)), "overflow"),
    **{f'{{"a":{number}}}': "overflow" for number in OVERFLOWS},
    '{"a":1,"a":2}': "duplicate",
    '{"a":1,"a":1}': "duplicate",
    '{"a":1,"\\u0061":2}': "duplicate",
    '{"":1,"":2}': "duplicate",
    '{"b":{"a":1,"c":2,"a":3}}': "duplicate",
    '{"b":[0,{"a":1,"a":3}]}': "duplicate",
    '[{"a":1,"a":3}]': "duplicate",
    '{"a":1e999,"a":1}': "duplicate",
    '{"a":' * 65 + "1" + "}" * 65: "depth",
    '{"a":' + "[" * 64 + "]" * 64 + "}": "depth",
    '{"a":' + "[" * 500 + "]" * 500 + "}": "depth",
    '{"a":"' + "x" * (4 << 20) + '"}': "size",
}

VALID = [*NUMBERS, *DIGITS, *STRINGS, *LITERALS, *SHAPES, *SPACED]
INVALID = [*NO_NUMBERS, *NO_STRINGS, *NO_LITERALS, *NO_SHAPES, *NO_SPACED]
INNER = [*NUMBERS, *STRINGS, *LITERALS, *NO_NUMBERS, *NO_STRINGS, *NO_LITERALS]
DOCUMENTS = list(
    dict.fromkeys(
        [*VALID, *INVALID, *STRICTER, *(f'{{"a":{inner}}}' for inner in INNER), *(f"[{inner}]" for inner in INNER)]
    )
)
