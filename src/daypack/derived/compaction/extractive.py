"""The compactor without a model: it picks sentences, and makes none.

Every bullet is a sentence or a clause of one message, verbatim: it can be wrong only where the speaker
was. What a sentence is for is read off its cues, its literals, its speaker and its place; tool output is no source of
sentences, since what matters of it is in the artifacts.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.derived.artifacts.observations import Artifacts, ErrorSeen
from daypack.derived.artifacts.outcomes import names_problem
from daypack.derived.compaction.candidates import (
    LANGUAGE_CHARS,
    Candidate,
    Ranked,
    Spot,
    as_finding,
    candidates,
    choose,
    newest_only,
    refers_back,
    says_something,
    shorten,
    tidy,
)
from daypack.derived.compaction.utterances import ESSAY_CHARS, Conversation, Step, Utterance, read_conversation
from daypack.derived.raw_history import Raw
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS
from daypack.text.cues import Cues, commands, find_cues, is_acknowledgement, words_of
from daypack.text.extract import literal_density, score
from daypack.text.language import language_of
from daypack.text.sentences import sentences
from daypack.text.words import content_words
from daypack.types.compaction import Bullet, Section
from daypack.types.records import Todo

_FLOORS: dict[Section, float] = {"decisions": 0.42, "facts": 0.3, "pending": 0.42}
_FALLBACK_FACTS = 4
_FALLBACK_MESSAGES = 60
_REQUEST_SENTENCES = 40
_TALK_MESSAGES = 12
_STEP_WEIGHT = 0.97
_ANSWER_WEIGHT = 0.95
# A sentence that begins so leans on the one before it.
_LEANING = re.compile(r"(?:it|this|that|these|those|they|he|she|which|also|then|if|when|but|so)\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:let me|i should)\b", re.IGNORECASE)  # what an assistant says to itself
_POINTING = re.compile(r"\b(?:the following|here's the|here is the|as follows|below)\b", re.IGNORECASE)
_NEXT = re.compile(r"(?:let's|we'll|we will|i'll|i will|now)\b", re.IGNORECASE)  # an assistant's next step
# Of an assistant: what it means to do, once the step at hand is done.
_INTENDING = re.compile(
    r"(?:(?P<later>then|next|after that|afterwards|later|finally|after this),?\s+)?"
    r"(?:i|we)(?:'ll| will)?\s+(?:still\s+|also\s+|then\s+)?(?:need|have)\s+to\b",
    re.IGNORECASE,
)
_MOST_RESOLVED = 3
QUESTION_WEIGHT = 0.45  # at most, for a task without an explicit request; a request weighs more
_RECENT_SHARE = 0.8  # the end of a conversation: a next step mentioned there is still open


def extract(raw: Raw, artifacts: Artifacts, most: int = MAX_BULLETS) -> tuple[Bullet, ...]:
    """Return the bullets for CONTEXT.md, best first in each section, `most` of each at most."""
    conversation = read_conversation(raw)
    lines = list(candidates(conversation.utterances))
    task = _task(conversation.utterances, lines)
    bullets = [task] if task else []
    taken = set[str]()
    bullets += _section("decisions", _ranked("decisions", lines), taken, _answers(conversation)[:most], most)
    if task:
        taken.add(task.text)
    bullets += _section(
        "pending", _ranked("pending", _open(lines, conversation.steps)), taken, _steps(conversation.plan)[:most], most
    )
    facts = _section("facts", _ranked("facts", lines), taken, [], most)
    bullets += facts or _fallback(conversation.utterances, lines, taken)[:most]
    bullets += _errors(artifacts.errors, most)
    return tuple(bullets)


def weigh(text: str, section: Section) -> float:
    """Return what a sentence is worth for a section, from 0 to 1, from its words alone."""
    if not text.strip():
        return 0.0
    return round(_value(section, find_cues(text), literal_density(text), len(text)), 4)


def finished(todos: Iterable[Todo], raw: Raw) -> frozenset[str]:
    """Return the ids of open work that these messages say is done."""
    conversation = read_conversation(raw)
    reports = _reports(list(candidates(conversation.utterances)), conversation.steps)
    return frozenset(todo.id for todo in todos if not todo.done and _is_reported(0, todo.text, reports))


def _ranked(section: Section, lines: Iterable[Candidate]) -> list[Ranked]:
    """Return the sentences that are worth something for a section and still hold, oldest first."""
    ranked = [Ranked(line, value) for line in lines if (value := _worth(line, section)) >= _FLOORS[section]]
    if section == "pending":
        return ranked
    if section == "facts":
        findings = [(choice, as_finding(choice.candidate)) for choice in ranked]
        ranked = [Ranked(_worded(choice.candidate, text), choice.value) for choice, text in findings if text]
    return newest_only(ranked)


def _worded(line: Candidate, text: str) -> Candidate:
    if text == line.text:
        return line
    return Candidate(text, line.cues, Spot(line.utterance, line.place), line.context, line.box)


def _section(
    section: Section, ranked: Iterable[Ranked], taken: set[str], first: list[Bullet], most: int
) -> list[Bullet]:
    """Return the bullets of a section: those that are known for certain, then the best of the sentences."""
    bullets = [line for line in first if line.text not in taken]
    taken.update(bullet.text for bullet in bullets)
    for choice in choose(ranked, most + len(taken)):
        text = shorten(choice.candidate.text, MAX_BULLET_CHARS)
        if not text or text in taken or len(bullets) >= most:
            continue
        taken.add(text)
        bullets.append(_bullet(section, text, choice.candidate.utterance.seq, choice.value))
    return bullets


def _bullet(section: Section, text: str, seq: int, weight: float) -> Bullet:
    return Bullet(section, text, f"messages:{seq}", weight=round(min(1.0, max(0.0, weight)), 4))


def _value(section: Section, cues: Cues, density: float, length: int) -> float:
    strength = _strength(section, cues)
    shape = 1.0 if 30 <= length <= 240 else 0.5 if 15 <= length <= 400 else 0.2
    value = 0.6 * strength + 0.28 * density + 0.12 * shape
    if section in ("task", "errors"):
        return value
    if not strength:
        value *= 0.6 if section == "facts" else 0.2
    hold = {"decisions": 0.8, "facts": 0.45, "pending": 0.4}[section]
    value *= 1 - hold * cues.doubt
    if cues.asks:
        value *= 0.4 if section == "pending" else 0.12
    # "I need to use `:auto` mode" is talk and a decision.
    held = 0.4 if section == "decisions" and strength >= 0.7 and density > 0.2 else 0.75
    value *= (1 - held * cues.talk) * (1 - 0.6 * cues.chatter)
    if section == "pending":
        value *= 1 - 0.5 * cues.done
    elif section == "facts":
        value *= 1 - 0.25 * cues.pending
    return value


def _strength(section: Section, cues: Cues) -> float:
    if section == "task":
        return cues.request
    if section == "decisions":
        return max(cues.decisions, cues.order)
    if section == "facts":
        return cues.facts
    return cues.pending if section == "pending" else max(cues.errors, 0.5)


def _is_beside(line: Candidate, section: Section) -> bool:
    """Return True if a sentence has no place in a section: an aside, or a request among the facts."""
    aside = line.utterance.voice == "assistant" and _is_aside(line.text, section)
    return aside or (section == "facts" and line.utterance.voice != "assistant" and commands(line.text, line.cues))


def _worth(line: Candidate, section: Section) -> float:
    """Return what a sentence is worth for a section, with its speaker, its place and its heading."""
    cues, utterance = line.cues, line.utterance
    context = getattr(line.context, section)
    if not context and not line.box and _strength(section, cues) < _least(utterance, section):
        return 0.0  # most sentences, and most of the time
    if utterance.scripted or _is_beside(line, section):
        return 0.0
    intended = section == "pending" and _is_intention(line)
    if intended:
        cues = cues._replace(pending=1.0, talk=0.0)
    elif utterance.voice == "assistant":
        # An imperative of the assistant is advice, not an order.
        cues = cues._replace(order=0.0, doubt=max(cues.doubt, line.context.doubt))
        if utterance.working and _NEXT.match(line.text):
            cues = cues._replace(talk=1.0)
    else:
        # Among friends an imperative is a good wish.
        cues = cues._replace(talk=0.0, order=0.4 * cues.order if utterance.chatting else cues.order)
    if context:
        cues = cues._replace(**{section: max(0.8 * context, getattr(cues, section))})
    if cues.pending >= 1.0 and section == "decisions":
        cues = cues._replace(order=0.0)  # "don't forget to …"
    if section == "pending" and line.box:
        cues = cues._replace(pending=1.0 if line.box == " " else 0.0, talk=0.0)
    if _strength(section, cues) < _least(utterance, section):
        return 0.0
    value = _value(section, cues, line.density, len(line.text))
    if not intended and _LEANING.match(line.text) and section != "decisions":
        value *= 0.85
    if line.text.endswith("!") and section != "facts":
        value *= 0.8
    return value * _trust(utterance, section) * _age(line, section, cues)


def _is_aside(text: str, section: Section) -> bool:
    """Return True if an assistant talks to itself, or about its last message."""
    return _SELF.search(text) is not None or (section == "decisions" and refers_back(text))


def _is_intention(line: Candidate) -> bool:
    """Return True if an assistant announces work that it does not start in the same message."""
    if line.utterance.voice != "assistant" or line.cues.asks:
        return False
    found = _INTENDING.match(line.text)
    return found is not None and (found["later"] is not None or not line.utterance.acting)


def _least(utterance: Utterance, section: Section) -> float:
    """Return how plain a cue has to be to count at all."""
    if section == "decisions":
        return 1.0 if utterance.chatting else 0.5 if utterance.voice == "user" else 0.7
    return 0.5 if section == "pending" else 0.3


def _trust(utterance: Utterance, section: Section) -> float:
    if utterance.voice == "user":
        return 1.0 if utterance.size < 6000 else 0.75
    if utterance.working:
        return (0.85 if section == "decisions" else 0.92) * (1.08 if utterance.closing else 1.0)
    if utterance.size <= ESSAY_CHARS // 2:
        return 0.85
    return 0.3 if section == "decisions" else 0.4


def _age(line: Candidate, section: Section, cues: Cues) -> float:
    if section != "pending":
        return 0.85 + 0.15 * line.place
    # "I need to …" is what comes next, and a request has been answered; only at the end that is not yet so.
    passing = cues.pending < 1.0 and (line.utterance.voice == "assistant" or cues.request >= 0.8)
    if passing and line.place < _RECENT_SHARE:
        return 0.3
    return 0.7 + 0.3 * line.place


def _task(utterances: Sequence[Utterance], lines: Sequence[Candidate]) -> Bullet | None:
    """Return what the newest request of substance asks for; no remark, question or news changes the task.

    They do once it is reported as done, and where there is no request for work.
    """
    working = any(utterance.working for utterance in utterances)
    asked = [
        utterance for utterance in utterances if utterance.voice == "user" and not is_acknowledgement(utterance.text)
    ]
    others: list[_Request] = []
    question: Bullet | None = None  # or a statement: the newest of substance
    for utterance in reversed(asked):
        best = _request(utterance)
        if best is None:
            continue
        if not _is_substantial(utterance, best.request, working=working):
            others.append(best)
        elif utterance.chatting:
            return best.bullet
        elif best.commands:
            return question if question and _is_completed(best.bullet, utterance.seq, lines) else best.bullet
        elif question is None:
            question = best.bullet
    if question:
        return question
    # There is no request: the subject at the end is nearest to a task.
    newest = others[:_TALK_MESSAGES]
    return max(newest, key=lambda weighed: weighed.bullet.weight).bullet if newest else None


def _is_completed(task: Bullet, seq: int, lines: Sequence[Candidate]) -> bool:
    closing = [line for line in lines if line.utterance.closing or line.utterance.voice == "user"]
    return _is_reported(seq, task.text, _reports(closing, ()))


class _Request(NamedTuple):
    bullet: Bullet
    request: float  # how plainly it asks
    commands: bool  # it asks for work, not for an answer


def _request(utterance: Utterance) -> _Request | None:
    """Return the sentence of a message that asks."""
    best: tuple[float, str, float, bool] | None = None
    language = language_of(words_of(utterance.text[:LANGUAGE_CHARS]))
    headed, bonus = 0.0, 0.3  # for the line below "Issue:", once
    for at, sentence in enumerate(sentences(utterance.text)[:_REQUEST_SENTENCES]):
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
        asked = commands(text, cues)
        if asked:
            value += 0.25 / (1 + at / 12)
        elif cues.facts >= 0.7 and not cues.asks:
            value -= 0.4  # news, and better kept as a fact
        elif cues.asks:
            value += 0.1
        headed, bonus = 0.0, 0.0 if headed else bonus
        if best is None or value > best[0]:
            best = value, text, cues.request - cues.chatter, asked
    if best is None:
        return None
    weight = 0.5 + 0.5 * best[0] if best[3] else QUESTION_WEIGHT * min(1.0, best[0])
    return _Request(_bullet("task", best[1], utterance.seq, weight), best[2], best[3])


def _is_substantial(utterance: Utterance, request: float, *, working: bool) -> bool:
    words = len(set(content_words(utterance.text[:2000])))
    if utterance.chatting:
        return request >= 0.8 and words >= 8 and literal_density(utterance.text[:400]) > 0
    if request >= 0.8:
        return words >= 3 or (words >= 2 and literal_density(utterance.text[:400]) > 0)
    return words >= 8 and working


def _answers(conversation: Conversation) -> list[Bullet]:
    """Return what the user chose when an agent asked, newest first; a choice means nothing without its question."""
    found: list[Bullet] = []
    for seq, answer in conversation.answers:
        text = shorten(answer, MAX_BULLET_CHARS)
        if text == answer:
            found.append(_bullet("decisions", text, seq, _ANSWER_WEIGHT))
    return found[::-1]


def _steps(plan: Sequence[Step]) -> list[Bullet]:
    found: dict[str, Bullet] = {}
    for step in plan:
        text = shorten(" ".join(step.text.split()), MAX_BULLET_CHARS)
        if text and not step.done:
            found.setdefault(text, _bullet("pending", text, step.seq, _STEP_WEIGHT))
    return list(found.values())


def _open(lines: Sequence[Candidate], steps: Sequence[Step]) -> list[Candidate]:
    """Return the sentences that no later one says to be done."""
    reports = _reports(lines, steps)
    # "Now let me add the test": the step has begun.
    begun = [(action.utterance.seq, action.words) for action in lines if action.cues.talk and action.utterance.acting]
    return [
        line
        for line in lines
        if (line.cues.pending or line.context.pending or line.box)
        and not _is_reported(line.utterance.seq, line.text, reports + begun if _is_intention(line) else reports)
    ]


def _reports(lines: Sequence[Candidate], steps: Sequence[Step]) -> list[tuple[int, frozenset[str]]]:
    """Return reports of finished work: message number and words."""
    reported = [
        (line.utterance.seq, line.words)
        for line in lines
        if (line.cues.done and not line.cues.denied and not line.cues.asks and line.cues.pending < 1.0)
        or line.box in ("x", "X", "✓")
    ]
    return reported + [(step.seq, frozenset(content_words(step.text))) for step in steps if step.done]


def _is_reported(seq: int, text: str, reports: Sequence[tuple[int, frozenset[str]]]) -> bool:
    words = frozenset(content_words(text))
    least = max(2, round(0.6 * len(words))) if len(words) > 1 else 1
    return any(at > seq and len(words & done) >= least for at, done in reports)


def _errors(errors: Sequence[ErrorSeen], most: int) -> list[Bullet]:
    """Return the errors, those that nothing resolved first and few of the others, the newest of each first."""
    found: dict[str, Bullet] = {}
    resolved = 0
    # One that names nothing ("File does not exist.") helps least.
    ordered = sorted(errors, key=lambda seen: (seen.resolved_by is not None, not literal_density(seen.text), -seen.seq))
    for at, error in enumerate(ordered):
        text = shorten(" ".join(error.text.split()), MAX_BULLET_CHARS)
        if text in found or not names_problem(text) or (error.resolved_by and resolved == _MOST_RESOLVED):
            continue
        resolved += 1 if error.resolved_by else 0
        resolution = shorten(" ".join((error.resolution or "").rstrip("…").split()), MAX_BULLET_CHARS) or None
        weight = (0.5 if error.resolved_by else 0.9) * (1 - 0.3 * at / len(ordered))
        found[text] = Bullet("errors", text, f"messages:{error.seq}", resolution, round(weight, 4))
    return list(found.values())[:most]


def _fallback(utterances: Sequence[Utterance], lines: Sequence[Candidate], taken: set[str]) -> list[Bullet]:
    """Return the sentences that score best by place and literals alone: of a language without cues, say."""
    found: list[tuple[float, int, str]] = []
    seen = taken | {line.text for line in lines if not as_finding(line)}
    for utterance in utterances[::-1][:_FALLBACK_MESSAGES]:
        for scored in score(utterance.text)[:_REQUEST_SENTENCES]:
            text = shorten(tidy(scored.text), MAX_BULLET_CHARS)
            if text in seen or not says_something(text, words_of(text)) or is_acknowledgement(text):
                continue
            seen.add(text)
            if utterance.voice == "user" or not find_cues(text).talk:
                found.append((scored.score * (1.0 if utterance.voice == "user" else 0.7), utterance.seq, text))
    found.sort(key=lambda pair: (-pair[0], -pair[1]))
    return [_bullet("facts", text, seq, 0.5 * value) for value, seq, text in found[:_FALLBACK_FACTS]]
