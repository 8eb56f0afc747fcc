"""The task: what the newest request of substance asks for."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from daypack.derived.compaction.candidates import LANGUAGE_CHARS, shorten, tidy
from daypack.derived.compaction.utterances import Utterance
from daypack.derived.template import MAX_BULLET_CHARS
from daypack.text.cues.cues import commands, find_cues, is_acknowledgement, words_of
from daypack.text.english import is_past, stem
from daypack.text.extract import literal_density
from daypack.text.language import language_of
from daypack.text.literals import literals, occurs
from daypack.text.sentences import sentences
from daypack.text.words import content_words, is_negation, stems_of
from daypack.types.compaction import Bullet
from daypack.types.source import Messages, parse_source

QUESTION_WEIGHT = 0.45  # at most, for a task without an explicit request; a request weighs more
REQUEST_SENTENCES = 40
_TALK_MESSAGES = 12
_POINTING = re.compile(r"\b(?:the following|here's the|here is the|as follows|below)\b", re.IGNORECASE)
# A request for an answer: the work continues after it.
_TELLING = re.compile(
    r"(?:(?:please|ok|okay|now|and|also|so),?\s+){0,2}(?:(?:can|could|would|will) (?:you|we) (?:please )?)?"
    r"(?:summari[sz]e|explain|describe|remind|recap|tell me|show me|list (?:all|the|your)|give me (?:a|an|the) "
    r"(?:summary|overview|list))\b",
    re.IGNORECASE,
)
# "Did you push?" asks about the work, and asks for none.
_CHECKING = re.compile(
    r"(?:(?:so|and|but|ok|okay|wait|no|yes|hey),?\s+){0,2}(?:did|have|has|is|are|was|were|does|do)\b[^?]*\?\W*$",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    ["let's", "lets", "let", "give", "try", "go", "ahead", "start", "continue", "proceed", "please", "now", "yes", "ok"]
)
_JOINING = frozenset(["whose", "whom", "which", "where", "via", "using", "also"])  # words that join what is asked
_LEAST_WORDS = 4  # of a sentence that asks for nothing
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_SPEC_CHARS = 1_000
_SPEC_HEADINGS = 2


class FoundTask(NamedTuple):
    """A task, and the sentence it was read from."""

    bullet: Bullet
    sentence: str


class _Request(NamedTuple):
    bullet: Bullet
    sentence: str
    request: float  # how plainly it asks
    commands: bool  # it asks for work, not for an answer

    @property
    def task(self) -> FoundTask:
        return FoundTask(self.bullet, self.sentence)


def find_task(utterances: Sequence[Utterance], is_completed: Callable[[Bullet, int], bool]) -> FoundTask | None:
    """Return what the newest request of substance asks for; no remark, question or news changes the task.

    They do once it is reported as done, and where there is no request for work.
    """
    working = any(utterance.working for utterance in utterances)
    asked = [
        utterance for utterance in utterances if utterance.voice == "user" and not is_acknowledgement(utterance.text)
    ]
    others: list[_Request] = []
    question: FoundTask | None = None  # or a statement: the newest of substance
    for utterance in reversed(asked):
        best = _request(utterance)
        if best is None:
            continue
        if _GENERIC.issuperset(content_words(utterance.text[:200])):
            continue  # "let's give it a try": the task is what was proposed
        asks = utterance.text.strip()
        if working and not best.commands and (_CHECKING.match(asks) or _TELLING.match(asks)):
            continue
        if not _is_substantial(utterance, best.request, working=working):
            others.append(best)
        elif utterance.chatting:
            return best.task
        elif best.commands:
            return question if question and is_completed(best.bullet, utterance.seq) else best.task
        elif question is None:
            question = best.task
    if question:
        return question
    # There is no request: the subject at the end is nearest to a task.
    newest = others[:_TALK_MESSAGES]
    return max(newest, key=lambda weighed: weighed.bullet.weight).task if newest else None


def is_task(offered: Bullet, found: Bullet | None, user_texts: Mapping[int, str]) -> bool:
    """Return True if a model's line may be the task: it says what the newest request says, no less and no more.

    `found` is that request, read without a model; `user_texts` are the user's messages by seq. Where nothing
    plainly asks, the line has to be the user's own, and no older than the sentence that would take its place.
    """
    source = parse_source(offered.source)
    assert isinstance(source, Messages)
    by_user = source.start in user_texts and source.stop in user_texts
    if found is None:
        return by_user
    asked = seq_of(found.source)
    if found.weight <= QUESTION_WEIGHT and by_user and source.start >= asked:
        return True
    return _says(offered.text, found.text, user_texts.get(asked, ""))


def _says(text: str, request: str, message: str) -> bool:
    """Return True if a text says what a request says.

    It has the names and numbers of the request and most of its words, in their order and tense ("Replace Postgres by
    SQLite" and "Fixed the bug" say something else), and no word that is not in the user's message.
    """
    words, asked = _stems(text), _stems(request)
    shared = [root for root in words if root in asked]
    return (
        all(occurs(literal.text, text) for literal in literals(request))
        and 4 * len(shared) >= 3 * len(set(asked.values()) - _GENERIC)
        and 2 * len(shared) >= len(words) > 0
        and words.keys() <= asked.keys() | stems_of(message)
        and shared == [root for root in asked if root in words]
        and not any(is_past(words[root]) and not is_past(asked[root]) for root in shared)
        and (not text.rstrip().endswith("?") or request.rstrip().endswith("?"))
    )


def _stems(text: str) -> dict[str, str]:
    """Return the stems of a text's content words, each with its first word, in order."""
    found: dict[str, str] = {}
    for word in content_words(text):
        if not is_negation(word) and word not in _JOINING:
            found.setdefault(stem(word), word)
    return found


def seq_of(source: str) -> int:
    """Return the number of the last message of a source."""
    return int(source.removeprefix("messages:").rpartition("-")[2])


def is_specification(text: str) -> bool:
    """Return True if a message is a document with headings: a plan or an issue that says what is to be done."""
    return len(text) >= _SPEC_CHARS and len(_HEADING.findall(text)) >= _SPEC_HEADINGS


def _request(utterance: Utterance) -> _Request | None:
    """Return the sentence of a message that asks."""
    best: tuple[float, str, float, bool, str] | None = None
    language = language_of(words_of(utterance.text[:LANGUAGE_CHARS]))
    headed, bonus = 0.0, 0.3  # for the line below "Issue:", once
    for at, sentence in enumerate(sentences(utterance.text)[:REQUEST_SENTENCES]):
        text = shorten(tidy(sentence.text), MAX_BULLET_CHARS)
        if text.rstrip("*_").endswith((":", "：")) or _POINTING.search(text):
            headed = bonus
            continue
        if is_acknowledgement(text) or (text.isascii() and len(words_of(text)) < 2):
            continue
        cues = find_cues(text, language)
        asks = max(cues.request, 0.6 * cues.pending) * (0.5 if max(cues.decisions, cues.order) >= 1.0 else 1.0)
        asks /= 1 + at / 12  # what a long message asks for, it says at its beginning
        value = 0.4 * asks + 0.35 * literal_density(text) + 0.25 / (1 + at) + headed - 0.3 * cues.chatter
        asked = commands(text, cues) and not _TELLING.match(text)
        if not asked and at and not headed and text.isascii() and len(words_of(text)) < _LEAST_WORDS:
            continue
        if asked:
            value += 0.25 / (1 + at / 12)
        elif cues.facts >= 0.7 and not cues.asks:
            value -= 0.4  # news, and better kept as a fact
        elif cues.asks:
            value += 0.1
        headed, bonus = 0.0, 0.0 if headed else bonus
        if best is None or value > best[0]:
            best = value, text, cues.request - cues.chatter, asked, sentence.text
    if best is None:
        return None
    asked = best[3] or is_specification(utterance.text)
    weight = min(1.0, 0.5 + 0.5 * best[0]) if asked else QUESTION_WEIGHT * min(1.0, best[0])
    bullet = Bullet("task", best[1], f"messages:{utterance.seq}", weight=round(max(0.0, weight), 4))
    return _Request(bullet, best[4], best[2], asked)


def _is_substantial(utterance: Utterance, request: float, *, working: bool) -> bool:
    words = len(set(content_words(utterance.text[:2000])))
    if utterance.chatting:
        return request >= 0.8 and words >= 8 and literal_density(utterance.text[:400]) > 0
    if request >= 0.8:
        return words >= 3 or (words >= 2 and literal_density(utterance.text[:400]) > 0)
    return words >= 8 and working
