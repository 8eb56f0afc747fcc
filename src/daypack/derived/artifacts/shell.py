"""Shell scripts cut into simple commands: words without their quotes, redirections, here-documents.

It reads what agents write; it is no shell. What it cannot read is left out, never guessed.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

# Possessive repetitions: each character is looked at once, whatever comes after.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]++|\\\n)
    | (?P<comment>\#[^\n]*+)
    | (?P<redirect>(?:\d*+|&)(?:>>|>\||>&|>|<<<|<<|<&|<>|<))
    | (?P<end>\n|;;|;|&&|\|\||\|&|\||&|[(){}](?=[\s;&|)]|$)|[()])
    | (?P<word>(?:[^\s;&|<>()'"\\]++|'[^']*+'|"(?:[^"\\]|\\.)*+"|\\.)++)
    | (?P<odd>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*+)'|\"((?:[^\"\\]|\\.)*+)\"|\\(.)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\"\\$`\n])")
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"\\]?)([A-Za-z_][\w.]*)['\"]?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_KEYWORDS = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "(", "fi", "done", "time"})
# Commands that run the command after them, with the number of their own words.
_WRAPPERS = {"sudo": 0, "env": 0, "nohup": 0, "command": 0, "exec": 0, "xargs": 0, "timeout": 1, "nice": 0, "stdbuf": 0}
_RUNS = {"uv": "run", "poetry": "run", "pipenv": "run", "pdm": "run", "rye": "run", "hatch": "run", "bundle": "exec"}
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})


def word_set(text: str) -> frozenset[str]:
    """Return the words of a table that is written as a text."""
    return frozenset(text.split())


class Redirect(NamedTuple):
    """A redirection of input or output."""

    operator: str  # without the number before it
    target: str


class Heredoc(NamedTuple):
    """A here-document; `literal` if the shell expands nothing in it."""

    body: str
    literal: bool


class Simple(NamedTuple):
    """One command of a script; `piped` when its output goes to the next one."""

    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()
    heredocs: tuple[Heredoc, ...] = ()
    piped: bool = False
    fed: bool = False  # its input is the output of the one before


def split_words(words: tuple[str, ...]) -> list[Simple]:
    """Return the commands of a list of words, as a program is started with."""
    bare = unwrap(words)
    inner = nested_script(bare)
    return split(inner) if inner is not None else [Simple(bare)] if bare else []


def split(script: str) -> list[Simple]:
    """Return the commands of a script in order, those inside `bash -c "…"` in the place of it."""
    return list(_split(script, [], 0))


def unwrap(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without assignments, keywords and commands that only run it."""
    at = 0
    while at < len(words):
        word = words[at]
        name = word.rpartition("/")[2]
        if word in _KEYWORDS or _ASSIGNMENT.match(word):
            at += 1
        elif _RUNS.get(name) == (words[at + 1] if at + 1 < len(words) else ""):
            at = _options_over(words, at + 2)
        elif name in ("npx", "bunx", "pnpx") or name in _WRAPPERS:
            at = _options_over(words, at + 1) + _WRAPPERS.get(name, 0)
        else:
            break
    return words[at:]


def nested_script(words: tuple[str, ...]) -> str | None:
    """Return the script of `bash -lc "…"`; None when it is another command."""
    if len(words) < 3 or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for at, word in enumerate(words[1:-1], 1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[at + 1]
    return None


def _options_over(words: tuple[str, ...], at: int) -> int:
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.match(words[at])):
        at += 1
    return at


def _split(script: str, heredocs: list[Heredoc], depth: int) -> Iterator[Simple]:
    script = _take_heredocs(script, heredocs)
    for simple in _commands(script, heredocs):
        bare = unwrap(simple.words)
        inner = nested_script(bare) if depth < 3 else None
        if inner is not None:
            yield from _split(inner, heredocs, depth + 1)
        elif bare or simple.redirects:
            yield simple._replace(words=bare)


class _Pending:
    """The command that is being read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.redirects: list[Redirect] = []
        self.heredocs: list[Heredoc] = []
        self.operator = ""  # a redirection that still wants its target

    def take(self, token: str, heredocs: list[Heredoc]) -> None:
        """Add a word, or let it be the target of the redirection before it."""
        operator, self.operator = self.operator, ""
        if operator == "<<":
            if len(token) < 7 and token.isdecimal() and int(token) < len(heredocs):
                self.heredocs.append(heredocs[int(token)])
        elif operator:
            self.redirects.append(Redirect(operator, token))
        else:
            self.words.append(token)


def _commands(script: str, heredocs: list[Heredoc]) -> Iterator[Simple]:
    pending, fed = _Pending(), False
    for match in _TOKEN.finditer(script):
        kind, token = match.lastgroup, match[0]
        if kind == "word":
            pending.take(_unquoted(token), heredocs)
        elif kind == "redirect":
            pending.operator = token.lstrip("0123456789")
        elif kind == "end":
            piped = token in ("|", "|&")
            if pending.words or pending.redirects:
                yield _simple(pending, piped=piped, fed=fed)
            pending, fed = _Pending(), piped
    if pending.words or pending.redirects:
        yield _simple(pending, piped=False, fed=fed)


def _simple(pending: _Pending, *, piped: bool, fed: bool) -> Simple:
    return Simple(tuple(pending.words), tuple(pending.redirects), tuple(pending.heredocs), piped, fed)


def _unquoted(word: str) -> str:
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(_inside, word)


def _inside(match: re.Match[str]) -> str:
    single, double, escaped = match.groups()
    if single is not None:
        return single
    if double is not None:
        return _ESCAPED.sub(r"\1", double) if "\\" in double else double
    return escaped if escaped != "\n" else ""


def _take_heredocs(script: str, found: list[Heredoc]) -> str:
    """Return a script with a number in the place of each here-document, and add the documents to `found`."""
    if "<<" not in script:
        return script
    lines = script.split("\n")
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(number)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line, following = lines[at], at + 1
        for mark in list(_HEREDOC.finditer(line)) if "<<" in line else ():
            ends = places.get(mark[2], [])
            stop = bisect_right(ends, following - 1)
            if stop == len(ends):
                continue  # a shift, or a document without an end
            body = "\n".join(lines[following : ends[stop]])
            literal = bool(mark[1]) or not any(character in body for character in "$`\\")
            line = line.replace(mark[0], f"<< {len(found)} ", 1)
            found.append(Heredoc(f"{body}\n" if body or ends[stop] > following else "", literal))
            following = ends[stop] + 1
        kept.append(line)
        at = following
    return "\n".join(kept)
