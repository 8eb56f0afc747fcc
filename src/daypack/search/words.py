"""Splits texts and queries into the words of the index: folding, stop words, character pairs, chunks, dates.

It is for FTS5's `ascii` tokenizer, to which letters, digits and all non-ASCII characters are parts of a word. So
word boundaries outside ASCII are decided here alone, and a term is always one token.

    fold("Café — 東京都, 2nd")  ->  "cafe   東京 京都 東 京 都 , 2nd"
"""

import re
from unicodedata import category, decimal, normalize

from daypack.text.english import SEARCH_STOP_WORDS

CHUNK_WORDS = 100
MAX_CHUNKS = 256
HEAD_CHARS, TAIL_CHARS = 120_000, 40_000  # the middle of a longer text is not indexed
MAX_WORD_CHARS = 64
QUERY_CHARS = 4_000  # used from each end of a query

_WHOLE_WORDS = 130  # a text up to this length is one chunk
_SPARE_WORDS = 25  # a shorter rest joins the previous chunk
_WHEN_CHARS, _AUTHOR_CHARS = 40, 120
_UNIT_CHARS = 16  # so many characters of an overlong run count as a word

_MONTHS = "January February March April May June July August September October November December"
_DATE = re.compile(r"(?<!\d)(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?!\d)")

# Scripts written without spaces, or (Korean) with endings glued to words: Han, kana, bopomofo, Hangul, Thai, Lao,
# Burmese, Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(r"\w+")
_TERM = re.compile("[0-9a-z\x80-\U0010ffff]+")
_LONG_TERM = re.compile(f"[0-9A-Za-z\x80-\U0010ffff]{{{MAX_WORD_CHARS + 1},}}")
_CODED = re.compile(f"[0-9A-Za-z+/=_-]{{{MAX_WORD_CHARS + 1},}}")
_SEPARATORS = re.compile(r"[+/=_-]")
_UNIT = re.compile(rf"([{_UNSPACED}]{{1,{_UNIT_CHARS}}})|[^\s{_UNSPACED}]{{1,256}}")
_SENTENCE_ENDS = frozenset(".!?;:。！？；")
_SPEAKER = re.compile(r"\s{0,4}([^\W\d_][\w.'’-]{1,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_ROLE_NAMES = "user assistant system tool human ai bot agent developer model function"


class _Folds(dict[int, str | None]):
    """Cache of folded characters."""

    def __missing__(self, code: int) -> str | None:
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(character: str) -> str | None:
    if character.isascii():
        return character
    kind = category(character)
    if kind[0] == "L":
        plain = (letter for letter in normalize("NFD", character.casefold()) if not "\u0300" <= letter <= "\u036f")
        return normalize("NFC", "".join(plain))
    if kind[0] == "N":
        digit = decimal(character, None)
        return character if digit is None else str(digit)
    if kind[0] == "M":  # accents are removed, vowel signs of Indic scripts belong to the word
        return None if "\u0300" <= character <= "\u036f" else character
    return None if kind == "Cf" else " "


_FOLDS = _Folds()


def fold(text: str) -> str:
    """Return `text` as it is indexed: no accents, unspaced runs as character pairs and characters, no encoded data."""
    if not text.isascii():
        text = normalize("NFKC", text).translate(_FOLDS)
        text = _LONG_TERM.sub(" ", _RUN.sub(_spell_run, text))
    parts = text.split()
    if parts and max(map(len, parts)) > MAX_WORD_CHARS:
        return _CODED.sub(_drop_coded, text)
    # Queries ignore stop words; dropping the obvious ones halves the work of the index.
    return " ".join([part for part in parts if part not in SEARCH_STOP_WORDS])


def drop_coded(text: str) -> str:
    """Return a text without base64 and similar data."""
    return _CODED.sub(_drop_coded, text) if max(map(len, text.split()), default=0) > MAX_WORD_CHARS else text


def _spell_run(run: re.Match[str]) -> str:
    text = run[0]
    pairs = [text[at : at + 2] for at in range(len(text) - 1)]
    return f" {' '.join(pairs)} {' '.join(text)} "


def _drop_coded(run: re.Match[str]) -> str:
    """Drop base64 and similar data, keep paths, which have a separator every few characters."""
    text = run[0]
    return " " if len(_SEPARATORS.findall(text)) * 16 < len(text) else text


def clip_query(query: str) -> str:
    """Return the part of a query that is used: all of it, or its two ends."""
    return query if len(query) <= 2 * QUERY_CHARS else f"{query[:QUERY_CHARS]} {query[-QUERY_CHARS:]}"


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, in its order, without stop words."""
    query = clip_query(query)
    if not query.isascii():
        query = _RUN.sub(_pair_run, normalize("NFKC", query).translate(_FOLDS))
    terms = dict.fromkeys(_TERM.findall(_DATE.sub(_spell_date, query).lower()))
    return [term for term in terms if term not in SEARCH_STOP_WORDS and len(term) <= MAX_WORD_CHARS]


def _pair_run(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(text[at : at + 2] for at in range(max(1, len(text) - 1)))} "


def index_header(when: str, author: str) -> str:
    """Return date and author as words; they precede every chunk."""
    date = _DATE.match(when)
    return fold(f"{_spell_date(date) if date else when[:_WHEN_CHARS]} {author[:_AUTHOR_CHARS]}")


def _spell_date(date: re.Match[str]) -> str:
    return f"{date[1]} {_MONTHS.split()[int(date[2]) - 1]} {int(date[3])}"


def is_unspaced(term: str) -> bool:
    """Return True for a term of a script without spaces: one or two characters, not always a word."""
    return _RUN.match(term) is not None


def name_words(author: str) -> list[str]:
    """Return the words by which a query may name an author; none for a role name."""
    return [word for word in query_terms(author) if len(word) > 1 and word not in _ROLE_NAMES.split()][:8]


def find_speaker(text: str) -> str:
    """Return the name in "Name: text", or ""."""
    found = _SPEAKER.match(text)
    return found[1] if found else ""


def is_paraphrase(text: str, summary: str) -> bool:
    """Return True if a summary paraphrases: more than a third of its words are not in the text."""
    folded = text.casefold()
    words = _WORD.findall(summary.casefold())
    return 3 * sum(word not in folded for word in words) > len(words)


def split_chunks(text: str) -> list[tuple[int, int, int]]:
    """Split a text into chunks of about a hundred words, (start, stop, words), preferably at sentence ends."""
    if len(text) // _UNIT_CHARS <= _WHOLE_WORDS:  # the words of a longer text need not be counted
        words = max(len(text.split()), len(text) // _UNIT_CHARS)
        if not text.isascii():
            words += sum(map(len, _RUN.findall(text))) // 2
        if words <= _WHOLE_WORDS:
            return [(0, len(text), words)]
    chunks: list[tuple[int, int, int]] = []
    for start, stop in _regions(text):
        chunks += _cut_region(text, start, stop)
    return chunks[:MAX_CHUNKS]


def _regions(text: str) -> tuple[tuple[int, int], ...]:
    size = len(text)
    if size <= HEAD_CHARS + TAIL_CHARS:
        return ((0, size),)
    return (0, HEAD_CHARS), (size - TAIL_CHARS, size)


def _cut_region(text: str, start: int, stop: int) -> list[tuple[int, int, int]]:
    chunks: list[tuple[int, int, int]] = []
    begin, end, words = -1, start, 0
    for unit in _UNIT.finditer(text, start, stop):
        if begin < 0:
            begin = unit.start()
        end = unit.end()
        words += 1 + (end - unit.start()) // (2 if unit[1] else _UNIT_CHARS)
        closed = text[end - 1] in _SENTENCE_ENDS or text[end : end + 1] == "\n"
        if words >= CHUNK_WORDS * 5 // 4 or (closed and words >= CHUNK_WORDS * 3 // 4):
            chunks.append((begin, end, words))
            begin, words = -1, 0
    if begin >= 0:
        if chunks and words < _SPARE_WORDS:
            first, _, before = chunks.pop()
            begin, words = first, words + before
        chunks.append((begin, end, words))
    return chunks
