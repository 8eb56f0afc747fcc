"""Literals: the parts of a text that are right only when they are copied letter by letter.

    Raised the timeout in src/app.py:12 to 120s, see `run_export`   ->   path src/app.py, number 12, number 120s,
                                                                         id run_export

Paths, addresses, numbers, versions, identifiers and quoted names. One pattern runs over the text, skips plain words
inside the pattern, and stops at words that may be literals; what each is, is asked once per word. No quantifier gives
back what it took, so the work is linear in the text, even in a hostile one.

A literal in quotation marks or backticks is given without them. `text[start:stop]` is always the literal. In text that
holds JSON text, an escaped line break or tab ends a word as the real one does.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

MAX_QUOTED_CHARS = 80
MAX_LITERAL_CHARS = 400  # longer words are data: base64, minified code


class FoundLiteral(NamedTuple):
    """One literal; kind is path, url, number, id, version or quoted."""

    kind: str
    text: str
    start: int
    stop: int


_Span = tuple[str, int, int]

# Letters that words of paths and names are made of: not those of scripts that put no space between words.
_LETTERS = r"0-9A-Za-z_\u00c0-\u024f\u0370-\u052f"
_RUN = rf"[{_LETTERS}./~*@$%\-]"
_QUOTES = "\"'`“‘「『«"
_INNER = rf"{{1,{MAX_QUOTED_CHARS}}}+"
_SCAN = re.compile(
    rf"(?:[A-Z]?[a-z]++(?=[\s,;!?)\]}}=<>|\"]|\((?!\))|:(?![/\\])|\.(?:\s|\Z)|\Z)"
    r"|[.%~*@/-]{1,8}+(?=[\s\"'`(),;:{}=<>|\[\]])"
    rf"|(?<!\\)\\{{1,8}}+(?:[nrt]|u[0-9a-fA-F]{{4}}|{_RUN}++)|[^{_LETTERS}./~*@$%€£¥\-{_QUOTES}\\#]++)*+"
    r"(?:"
    # The end of an address is never a sentence's full stop or comma.
    rf"(?P<url>[A-Za-z][A-Za-z0-9+.-]{{1,15}}+://[{_LETTERS}/~%$&=@*-]++"
    rf"(?:(?:[.,:;?!#'+]{{1,8}}+|\([{_LETTERS}./,~%-]{{0,80}}+\))[{_LETTERS}/~%$&=@*-]*+(?<=[{_LETTERS}/~%$&=@*)-]))*+)"
    rf"|(?P<drive>[A-Za-z]:\\{{1,2}}[{_LETTERS}.\-~$@]++(?:\\{{1,2}}[{_LETTERS}.\-~$@]++)*+)"
    rf"|(?P<dotted>\.{{1,2}}\\{{1,2}}[{_LETTERS}.\-]++(?:\\{{1,2}}[{_LETTERS}.\-]++)*+)"
    rf"|(?P<windows>[{_LETTERS}-]++(?:\\{{1,2}}(?![nrtu0])[{_LETTERS}-]++(?:\.[{_LETTERS}-]++)*+)++)"
    r"|(?<=[A-Za-z]:)(?P<line>\d{1,7}+)(?::\d{1,5}+)?(?![0-9A-Za-z_.,%:-])"  # path:line:column
    r"|(?P<address>\d{1,3}+(?:\.\d{1,3}+){3}(?::\d{1,5}+)?)(?![0-9A-Za-z_.:-])"
    r"|(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9}+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d{1,2}+:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    rf"(?![{_LETTERS}]|:\d)"
    r"|(?P<amount>[$€£¥]?\d{1,3}+(?:,\d{3})++(?:\.\d{1,12}+)?%?)(?![,.]?\d)"
    r"|(?P<price>[€£¥]\d{1,15}+(?:\.\d{1,12}+)?)"
    rf"|(?P<issue>#\d{{1,9}}+)(?![{_LETTERS}])"
    rf"|(?P<variable>\$\{{[A-Za-z_][A-Za-z0-9_]{{0,80}}+\}}(?:/{_RUN}++)?)"
    rf"|(?P<run>{_RUN}++(?:\(\))?)"
    rf"|`(?P<code>[^`\n]{_INNER})`"
    rf"|\"(?P<double>[^\"\n\\]{_INNER})\"|“(?P<curly>[^“”\n]{_INNER})”|(?<![{_LETTERS}])'(?P<single>[^'\n\\]{_INNER})'(?![{_LETTERS}])"
    rf"|‘(?P<curl>[^‘’\n]{_INNER})’|「(?P<corner>[^「」\n]{_INNER})」|『(?P<corners>[^『』\n]{_INNER})』|«(?P<angle>[^«»\n]{_INNER})»"
    r"|(?s:.)|\Z)"  # a match at every place: a search that fails would try each of the words it skipped again
)
_KIND = {
    **dict.fromkeys(("drive", "dotted", "windows"), "path"),
    **dict.fromkeys(("line", "time", "amount", "price"), "number"),
    **dict.fromkeys(("address", "issue", "variable"), "id"),
}
_LOOSE = frozenset({"drive", "dotted", "windows", "variable"})  # may have taken a full stop along
_QUOTED = frozenset({"double", "curly", "single", "curl", "corner", "corners", "angle"})

_ENDINGS = """
astro avi avro bak bash bat bin bmp bz2 c cc cfg cjs class clj cmake cmd conf cpp cs css csv cu cxx dart db deb diff
dll doc docx ejs elf eml env erl ex exe exs fish flac fs gguf gif go gql gradle graphql groovy gz h hbs hcl hh hpp hs
htm html ico idx ini ipynb jar java jl jpeg jpg js json json5 jsonc jsonl jsx key kt kts lark less lock log lua m make
mako md mdx mjs mk mm mov mp3 mp4 mts nim nix npy npz onnx orig out parquet patch pdf pem php pid pkl pl plist png po
pom ppt pptx prisma proto ps1 pt pth py pyc pyi pyx r rar rb rej rpm rs rst s safetensors sass scala scss sh so sol
spec sql sqlite sqlite3 srt step svelte svg swift sum tar tex tf tfvars tgz tmp toml ts tsv tsx ttf txt vb vim vue
wasm wav webm webp whl woff woff2 xls xlsx xml xsd xz yaml yml zig zip zsh zst
"""
ENDINGS = frozenset(_ENDINGS.split())
# Two words with a slash between them that are not a path.
_PAIRS_TEXT = """
and/or either/or he/she she/he his/her her/his him/her s/he yes/no on/off true/false read/write input/output i/o n/a
w/o w/ tcp/ip client/server pass/fail up/down km/h success/failure start/stop before/after in/out y/n ok/error
"""
_PAIRS = frozenset(_PAIRS_TEXT.split())

_PATH = re.compile(rf"@?[{_LETTERS}.*~$%@-]*+(?:/[{_LETTERS}.*~$%@-]*+)++")
_FRACTION = re.compile(r"\d{1,9}+(?:/\d{1,9}+){1,2}+")
_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9]*+(?:[-_.][A-Za-z0-9]++)*+")
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*+")
_MAIL = re.compile(rf"[{_LETTERS}.%-]++@(?:[{_LETTERS}-]++\.)++(?<=\.)[A-Za-z]{{2,24}}+")
_NUMBER = re.compile(
    r"[~-]?\$?(?P<bare>-?\d++(?:\.\d++)?(?:[eE]-?\d{1,3}+)?(?:%|[A-Za-zµ]{1,5}+(?:/[A-Za-z]{1,5}+)?)?)"
)
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?:T\d\d)?")
_HEX = re.compile(r"0[xX][0-9A-Fa-f]++|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}+")
_HYPHENED = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_VERSION = re.compile(r"[vV]?\d++(?:\.\d++){2,4}+(?:[.-]?[A-Za-z]++[0-9A-Za-z.-]*+)?|[vV]\d++(?:\.\d++)*+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_DOTTED = re.compile(rf"[{_LETTERS}]++(?:\.[{_LETTERS}-]{{2,}}+)++")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_ALNUM = re.compile(r"[^\W_]")
_SPACE = re.compile(r"\s")
_DIGIT = re.compile(r"\d")


def literals(text: str) -> list[FoundLiteral]:
    """Return every literal of a text, in order; none overlaps another."""
    found: list[FoundLiteral] = []
    for match in _SCAN.finditer(text):
        group = match.lastgroup
        if group is None:
            continue
        start, stop = match.span(group)
        word = text[start:stop]
        for kind, a, b in _read(group, word):
            found.append(FoundLiteral(kind, word[a:b], start + a, start + b))
    return found


def occurs(literal: str, source: str) -> bool:
    """Return True if a literal occurs in a text verbatim, and not as a part of a longer path, number or word."""
    return next(places(literal, source), None) is not None


def places(literal: str, source: str) -> Iterator[int]:
    """Yield every position of a literal in a text, see `occurs`."""
    if not literal:
        return
    at = source.find(literal)
    while at >= 0:
        stop = at + len(literal)
        if not (_continues_before(source, at, literal[0]) or _continues_after(source, at, stop)):
            yield at
        at = source.find(literal, at + 1)


@lru_cache(maxsize=1 << 14)  # the words of a transcript come again and again
def _read(group: str, word: str) -> tuple[_Span, ...]:
    """Return the literals of what the pattern stopped at."""
    if group == "url":
        return (("url", 0, len(word)),)
    if len(word) > MAX_LITERAL_CHARS:
        return ()
    if group == "run":
        return _read_run(word)
    if group == "code":
        return _read_quoted(word, "id")
    if group in _QUOTED:
        return _read_quoted(word, "quoted")
    return ((_KIND[group], 0, len(word.rstrip(".-")) if group in _LOOSE else len(word)),)


def _read_quoted(inner: str, kind: str) -> tuple[_Span, ...]:
    """Return a quoted name, or the path, number … if there is nothing else between the quotation marks."""
    if inner != inner.strip() or not _ALNUM.search(inner):
        return ()
    if not _SPACE.search(inner):
        match = _SCAN.match(inner)
        if match and match.end() == len(inner) and match.lastgroup and match.start(match.lastgroup) == 0:
            spans = _read(match.lastgroup, inner)
            if len(spans) == 1 and spans[0][1:] == (0, len(inner)):
                return spans
    return ((kind, 0, len(inner)),)


def _read_run(word: str) -> tuple[_Span, ...]:
    """Return the literals of a run of letters, digits and the signs that paths and names are made of."""
    called = word.endswith("()")
    body = word[:-2] if called else word
    start, stop = 0, len(body.rstrip(".-~@$"))
    if body.startswith("*") and ("/" not in body or body.startswith("**")) and not body.startswith(("*.", "**/")):
        start = len(body) - len(body.lstrip("*"))  # emphasis, not a glob
    if stop > start and body[stop - 1] == "*" and ("/" not in body[start:stop] or start):
        stop = len(body[:stop].rstrip("*"))
    if start >= stop:
        return ()
    inner = body[start:stop]
    if "*" in inner and "/" not in inner and not inner.startswith("*."):
        return _read_pieces(inner, start, "*")
    if called and stop == len(body):
        spans = _read_word(inner)
        return tuple((k, a + start, b + start) for k, a, b in spans) or (("id", start, len(word)),)
    return tuple((kind, a + start, b + start) for kind, a, b in _read_word(inner))


def _read_pieces(word: str, offset: int, sign: str) -> tuple[_Span, ...]:
    spans: list[_Span] = []
    for piece in word.split(sign):
        spans += [(kind, a + offset, b + offset) for kind, a, b in (_read_run(piece) if piece else ())]
        offset += len(piece) + len(sign)
    return tuple(spans)


def _read_word(word: str) -> tuple[_Span, ...]:
    whole = len(word)
    first = word[0]
    for sign, read in _BY_SIGN:
        if sign in word:
            spans = read(word)
            if spans is not None:
                return spans
    if first == "-":
        return (("id", 0, whole),) if _FLAG.fullmatch(word) else _shift(_read_run(word.lstrip("-")), word)
    if first == "~":
        return _shift(_read_run(word[1:]), word)
    if _DIGIT.search(word):
        return _read_digits(word)
    if "." in word:
        return _read_dots(word)
    return (("id", 0, whole),) if _is_name(word) else ()


def _shift(spans: tuple[_Span, ...], word: str) -> tuple[_Span, ...]:
    by = len(word) - len(word.lstrip("-")) or 1
    return tuple((kind, a + by, b + by) for kind, a, b in spans)


def _read_slashes(word: str) -> tuple[_Span, ...] | None:
    if _FRACTION.fullmatch(word) or (word[0].isdigit() and _NUMBER.fullmatch(word)):
        return (("number", 0, len(word)),)
    if word.casefold() in _PAIRS or not any(char.isalnum() for char in word):
        return ()
    start = 1 if word[0] == "-" else 0
    if word.startswith("//"):
        start = len(word) - len(word.lstrip("/"))  # a comment
        return tuple((kind, a + start, b + start) for kind, a, b in _read_run(word[start:]))
    return (("path", start, len(word)),) if _PATH.fullmatch(word, start) else ()


def _read_at(word: str) -> tuple[_Span, ...] | None:
    return (("id", 0, len(word)),) if _MAIL.fullmatch(word) else _read_pieces(word, 0, "@")


def _read_dollar(word: str) -> tuple[_Span, ...] | None:
    if _VARIABLE.fullmatch(word):
        return (("id", 0, len(word)),)
    return None if _NUMBER.fullmatch(word) else _read_pieces(word, 0, "$")


def _read_percent(word: str) -> tuple[_Span, ...] | None:
    return None if _NUMBER.fullmatch(word) else _read_pieces(word, 0, "%")


_BY_SIGN: tuple[tuple[str, Callable[[str], tuple[_Span, ...] | None]], ...] = (
    ("/", _read_slashes),
    ("@", _read_at),
    ("$", _read_dollar),
    ("%", _read_percent),
)


def _read_digits(word: str) -> tuple[_Span, ...]:
    whole = len(word)
    if _HEX.fullmatch(word) or _HYPHENED.fullmatch(word) or _ADDRESS.fullmatch(word):
        return (("id", 0, whole),)
    if _DATE.fullmatch(word):
        return (("number", 0, whole),)
    if _VERSION.fullmatch(word):
        return (("version", 0, whole),)
    if match := _NUMBER.fullmatch(word):
        return (("number", match.start("bare") if word[0] == "~" else 0, whole),)
    if _has_ending(word):
        return (("path", 0, whole),)
    return (("id", 0, whole),)


def _read_dots(word: str) -> tuple[_Span, ...]:
    if _has_ending(word):
        return (("path", 0, len(word)),)
    if word[0] == "." and len(word) > 2 and word[1].isalpha():
        return (("path", 0, len(word)),)  # a dotfile
    if _DOTTED.fullmatch(word):
        return (("id", 0, len(word)),)
    return _read_pieces(word, 0, ".")


def _has_ending(word: str) -> bool:
    name, _, ending = word.rpartition(".")
    # A capital letter after a full stop alone is an abbreviation: U.S.
    return bool(name) and ending.casefold() in ENDINGS and (len(ending) > 1 or ending.islower())


def _is_name(word: str) -> bool:
    """Return True if a word without digits and dots is an identifier: snake_case, camelCase, SCREAMING_CASE."""
    if "_" in word:
        return any(char.isalpha() for char in word)
    return _HUMP.search(word) is not None


_LETTER = re.compile(rf"[{_LETTERS}]")
_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")
_FILE_LINE = re.compile(r"[A-Za-z]:\Z")


def _continues_before(source: str, at: int, first: str) -> bool:
    """Return True if the character before a position belongs to the same word."""
    if not at:
        return False
    char = source[at - 1]
    before = source[at - 2] if at > 1 else ""
    if _LETTER.match(char):
        # The end of an escaped line break is no letter of the word after it.
        if before == "\\" and char in "nrt":
            return False
        return _LETTER.match(first) is not None
    if char in "/\\":
        return char == "/" or before != "\\"
    if char == ",":
        return _THOUSANDS.match(source, at - 2) is not None
    if char == ":":
        return first.isdigit() and before.isdigit()
    if char in ".-":
        return _LETTER.match(first) is not None and bool(before) and _LETTER.match(before) is not None
    return False


def _continues_after(source: str, at: int, stop: int) -> bool:
    """Return True if the text after a literal belongs to the same word."""
    if stop >= len(source):
        return False
    char, last = source[stop], source[stop - 1]
    after = source[stop + 1] if stop + 1 < len(source) else ""
    if _LETTER.match(char):
        return _LETTER.match(last) is not None
    if char in "/\\":
        return (
            bool(after) and (after in ".*" or _LETTER.match(after) is not None) and (char == "/" or after not in "nrt")
        )
    if char == "%":
        return last.isdigit()
    if char in ",:":
        return (
            last.isdigit() and after.isdigit() and not (char == ":" and _FILE_LINE.search(source, max(0, at - 2), at))
        )
    if char in ".-":
        return _LETTER.match(last) is not None and bool(after) and _LETTER.match(after) is not None
    return False
