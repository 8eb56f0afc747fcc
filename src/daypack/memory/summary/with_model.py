"""Summaries and documents by a model: taken over only as far as the raw entries say the same.

A model that fails, stops early, adds a number nobody said or loses what must be kept is not believed: then the way
without a model is taken.
"""

from collections.abc import Iterator, Sequence

from daypack.errors import DaypackError
from daypack.llm.completion.port import Completer, Prompt
from daypack.memory.document.compare import read_line
from daypack.memory.document.document import is_placeholder, merge
from daypack.memory.document.markdown import Page, Section, fit_document, is_ticked, parse, render
from daypack.memory.document.raw import RawEntry
from daypack.memory.prompts import assemble
from daypack.memory.summary.summary import ROLES, summarise_entry, trim_summary
from daypack.text.clean import clean
from daypack.text.literals import literals, occurs
from daypack.text.sentences import sentences
from daypack.text.words import count_negations, stems_of
from daypack.types.memory import About

MIN_SHARE = 0.7  # of the words of a line that one sentence, or one line of the former document, must have
_MIN_SUMMARY_SHARE = 0.5
_MIN_COVER = 0.6  # of the words of a line, in one other line: then it is said there
_SUMMARY_TOKENS = 200
_DOCUMENT_TOKENS = 2048
_CHARS_PER_TOKEN = 3
_FRAME = frozenset(
    stem
    for word in (*ROLES.values(), "state ask say said decide agree propose want plan need task confirmed others")
    for stem in stems_of(word)
)


def summarise_with(completer: Completer, prompt: str, raw: str, about: About | None, document: str | None) -> str:
    """Return a summary by a model; the one without a model where the model's cannot be believed."""
    plain = summarise_entry(raw, about, document)
    about = about or About()
    who = about.author or ROLES.get((about.role or "").lower(), "unknown")
    user = f"Context document:\n{document or ''}\n\nSpeaker: {who}\nRaw entry:\n{raw}"
    answer = _ask(completer, Prompt(assemble(prompt, "add_entry"), user, max_tokens=_SUMMARY_TOKENS))
    text = " ".join(answer.split()).removeprefix("Summary:").strip().strip('"“”')
    if not text:
        return plain
    source = f"{raw}\n{document or ''}\n{who}"
    words = stems_of(text) - _FRAME
    known = stems_of(source)
    said = all(occurs(one.text, source) for one in literals(text))
    said = said and len(words & known) >= _MIN_SUMMARY_SHARE * len(words)
    # A "not" that is lost or made up turns a summary round.
    turned = (count_negations(text) > 0) != (count_negations(raw) > 0)
    return trim_summary(text) if said and not turned else plain


def merge_with(completer: Completer, prompt: str, document: str, entries: Sequence[RawEntry]) -> str:
    """Return a document that a model brought up to date; without a model where its answer cannot be believed."""
    plain = merge(document, entries)
    if not entries:
        return plain
    told = "\n\n".join(f"[{' '.join(_about(one))}]\n{one.text}" for one in entries)
    user = f"Context document:\n{document}\n\nNew raw entries, oldest first:\n{told}"
    system = assemble(prompt, "put_context")
    room = (completer.window_tokens - _DOCUMENT_TOKENS) * _CHARS_PER_TOKEN
    if len(system) + len(user) > room:
        return plain
    answer = _ask(completer, Prompt(system, user, max_tokens=_DOCUMENT_TOKENS))
    page = parse(answer)
    if not answer or is_placeholder(answer) or not any(section.name for section in page):
        return plain
    grounded = _grounded(page, _Source(document, entries))
    return fit_document(render(_completed(grounded, parse(document), parse(plain))))


def _ask(completer: Completer, prompt: Prompt) -> str:
    """Return what a model said, cleaned; nothing when it failed or did not come to an end."""
    try:
        completion = completer.complete(prompt)
    except DaypackError:
        return ""
    return clean(completion.text)[0] if completion.finish == "stop" else ""


def _about(entry: RawEntry) -> Iterator[str]:
    yield entry.author or ROLES.get((entry.role or "").lower(), "unknown")
    if entry.at:
        yield entry.at


class _Source:
    """What a line may be made of: sentences of raw entries, and lines of the former document."""

    def __init__(self, document: str, entries: Sequence[RawEntry]) -> None:
        names = "\n".join(" ".join(_about(one)) for one in entries)
        self._text = "\n".join([document, names, *(one.text for one in entries)])
        self._people = frozenset(stems_of(names)) | _FRAME
        said = [one.text for entry in entries for one in sentences(entry.text)]
        self._lines = frozenset(line.strip() for line in document.split("\n"))
        self._pieces = [(stems_of(piece), count_negations(piece) > 0) for piece in (*document.split("\n"), *said)]

    def says(self, line: str) -> bool:
        """Whether a line is said: its literals verbatim, most of its words in one place, its "not" there too."""
        if line.strip() in self._lines:
            return True
        read = read_line(line)
        if not all(occurs(one.text, self._text) for one in literals(read.text)):
            return False
        words = read.stems - self._people
        if not words:
            return occurs(read.text, self._text)
        shares = ((len(words & stems) / len(words), denies) for stems, denies in self._pieces)
        return any(share >= MIN_SHARE and denies == read.denies for share, denies in shares)


def _grounded(page: Page, source: _Source) -> Page:
    """Return a page without the lines that nobody said."""
    return tuple(
        section._replace(lines=tuple(line for line in section.lines if not line.strip() or source.says(line)))
        for section in page
    )


def _completed(page: Page, former: Page, plain: Page) -> Page:
    """Return the former page with the model's lines under the five headings, and with all that they leave out.

    A line of the former page may be put into other words; it may go only if the way without a model replaced it too.
    """
    unchanged = {line for section in plain for line in section.lines}
    words = [read_line(line).stems for section in page for line in section.lines if line.strip()]
    sections: list[Section] = []
    for section in former:
        if not section.name:
            sections.append(section)
            continue
        new = [line for one in page if one.name == section.name for line in one.lines if line.strip()]
        old = [line for line in section.lines if line.strip() and line in unchanged and line not in new]
        lost = [line for line in old if not is_ticked(line) and not _is_covered(read_line(line).stems, words)]
        sections.append(section._replace(lines=(*lost, *new, "")))
    known = {section.name for section in former}
    for one in page:
        lines = [line for line in one.lines if line.strip()]
        if one.name and one.name not in known and lines:
            sections.append(Section(f"## {one.name}", one.name, (*lines, "")))
    return tuple(sections)


def _is_covered(line: frozenset[str], words: Sequence[frozenset[str]]) -> bool:
    return any(len(line & one) >= _MIN_COVER * len(line) for one in words)
