"""Context documents written by a model: a line is accepted only if raw entries or the former document support it.

If the model fails, stops early or adds something unsupported, the document is merged without it.
"""

from collections.abc import Iterator, Sequence

from daypack.llm.completion.port import Completer, Prompt
from daypack.memory.document.compare import read_line
from daypack.memory.document.document import is_placeholder, merge
from daypack.memory.document.markdown import Section, Sections, fit_document, is_ticked, parse, render
from daypack.memory.prompts import assemble
from daypack.memory.summary.speakers import ROLES
from daypack.memory.summary.with_model import REPORTING_STEMS, complete
from daypack.text.literals import literals, occurs
from daypack.text.sentences import sentences
from daypack.text.words import count_negations, stems_of
from daypack.types.memory import RawEntry

MIN_SUPPORT = 0.7  # of a line's words, in one sentence of an entry or one line of the former document
_MIN_COVERAGE = 0.6  # of a line's words, in another line: that line then replaces it
_DOCUMENT_TOKENS = 2048
_CHARS_PER_TOKEN = 3


def merge_with(completer: Completer, prompt: str, document: str, entries: Sequence[RawEntry]) -> str:
    """Return a document that a model has updated; merged without a model if its answer is not supported."""
    plain = merge(document, entries)
    if not entries:
        return plain
    quoted = "\n\n".join(f"[{' '.join(_speaker_and_time(entry))}]\n{entry.text}" for entry in entries)
    user = f"Context document:\n{document}\n\nNew raw entries, oldest first:\n{quoted}"
    system = assemble(prompt, "put_context")
    room = (completer.window_tokens - _DOCUMENT_TOKENS) * _CHARS_PER_TOKEN
    if len(system) + len(user) > room:
        return plain
    answer = complete(completer, Prompt(system, user, max_tokens=_DOCUMENT_TOKENS))
    sections = parse(answer)
    if not answer or is_placeholder(answer) or not any(section.name for section in sections):
        return plain
    supported = _supported_lines(sections, _Source(document, entries))
    return fit_document(render(_with_former_lines(supported, parse(document), parse(plain))))


def _speaker_and_time(entry: RawEntry) -> Iterator[str]:
    yield entry.author or ROLES.get((entry.role or "").lower(), "unknown")
    if entry.at:
        yield entry.at


class _Source:
    """The text that may support a line: sentences of raw entries, and lines of the former document."""

    def __init__(self, document: str, entries: Sequence[RawEntry]) -> None:
        names = "\n".join(" ".join(_speaker_and_time(entry)) for entry in entries)
        self._text = "\n".join([document, names, *(entry.text for entry in entries)])
        self._ignored = frozenset(stems_of(names)) | REPORTING_STEMS
        self._lines = frozenset(line.strip() for line in document.split("\n"))
        spoken = [sentence.text for entry in entries for sentence in sentences(entry.text)]
        self._pieces = [(stems_of(piece), count_negations(piece) > 0) for piece in (*document.split("\n"), *spoken)]

    def supports(self, line: str) -> bool:
        """Return True if a line's literals occur verbatim and one piece has most of its words and the same negation."""
        if line.strip() in self._lines:
            return True
        read = read_line(line)
        if not all(occurs(literal.text, self._text) for literal in literals(read.text)):
            return False
        words = read.stems - self._ignored
        if not words:
            return occurs(read.text, self._text)
        shares = ((len(words & stems) / len(words), negated) for stems, negated in self._pieces)
        return any(share >= MIN_SUPPORT and negated == read.negated for share, negated in shares)


def _supported_lines(sections: Sections, source: _Source) -> Sections:
    return tuple(
        section._replace(lines=tuple(line for line in section.lines if not line.strip() or source.supports(line)))
        for section in sections
    )


def _with_former_lines(sections: Sections, former: Sections, plain: Sections) -> Sections:
    """Return the former document with the model's lines under the five headings, and with the lines it has dropped.

    The model may reword a line of the former document; it may drop a line only if merging without a model does too.
    """
    unchanged = {line for section in plain for line in section.lines}
    new_stems = [read_line(line).stems for section in sections for line in section.lines if line.strip()]
    result: list[Section] = []
    for section in former:
        if not section.name:
            result.append(section)
            continue
        new = [line for other in sections if other.name == section.name for line in other.lines if line.strip()]
        old = [line for line in section.lines if line.strip() and line in unchanged and line not in new]
        dropped = [line for line in old if not is_ticked(line) and not _is_covered(read_line(line).stems, new_stems)]
        result.append(section._replace(lines=(*dropped, *new, "")))
    known = {section.name for section in former}
    for section in sections:
        lines = [line for line in section.lines if line.strip()]
        if section.name and section.name not in known and lines:
            result.append(Section(f"## {section.name}", section.name, (*lines, "")))
    return tuple(result)


def _is_covered(line: frozenset[str], others: Sequence[frozenset[str]]) -> bool:
    return any(len(line & other) >= _MIN_COVERAGE * len(line) for other in others)
