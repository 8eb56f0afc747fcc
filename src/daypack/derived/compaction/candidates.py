"""Candidates: the sentences of a conversation with their scores, and the choice of the best that differ."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from daypack.derived.compaction.account import Account
from daypack.derived.compaction.utterances import Utterance
from daypack.derived.readings import superseded
from daypack.forks import cached_property
from daypack.text.cues.cues import Cues, find_cues, words_of
from daypack.text.extract import MAX_SENTENCE_CHARS, literal_density, overlap
from daypack.text.language import language_of
from daypack.text.literals import literals
from daypack.text.sentences import Sentence, sentences
from daypack.text.trim import is_cut_within_a_word, trim
from daypack.text.words import content_words

_MARKER_SIGNS = r"(?:[-*+•‣▪·]|\(?\d{1,3}[.)]|[A-Za-z][.)])\s+"
_BOX_SIGNS = r"\[([ xX✓])\]\s+"
_MARKER = re.compile(_MARKER_SIGNS)
_BOX = re.compile(_BOX_SIGNS)
# Words that only say that an answer begins; "no" is not among them.
_BEFORE = re.compile(
    rf"(?:{_MARKER_SIGNS}|{_BOX_SIGNS}|#{{1,6}}\s+|"
    r"(?:good|great|ok|okay|perfect|right|sure|certainly|absolutely|hmm+|well|ah|oh|hey|wow|yeah|yes|nice|awesome|"
    r"excellent|alright|thanks|hi|hello)(?:\s?[,.!:;]+\s+|\s+[–—-]\s+)(?=\S)){1,4}",
    re.IGNORECASE,
)
_POOL = 8  # so many times what is asked for is looked at
_LOOK_BACK = 200  # sentences, for what a correction is about
_REPEATING = 0.5  # lost by a sentence whose words all occur in a better one
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_LEAST_WORDS = 3
_LEAST_LABELLED = 5  # "Depends on: task 1" is a label
_LEAST_CHARS = 12
_LEAST_CHARS_UNSPACED = 6
LANGUAGE_CHARS = 400  # of a message: enough to tell its language by
# A sentence that begins so is about the one before it.
_BACKWARD = re.compile(
    r"(?:so|but|and|then|also|however|therefore|thus|hence|otherwise|instead|still|plus|"
    r"the (?:only|other|first|last) ones?|one more|another)\b",
    re.IGNORECASE,
)
_LIGHT = re.compile(r"(?:so|but|and|also|however|plus)\b,?\s+", re.IGNORECASE)  # can be left off
_CONDITION = re.compile(r"(?:if|when|because|since|while|to)\b", re.IGNORECASE)
_POINTER = re.compile(r"(?:this|that|it|these|those|they|which)(?:'\w+|’\w+|\s+[a-z'’]+)", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:must (?:have|be)|likely|maybe|probably|perhaps|possibly|presumably|might|seems?|looks like|it appears|"
    r"appears to|(?:should|will|must|to) check|i guess|not sure|which suggests|suggests that)\b",
    re.IGNORECASE,
)
_INTENDED = re.compile(
    r"\b(?:needs? to|next steps?|let(?:'|’)s|let us|(?:we|i|you) should|remains to|(?:have|has) to be|"
    r"to be (?:done|decided)|todo)\b",
    re.IGNORECASE,
)
_OWN_PLAN = re.compile(
    r"\b(?:i|we)(?:(?:'|’)ll| will|(?:'|’)m going to|(?:'|’)re going to| am going to| can now| have to)\b",
    re.IGNORECASE,
)
_OWN_DEED = re.compile(
    r"(?:i|we)(?:(?:'|’)ve| have)?\s+(?:(?:just|now|also|then|already|successfully)\s+)?"
    r"(?!(?:found|discovered|need|want|see|use|have|decided|live|work)\b)[a-z]+ed\b"
    r"|(?:i|we)(?:(?:'|’)ve| have)?\s+(?:an?\s+(?:thorough|clear|good|full|complete)|"
    r"ran|run|wrote|written|made|did|done|put|built|set|read|looked)\b",
    re.IGNORECASE,
)
_DOING = re.compile(r"(?!(?:no|some|any|every)thing\b|during\b|string\b|according\b)[a-z]{2,}ing\b", re.IGNORECASE)
_FINITE = re.compile(
    r"\b(?:is|isn't|are|aren't|was|wasn't|were|has|had|have|can|cannot|can't|does|doesn't|do|don't|did|"
    r"didn't|requires?|"
    r"takes?|took|fails?|failed|returns?|raises?|gives?|gave|shows?|showed|works?|worked|means|breaks?|broke|needs?)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\b(?:missing|lacks?|wrong|unused|broken|undefined|incorrect|invalid|outdated|isn't|aren't|doesn't|don't|not|"
    r"no longer|fails?|failing|mismatch|conflicts?)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\b(?:root cause|turns out|caused by|culprit|deprecated)\b", re.IGNORECASE)
_MENDING = re.compile(
    r"\b(?:let me|i'll|i’ll|i will|i need to|let's|let’s|now)\b.{0,40}?"
    r"\b(?:fix|add|updat|remov|chang|correct|set|renam|replac|writ|adjust|mov|creat|switch|rewrit|us|"
    r"repair|mend|handl|clean|merg|put|install|extract|mak|simplif)(?:e|es|y|ing|ting)?\b"
    r"|^(?:fix|add|updat|remov|correct|renam|replac)ing\b",
    re.IGNORECASE,
)
_MENDED_WITHIN = 2  # sentences
_NOTED = re.compile(
    r"\b(?:note|remember|know|facts?|context|keep in mind|details?|info|setup|background)\b", re.IGNORECASE
)
_STATED = re.compile(
    r"\b(?:is|are|was|were|has|have|had|runs?|listens?|lives?|uses?|must|never|always)\b|=", re.IGNORECASE
)
_OPEN_HEADING = re.compile(
    r"\b(?:next(?: steps?)?|to-?dos?|still (?:to do|open|missing|needed|need)|"
    r"open (?:items|questions|issues|tasks|work)|follow[- ]?ups?|action items|outstanding|left to do|"
    r"not (?:yet )?done|we need to|needs? to be done)\b|"
    r"\b(?:remaining(?: work| tasks?| steps?| items?)?|pending|left)\W*$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\*\*[^*\n]{1,80}\*\*:?|`[^`\n]{1,80}`:?")
_CORRECTING = re.compile(
    r"(?:actually|correction|update|sorry|no|wait|i was wrong|edit)\b\s?[,:;.–—-]*\s+", re.IGNORECASE
)
_CORRECTIONS = frozenset(["actually", "correction", "update", "sorry", "wait", "wrong", "edit", "now"])


class Context(NamedTuple):
    """The meaning that the line before a list gives to its items."""

    decisions: float = 0.0
    facts: float = 0.0
    pending: float = 0.0
    doubt: float = 0.0
    request: float = 0.0  # the items are what is asked for
    mended: bool = False  # the sentences after it correct what it calls wrong


class Spot(NamedTuple):
    """The place of a sentence: its utterance, and how near the end it is, from 0 to 1."""

    utterance: Utterance
    place: float


class Candidate:
    """A sentence of an utterance."""

    def __init__(self, text: str, cues: Cues, spot: Spot, context: Context, box: str, sentence: str = "") -> None:
        self.text = text
        self.sentence = sentence or text  # as it is in the message
        self.cues = cues
        self.utterance = spot.utterance
        self.place = spot.place
        self.context = context
        self.box = box  # of a checkbox: " " open, "x" done, nothing when there is none

    @cached_property
    def density(self) -> float:
        """The share of literals."""
        return literal_density(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words."""
        return frozenset(content_words(self.text))

    @cached_property
    def literals(self) -> frozenset[str]:
        """The literals, which must match exactly."""
        return frozenset(literal.text for literal in literals(self.text))


class Ranked(NamedTuple):
    """A candidate and its score for a section."""

    candidate: Candidate
    value: float


def candidates(utterances: Sequence[Utterance], account: Account) -> Iterator[Candidate]:
    """Return the sentences of a conversation that are complete by themselves, oldest first."""
    last = max(1, len(utterances) - 1)
    for at, utterance in enumerate(utterances):
        yield from _of_one(Spot(utterance, at / last), account)


def tidy(text: str) -> str:
    """Return a sentence on one line, without list marker, heading sign and interjection."""
    line = " ".join(text.split())
    if found := _BEFORE.match(line):
        line = line[found.end() :]
    return _without_loose_emphasis(line)


def shorten(text: str, max_chars: int) -> str:
    """Return the first sentence of a line within a number of characters; nothing when only a part of a word fits."""
    found = sentences(text)
    if not found:
        return ""
    line = found[0].text
    kept = trim(line, max_chars)
    return "" if is_cut_within_a_word(kept, line) else _without_loose_emphasis(kept)


def choose(ranked: Iterable[Ranked], count: int) -> tuple[list[Ranked], list[tuple[Ranked, Ranked]]]:
    """Return the best, best first, and what repeats one of them, as pairs.

    What differs in a literal or a "not" repeats nothing.
    """
    pool = sorted(ranked, key=lambda candidate: -candidate.value)[: count * _POOL]
    nearest = [0.0] * len(pool)  # how much of each is in what was chosen
    chosen: list[Ranked] = []
    repeating: list[tuple[Ranked, Ranked]] = []
    while pool and len(chosen) < count:
        best = max(range(len(pool)), key=lambda at: (pool[at].value - _REPEATING * max(0.0, nearest[at] - 0.25), -at))
        one = pool.pop(best)
        nearest.pop(best)
        twin = next((other for other in chosen if is_same(one.candidate, other.candidate)), None)
        if twin:
            repeating.append((one, twin))
            continue
        chosen.append(one)
        words = one.candidate.words
        nearest = [max(near, overlap(words, other.candidate.words)) for near, other in zip(nearest, pool, strict=True)]
    return sorted(chosen, key=lambda candidate: -candidate.value), repeating


def newest_only(ranked: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
    """Split statements, oldest first, into those that hold and those that a later one has made history."""
    gone = set(superseded([(choice.candidate.utterance.seq, choice.candidate.text) for choice in ranked]))
    for at, choice in enumerate(ranked):
        if _CORRECTING.match(choice.candidate.text):
            gone.update(_corrected(choice.candidate, ranked, at, gone))
    kept = [choice for at, choice in enumerate(ranked) if at not in gone]
    return kept, [ranked[at] for at in sorted(gone)]


def _corrected(line: Candidate, ranked: Sequence[Ranked], stop: int, gone: set[int]) -> list[int]:
    """Return the sentences that a correction is about: the newest before it with the same subject."""
    words = _plain_words(line)
    for at in range(stop - 1, max(-1, stop - _LOOK_BACK), -1):
        other = ranked[at].candidate
        if at in gone or bool(other.literals) != bool(line.literals):
            continue
        theirs = _plain_words(other)
        if words and theirs and 2 * len(words & theirs) >= min(len(words), len(theirs)) + 1:
            return [at]
    return []


def _plain_words(line: Candidate) -> frozenset[str]:
    own = {part for literal in line.literals for part in content_words(literal)}
    return line.words - own - _CORRECTIONS


def is_same(first: Candidate, second: Candidate) -> bool:
    """Return True if two sentences say the same: equal words, no literal and no "not" that only one of them has."""
    if first.text.casefold() == second.text.casefold():
        return True
    if bool(first.cues.denied) != bool(second.cues.denied) or first.literals != second.literals:
        return False
    both = len(first.words & second.words)
    return both > 0 and both >= 0.75 * len(first.words | second.words)


def _of_one(spot: Spot, account: Account) -> Iterator[Candidate]:
    utterance, context = spot.utterance, Context()
    language = language_of(words_of(utterance.text[:LANGUAGE_CHARS]))
    asked = 0.0
    every = sentences(utterance.text)
    for at, sentence in enumerate(every):
        marker, box = _list_marks(utterance.text, sentence.start)
        text = tidy(sentence.text[: 4 * MAX_SENTENCE_CHARS])
        if marker == "#" or text.rstrip("*_").endswith((":", "：")):
            context = _context(text)
            account.lose(utterance.seq, sentence.text, "fragment")
            continue
        words = words_of(text)
        cues = find_cues(text, language, words)
        if not marker:
            context, asked = Context(), 0.0 if _NOTED.search(text) else cues.request
        if says_something(text, words):
            around = context._replace(request=max(context.request, asked)) if marker else context
            if utterance.voice == "assistant" and _is_mended(text, every[at + 1 : at + 1 + _MENDED_WITHIN]):
                around = around._replace(mended=True)
            account.lose(utterance.seq, sentence.text, "unremarkable")
            yield Candidate(text, cues, spot, around, box, sentence.text)
        else:
            account.lose(utterance.seq, sentence.text, "fragment")


def _is_mended(text: str, after: Sequence[Sentence]) -> bool:
    if not _WRONG.search(text) or _CAUSE.search(text):
        return False
    return any(_MENDING.search(later.text[:200]) for later in after)


def as_finding(line: Candidate) -> str:
    """Return the words of a sentence that make a fact by themselves, or an empty text."""
    text, assistant = line.text, line.utterance.voice == "assistant"
    if line.utterance.scripted or line.context.mended or line.cues.asks or not _is_certain(text):
        return ""
    if not assistant and line.context.request >= 0.8 and not _STATED.search(text):
        return ""  # an item of a request
    if _BACKWARD.match(text):
        # "Also, the port is 8081" is complete without its first word.
        light = _LIGHT.match(text)
        text = text[light.end() :] if light and line.density else ""
        text = "" if _CONDITION.match(text) else text
    if not text or _BACKWARD.match(text) or (_POINTER.match(text) and not line.density):
        return ""
    return "" if assistant and _is_narration(text, dense=line.density > 0) else text


def refers_back(text: str) -> bool:
    """Return True if a sentence begins with a word that refers to the sentence before it."""
    return _BACKWARD.match(text) is not None


def _is_certain(text: str) -> bool:
    """Return True if a sentence states a fact, neither a possibility nor a plan."""
    return not (text.endswith(("?", "？")) or _HEDGED.search(text) or _INTENDED.search(text))


def _is_narration(text: str, *, dense: bool) -> bool:
    """Return True if an assistant narrates its work and reports no finding; `dense`: the sentence has literals."""
    if _OWN_PLAN.search(text):
        return True
    if _OWN_DEED.match(text):
        return not dense
    return bool(_DOING.match(text)) and not _FINITE.search(text)


def _list_marks(text: str, start: int) -> tuple[str, str]:
    """Return what makes a sentence's line a heading or an item of a list, and the mark in its checkbox."""
    line = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
    found = _MARKER.match(line)
    if not found:
        return line[:1] if line.startswith("#") else "", ""
    box = _BOX.match(line, found.end())
    return found[0], box[1] if box else ""


def _context(text: str) -> Context:
    cues = find_cues(text)
    # "I need to know:" is a request, "next steps:" is not; "pending reviews:" is a subject.
    pending = cues.pending >= (0.7 if cues.request < 0.8 else 1.0)
    if pending and language_of(words_of(text)) == "en":
        pending = _OPEN_HEADING.search(text) is not None
    decided = max(cues.decisions, cues.order) >= 1.0
    asked = 0.0 if _NOTED.search(text) else cues.request
    return Context(float(decided), float(cues.facts >= 1.0), float(pending), float(cues.doubt >= 1.0), asked)


def is_spaced(text: str) -> bool:
    """Return True if a text is in a script that puts spaces between words."""
    return text.isascii() or not _UNSPACED.search(text)


def says_something(text: str, words: Sequence[str]) -> bool:
    """Return True if a text is long enough for a sentence, and more than a label."""
    spaced = is_spaced(text)
    if spaced:
        if len(text) < _LEAST_CHARS or len(words) < _LEAST_WORDS:
            return False
    elif len(text) < _LEAST_CHARS_UNSPACED:
        return False
    # Half of a code span is half of a sentence.
    if text.count("`") % 2 or (":" in text and spaced and len(words) < _LEAST_LABELLED):
        return False
    return len("".join(words)) * 2 > len(text) and _LABEL.fullmatch(text) is None


def _without_loose_emphasis(line: str) -> str:
    """Take off emphasis marks and quotation marks at an end whose partners are not there."""
    for mark in ("**", "__", "`", "*", '"'):
        if mark in line and line.count(mark) % 2:
            if line.startswith(mark):
                line = line[len(mark) :].lstrip()
            elif line.endswith(mark):
                line = line[: -len(mark)].rstrip()
    return line
