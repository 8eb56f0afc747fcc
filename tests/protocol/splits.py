"""Replies that differ in where the separator stands and what is around the snapshot."""

from protocol.replies import (
    GOOD,
    PICTURE,
    SNAPSHOT,
    TEMPLATE,
    Case,
    bad,
    block,
    but,
    compact,
    good,
    holding,
    pictured,
    put,
)

from daypack.protocol import SEPARATOR as SEP

HI = "Hello, all is done.\n"
BYE = "\nTell me if anything is missing."
FENCE = "```"
QUOTING = put("memory.working.0.content", f"Write {SEP} once.")
QUOTED = compact(QUOTING)
HELD = pictured(QUOTING)
OLD = compact(put("memory.core", [block("old")]))

PLAIN = [
    good("the template of the protocol", f"{HI}{SEP}\n{TEMPLATE}", HI),
    good("a snapshot on one line", f"{HI}{SEP}\n{GOOD}", HI),
    good("a blank between separator and object", f"{HI}{SEP} {GOOD}", HI),
    good("nothing between separator and object", f"{HI}{SEP}{GOOD}", HI),
    good("blank lines around the object", f"{HI}{SEP}\n\n \t{GOOD} \r\n\n", HI),
    good("the separator in the line of the text", f"Done.{SEP}{GOOD}", "Done."),
    good(
        "lines that end with CR LF",
        f"One.\r\nTwo.\r\n{SEP}\r\n{TEMPLATE}\r\n".replace("}\n", "}\r\n"),
        "One.\r\nTwo.\r\n",
    ),
    good("a text with many empty lines at its end", f"{HI}\n\n\n{SEP}\n{GOOD}", f"{HI}\n\n\n"),
    good("a text with blanks at both ends", f"  \t{HI} \t{SEP}\n{GOOD}", f"  \t{HI} \t"),
    good("only a snapshot", f"{SEP}\n{GOOD}", ""),
    good("a text of white space", f"\n \n{SEP}\n{GOOD}", "\n \n"),
    good("a mark of byte order at the start of the text", f"\ufeff{HI}{SEP}\n{GOOD}", f"\ufeff{HI}"),
    good("a Chinese answer", f"你好，任务已完成。\n{SEP}\n{GOOD}", "你好，任务已完成。\n"),
    good("an answer with emoji", f"Done 🎉👩‍👩‍👧‍👦🇨🇭 é é\n{SEP}\n{GOOD}", "Done 🎉👩‍👩‍👧‍👦🇨🇭 é é\n"),
    good(
        "NUL and control characters in the text",
        f"a\x00b\x1b[1mc\x7f\u2028\n{SEP}\n{GOOD}",
        "a\x00b\x1b[1mc\x7f\u2028\n",
    ),
    good(
        "a code block with JSON in the text",
        f"{FENCE}json\n{{}}\n{FENCE}\n{SEP}\n{GOOD}",
        f"{FENCE}json\n{{}}\n{FENCE}\n",
    ),
    good(
        "comparisons and shifts in the text",
        f"a << 3 <<< b >>> c <CONTEXT>\n{SEP}{GOOD}",
        "a << 3 <<< b >>> c <CONTEXT>\n",
    ),
    good("two brackets more in front of the separator", f"Hi <<{SEP}{GOOD}", "Hi <<"),
    good("half a separator right in front of it", f"Hi <<<CONTEXT{SEP}{GOOD}", "Hi <<<CONTEXT"),
    holding(
        "emoji in a block",
        put("memory.core.0.content", "🎉👩‍👩‍👧‍👦"),
        core=[{**SNAPSHOT["memory"]["core"][0], "content": "🎉👩‍👩‍👧‍👦"}],
    ),
    Case("a snapshot nobody compares", f"{HI}{SEP}\n{GOOD}", HI, "", PICTURE, None),
]

QUOTES = [
    good(
        "the token quoted in the text", f"End with `{SEP}` always.\n{SEP}\n{GOOD}", f"End with `{SEP}` always.\n", "R3"
    ),
    good("the token quoted in a JSON string", f"{HI}{SEP}\n{QUOTED}", HI, "R3", HELD),
    good("the token quoted in text and JSON", f"Say {SEP}.\n{SEP}\n{QUOTED}", f"Say {SEP}.\n", "R3", HELD),
    good(
        "the token escaped in a JSON string", f"{HI}{SEP}\n{QUOTED.replace('<<<', chr(92) + 'u003c<<')}", HI, "", HELD
    ),
    good(
        "the token as a key",
        f"{HI}{SEP}\n{compact({**SNAPSHOT, SEP: 1})}",
        HI,
        "R3",
        but(extra={SEP: 1}),
    ),
    good(
        "a whole section quoted in a JSON string",
        f"{HI}{SEP}\n{compact(put('active_task', f'x{SEP}{{}}'))}",
        HI,
        "R3",
        but(active_task=f"x{SEP}{{}}"),
    ),
    good("two separators in a row", f"{HI}{SEP}\n{SEP}\n{GOOD}", f"{HI}{SEP}\n", "R3"),
    good(
        "a section as an example in a code block",
        f'{FENCE}\n{SEP}\n{{"a": 1}}\n{FENCE}\nSo it looks.\n{SEP}\n{GOOD}',
        f'{FENCE}\n{SEP}\n{{"a": 1}}\n{FENCE}\nSo it looks.\n',
        "R3",
    ),
    good("a thousand separators and a snapshot", SEP * 1000 + GOOD, SEP * 999, "R3"),
    good(
        "a snapshot among the first of many quoted tokens",
        f"{SEP} x " * 15 + f"{SEP}{GOOD}" + f" y {SEP}" * 500,
        f"{SEP} x " * 15 + f" y {SEP}" * 500,
        "R2 R3 R4 R5 R6",
    ),
    good(
        "a snapshot among the last of many quoted tokens",
        f"{SEP} x " * 500 + f"{SEP}{GOOD}" + f" y {SEP} z" * 15,
        f"{SEP} x " * 500 + f" y {SEP} z" * 15,
        "R2 R3 R4 R5 R6",
    ),
    bad("a thousand separators", SEP * 1000, "", "R3 R4 R5"),
    bad("a thousand quoted tokens", f"{SEP} is it. " * 1000, f"{SEP} is it. " * 1000, "R1 R4 R5"),
    bad("the token in a sentence", f"The token is {SEP}, said he.", f"The token is {SEP}, said he.", "R1 R4 R5"),
    bad(
        "the format explained in a sentence",
        f"Write {SEP} {{JSON}} at the end.",
        f"Write {SEP} {{JSON}} at the end.",
        "R1 R4 R5",
    ),
    bad(
        "a list in brackets behind the token",
        f"See {SEP} [the docs] for it.",
        f"See {SEP} [the docs] for it.",
        "R1 R4 R5",
    ),
    bad("a link behind the token", f"{SEP} [docs](http://x) help.", f"{SEP} [docs](http://x) help.", "R1 R4 R5"),
    bad("a template in braces", f"Use {SEP} {{{{name}}}} here.", f"Use {SEP} {{{{name}}}} here.", "R1 R4 R5"),
    bad("the token in backticks at the end", f"End with `{SEP}`", f"End with `{SEP}`", "R1 R4 R5"),
    bad("words behind the token", f"{HI}{SEP}\nI remember you.", f"{HI}{SEP}\nI remember you.", "R1 R4 R5"),
]

NONE = [
    bad("an empty reply", "", "", "R1"),
    bad("white space", " \n\t\r\n", " \n\t\r\n", "R1"),
    bad("a text alone", HI, HI, "R1"),
    bad("a JSON object alone", GOOD, GOOD, "R1"),
    bad("half a separator at the end", "Hi <<<CONTEXT>>", "Hi <<<CONTEXT>>", "R1"),
    bad("a bracket at the end", "Hi <", "Hi <", "R1"),
    bad("a separator in small letters", f"Hi <<<context>>>\n{GOOD}", f"Hi <<<context>>>\n{GOOD}", "R1"),
    bad("a separator with blanks", f"Hi <<< CONTEXT >>>\n{GOOD}", f"Hi <<< CONTEXT >>>\n{GOOD}", "R1"),
    bad("a separator with two brackets", f"Hi <<CONTEXT>>\n{GOOD}", f"Hi <<CONTEXT>>\n{GOOD}", "R1"),
    bad(
        "a separator as entities",
        f"&lt;&lt;&lt;CONTEXT&gt;&gt;&gt;{GOOD}",
        f"&lt;&lt;&lt;CONTEXT&gt;&gt;&gt;{GOOD}",
        "R1",
    ),
    bad("a separator with a line break inside", f"Hi <<<CON\nTEXT>>>{GOOD}", f"Hi <<<CON\nTEXT>>>{GOOD}", "R1"),
    bad("a separator in wide brackets", f"＜＜＜CONTEXT＞＞＞{GOOD}", f"＜＜＜CONTEXT＞＞＞{GOOD}", "R1"),
]

AROUND = [
    good("a fence with a language", f"{HI}{SEP}\n{FENCE}json\n{TEMPLATE}\n{FENCE}", HI, "R4 R5 R6 F2"),
    good("a fence without a language", f"{HI}{SEP}\n{FENCE}\n{GOOD}\n{FENCE}", HI, "R4 R5 R6 F2"),
    good("a fence in capitals", f"{HI}{SEP}\n{FENCE}JSON\n{GOOD}\n{FENCE}", HI, "R4 R5 R6 F2"),
    good("a fence with CR LF", f"{HI}{SEP}\r\n{FENCE}json\r\n{GOOD}\r\n{FENCE}", HI, "R4 R5 R6 F2"),
    good("a fence that is not closed", f"{HI}{SEP}\n{FENCE}json\n{GOOD}", HI, "R4 R5 R6 F2"),
    good("a fence and words behind it", f"{HI}{SEP}\n{FENCE}json\n{GOOD}\n{FENCE}{BYE}", HI + BYE, "R2 R4 R5 R6 F2"),
    good(
        "a fence, then a code block of the text",
        f"{HI}{SEP}\n{FENCE}json\n{GOOD}\n{FENCE}\n\n{FENCE}sh\nls\n{FENCE}\n",
        f"{HI}\n\n{FENCE}sh\nls\n{FENCE}\n",
        "R2 R4 R5 R6 F2",
    ),
    good("a fence and a line break behind it", f"{HI}{SEP}\n{FENCE}json\n{GOOD}\n{FENCE}\n", HI, "R4 R5 R6 F2"),
    good("a fence in one line", f"{HI}{SEP}{FENCE}json {GOOD}{FENCE}", HI, "R4 R5 R6 F2"),
    good("a tag, then the end of another", f"<p>Hi{SEP}<j>{GOOD}</j></p>", "<p>Hi</p>", "R2 R4 R5 R6 F3"),
    good("a tag, then a code block", f"Hi{SEP}<j>{GOOD}</j>\n{FENCE}\nls", f"Hi\n{FENCE}\nls", "R2 R4 R5 R6 F3"),
    good("a tag", f"{HI}{SEP}\n<context>{GOOD}</context>", HI, "R4 R5 R6 F3"),
    good("a tag with an attribute", f'{HI}{SEP}<json type="state">\n{GOOD}\n</json>', HI, "R4 R5 R6 F3"),
    good("a tag that is not closed", f"{HI}{SEP}\n<context>\n{GOOD}", HI, "R4 R5 R6 F3"),
    good("two tags", f"{HI}{SEP}<context><json>{GOOD}</json></context>", HI, "R4 R5 R6 F3"),
    good("a tag and words behind it", f"{HI}{SEP}<context>{GOOD}</context>{BYE}", HI + BYE, "R2 R4 R5 R6 F3"),
    good("a fence in a tag", f"{HI}{SEP}<context>\n{FENCE}json\n{GOOD}\n{FENCE}\n</context>", HI, "R4 R5 R6 F2 F3"),
    good("words behind the object", f"{HI}{SEP}\n{GOOD}{BYE}", HI + BYE, "R2 R4 R5 R6"),
    good("a full stop behind the object", f"{HI}{SEP}\n{GOOD}.", f"{HI}.", "R2 R4 R5 R6"),
    good("a snapshot at the top", f"{SEP}\n{GOOD}\n{HI}", f"\n{HI}", "R2 R4 R5 R6"),
    good("a snapshot between two words", f"one{SEP}{GOOD}two", "onetwo", "R2 R4 R5 R6"),
    good(
        "a quoted token, then a snapshot at the top",
        f"Of {SEP}: {SEP}{GOOD}{BYE}",
        f"Of {SEP}: {BYE}",
        "R2 R3 R4 R5 R6",
    ),
    good("a mark of byte order behind the separator", f"{HI}{SEP}\ufeff{GOOD}", HI, "R4 R5 R6"),
    good("a no-break space behind the separator", f"{HI}{SEP}\u00a0{GOOD}", HI, "R4 R5 R6"),
    good("a line separator behind the separator", f"{HI}{SEP}\u2028{GOOD}", HI, "R4 R5 R6"),
    good(
        "a comment to the end of the line",
        f"{HI}{SEP}\n{TEMPLATE.replace('2.3,', '2.3, // the protocol')}",
        HI,
        "R4 R5 F4",
    ),
    good("a comment in a line of its own", f"{HI}{SEP}\n{TEMPLATE.replace('{', '{ // state', 1)}", HI, "R4 R5 F4"),
    good(
        "a comment of several lines",
        f"{HI}{SEP}\n{TEMPLATE.replace('2.3,', '2.3, /* the * / {{ *' + chr(10) + ' protocol */')}",
        HI,
        "R4 R5 F4",
    ),
    good(
        "a quote in a comment",
        f"{HI}{SEP}\n{TEMPLATE.replace('2.3,', '2.3, // it' + chr(39) + 's ' + chr(34))}",
        HI,
        "R4 R5 F4",
    ),
    holding(
        "what looks like comments in a string",
        put("active_task", "http://x // y /* z */"),
        active_task="http://x // y /* z */",
    ),
    good(
        "a comment, and what looks like one in a string",
        f"{HI}{SEP}\n{{/* now */{compact(put('active_task', 'http://x /* y */'))[1:]}",
        HI,
        "R4 R5 F4",
        but(active_task="http://x /* y */"),
    ),
    good(
        "tags and fences in a string",
        f"{HI}{SEP}\n{compact(put('active_task', f'</context>{FENCE}'))}",
        HI,
        "",
        but(active_task=f"</context>{FENCE}"),
    ),
    good(
        "all at once",
        f"{HI}{SEP}\ufeff<a>\n{FENCE}json\n{{/* s */{GOOD[1:]}\n{FENCE}\n</a>{BYE}",
        HI + BYE,
        "R2 R4 R5 R6 F2 F3 F4",
    ),
]

TWICE = [
    good(
        "the section twice",
        f"{HI}{SEP}\n{OLD}\n{SEP}\n{GOOD}",
        f"{HI}{SEP}\n{OLD}\n",
        "R3",
    ),
]

SPLITS = [*PLAIN, *QUOTES, *NONE, *AROUND, *TWICE]
