"""Contents that try to be more than text, and a home that has them everywhere a text can be."""

import json
from contextlib import suppress
from typing import Any

import daypack
from daypack.derived.children import ChildUpdate
from daypack.errors import DaypackError
from daypack.memory.tools import open_memory
from daypack.session import Session
from daypack.types.records import Ref

HIT = "window.hit=1;alert(1)"
OTHER = "https://elsewhere.example"

_SCRIPTS = (
    f"<script>{HIT}</script>",
    f"<ScRiPt>{HIT}</sCrIpT>",
    f"</script><script>{HIT}</script>",
    f"</title></style></textarea><script>{HIT}</script>",
    f"<script src={OTHER}/a.js></script>",
    f'<script type="module">import "{OTHER}/b.js"</script>',
    f"<!--><script>{HIT}</script-->",
    f"<![CDATA[<script>{HIT}</script>]]>",
    f"<noscript><p title='</noscript><script>{HIT}</script>'>",
    f"\"'><script>{HIT}</script>",
    f"--></pre><script>{HIT}</script>",
    f"<template><script>{HIT}</script></template>",
    f"<script\x0c>{HIT}</script>",
    f"<script\x00>{HIT}</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "＜script＞alert(1)＜/script＞",
)
_MARKUP = (
    f"<img src=x onerror='{HIT}'>",
    f"<img src='{OTHER}/pixel.gif'>",
    f"<svg onload='{HIT}'>",
    f"<svg><animate onbegin='{HIT}' attributeName=x dur=1s>",
    f"<svg><script>{HIT}</script></svg>",
    f"<svg><a xlink:href='javascript:{HIT}'><text y=20>press</text></a></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg onload={HIT}>#x'/></svg>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror='{HIT}'>",
    f"<body onload='{HIT}'>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    f"<iframe src='{OTHER}'></iframe>",
    f"<object data='{OTHER}/x.swf'></object>",
    f"<embed src='{OTHER}/x'>",
    f"<video><source onerror='{HIT}'></video>",
    f"<audio src=x onerror='{HIT}'>",
    f"<input autofocus onfocus='{HIT}'>",
    f"<details open ontoggle='{HIT}'>",
    f"<marquee onstart='{HIT}'>",
    f"<form action='{OTHER}'><button>Send</button></form>",
    f"<button formaction='javascript:{HIT}'>Undo</button>",
    f"<base href='{OTHER}/'>",
    f"<meta http-equiv='refresh' content='0;url={OTHER}'>",
    f"<link rel=stylesheet href='{OTHER}/a.css'>",
    f"<link rel=prefetch href='{OTHER}/b'>",
    f"<style>@import '{OTHER}/c.css';</style>",
    "<style>*{display:none}</style>",
    f"<div style='background:url({OTHER}/d.png)'>",
    "<div style='position:fixed;inset:0;z-index:9999'>cover</div>",
    f"<a href='javascript:{HIT}'>press</a>",
    f"<a href='{OTHER}' ping='{OTHER}/p'>press</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>press</a>",
    f"<isindex type=image src=1 onerror='{HIT}'>",
    "<plaintext>",
    "<xmp>",
    "<!doctype html><html><head></head><body>another page",
)
_LINKS = (
    f"javascript:{HIT}",
    f"JaVaScRiPt:{HIT}",
    f"java\tscript:{HIT}",
    f"\x01javascript:{HIT}",
    f"data:text/html,<script>{HIT}</script>",
    "vbscript:msgbox(1)",
    "//elsewhere.example/a",
    f"{OTHER}/b?c=d",
    "http://127.0.0.1:9/e",
    "file:///etc/passwd",
    f"[press]({OTHER})",
    f"[press](javascript:{HIT})",
    f"![picture]({OTHER}/f.png)",
    f"![x](x 'onerror={HIT}')",
    f"[x]: {OTHER}/g",
    f"<{OTHER}/h>",
    f"[[{OTHER}]]",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
)
_MARKDOWN = (
    "# A heading that is none",
    "```html\n<script>alert(1)</script>\n```",
    "| a | b |\n|---|---|\n| <b>c</b> | d |",
    "- [ ] <img src=x onerror=alert(1)>",
    "> quoted\n\n<b>bold</b>",
    "*a* _b_ **c** ~~d~~ `e`",
    "$$\\href{javascript:alert(1)}{x}$$",
    "<!-- a comment -->",
    "&amp;&lt;&gt;&quot;&#39;&nbsp;",
    "&#x202e;",
    "<![endif]-->",
)
_TEMPLATES = (
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{%raw%}{{7*7}}{%endraw%}",
    "`${window.hit=1}`",
    "{{__proto__.polluted = 1}}",
    '{"$": 0}',
    '{"__proto__": {"polluted": 1}}',
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "</script><!--",
    "<!--<script>",
    "]]>",
    '"});alert(1);//',
    "';alert(1)//",
    "\\');alert(1)//",
    "%00%3Cscript%3E",
    "../../../../etc/passwd",
    "%2e%2e%2f",
)
_LETTERS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;https://elsewhere.example\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H",
    "\x07\x08\x08\x7f",
    "\x00",
    "a\x00b",
    "\u202egnp.exe",
    "\u2066a\u2069\u202d",
    "\u200b\u200c\u200d\u2060",
    "\ufeffbom",
    "\u2028line\u2029paragraph",
    "\U000e0041\U000e0042",
    "e\u0301" * 40,
    "Z" + "\u0351" * 300,
    "\ud83d\ude00 surrogates".encode("utf-16", "surrogatepass").decode("utf-16"),
    "𝓪𝓫𝓬 ﷽ 한국어 العربية עברית",
    "\r\nSet-Cookie: a=b\r\n",
    "a\rb",
    "\x85next\x9bline",
)
CONTENTS = (*_SCRIPTS, *_MARKUP, *_LINKS, *_MARKDOWN, *_TEMPLATES, *_LETTERS)
LONG_LINE = "<b>" + "x" * 1_000_000 + f"<script>{HIT}</script>"
NAME = "<img src=x onerror=alert(1)>"
TITLE = f"</title><script>{HIT}</script>"


def make_hostile_home(home: str) -> None:
    """Put every content into messages, names, titles, tools, pins, children, memories and documents."""
    with daypack.open_session(
        NAME, agent="<b>agent", home=home, durability="os", workspace="", model="<i>gpt-4o", compaction_model="none"
    ) as session:
        _fill(session)
    for name in ("__proto__", "constructor", "javascript:alert(1)", "${7*7}", "{{7*7}}"):
        with suppress(DaypackError), daypack.open_session(name, home=home, durability="os", workspace="") as other:
            other.append("user", f"{TITLE} {name}")
    _fill_memory(home)


def _fill(session: Session) -> None:
    session.set_budget(60_000)
    session.append("user", TITLE)
    for at, content in enumerate(CONTENTS):
        role = "user" if at % 2 else "assistant"
        session.append(role, content)
    for at, content in enumerate(CONTENTS[::10]):
        calls = [{"id": f"call-{at}", "name": _tool_name(content), "arguments": json.dumps({content: content})}]
        session.append("assistant", "", tool_calls=calls)
        session.append("tool", content, tool_call_id=f"call-{at}", name=_tool_name(content))
    session.append("user", f"Decision: always keep {CONTENTS[0]} and {CONTENTS[18]} in posters/layout.toml.")
    session.add_rule(f"Never show {CONTENTS[20]} as anything but text.")
    session.pin("<b>pin", f"{CONTENTS[0]}\n{CONTENTS[19]}")
    session.add_question(f"Where is {CONTENTS[2]}?")
    update = ChildUpdate(
        handoff=CONTENTS[0],
        result=CONTENTS[20],
        status="done",
        refs=[Ref("r1", "<script>.md", "file", CONTENTS[1])],
        artifacts={"<b>.md": b"<script>"},
    )
    session.put_child("<svg onload=alert(1)>", update)
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": "look", "description": CONTENTS[0], "parameters": {"type": "object"}}}
    ]
    session.prepare(tools=tools)
    session.accept({"role": "assistant", "content": CONTENTS[19]}, {"input_tokens": 10, "output_tokens": 5})
    session.compact(model="none", keep_tokens=400)
    session.append("user", LONG_LINE)
    session.append("assistant", "short")
    session.append("user", f"Again: {CONTENTS[18]}")
    session.prepare(tools=tools)


def _fill_memory(home: str) -> None:
    with open_memory(home=home) as memories:
        memory = memories.create_memory(TITLE, "project", CONTENTS[19])
        for at, content in enumerate(CONTENTS):
            with suppress(DaypackError):
                about = {"author": content[:200], "session": NAME, "tags": ["<b>"]}
                memories.add_entry(memory.memory_id, f"{content} number {at}", about=about)
        for some in (CONTENTS[:20], CONTENTS[20:50]):
            lines = [f"- {content}" for content in some if content.isprintable()]
            memories.put_context(memory.memory_id, "\n".join(("# Notes", "", *lines)))
        memories.await_consistency(memory.memory_id)


def _tool_name(content: str) -> str:
    return "".join(letter for letter in content[:60] if letter.isprintable()) or "tool"
