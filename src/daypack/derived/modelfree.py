"""The compactor without a model: it picks sentences, and makes none.

Every bullet is a sentence or a clause that stands so in one message: what it says can be wrong only where the speaker
was. What a sentence is for is read off its cues, its literals, who said it and when; tool output is no source of
sentences, since what matters of it is in the artifacts.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.derived.candidates import (
    LANGUAGE_CHARS,
    Candidate,
    Ranked,
    candidates,
    choose,
    says_something,
    shorten,
    tidy,
)
from daypack.derived.cues import Cues, find_cues, is_acknowledgement, language_of, words_of
from daypack.derived.raw import Raw
from daypack.derived.seen import Artifacts, ErrorSeen
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS
from daypack.derived.utterances import ESSAY_CHARS, Said, Step, Utterance, listen
from daypack.text.extract import literal_density, score
from daypack.text.sentences import content_words, sentences
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
_NEXT = re.compile(r"(?:let's|we'll|we will|i'll|i will|now)\b", re.IGNORECASE)  # of somebody at work: the next step
_STATUS = re.compile(
    r"\b\d[\d,]*\**\s+(?:\w+\s+){0,2}(?:tests?|specs?|doctests?|failures?|passed|failed|errors?|warnings?)\b"
)
_RECENT_SHARE = 0.8  # where a conversation's end begins: what is said to come next there has not come yet


def extract(raw: Raw, artifacts: Artifacts) -> tuple[Bullet, ...]:
    """Return the bullets for CONTEXT.md, best first in each section, ten of each at most."""
    said = listen(raw)
    lines = list(candidates(said.utterances))
    task = _task(said.utterances)
    bullets = [task] if task else []
    taken = set[str]()
    bullets += _section("decisions", lines, taken, _answers(said))
    if task and find_cues(task.text).facts < 0.7:
        taken.add(task.text)  # a task is soon another one: a fact in it should outlive it
    bullets += _section("pending", _open(lines, said.steps), taken, _steps(said.plan))
    facts = _section("facts", _without_old_status(lines), taken, [])
    bullets += facts or _fallback(said.utterances, taken)
    bullets += _errors(artifacts.errors)
    return tuple(bullets)


def weigh(text: str, section: Section) -> float:
    """Return what a sentence is worth for a section, from 0 to 1, from its words alone."""
    if not text.strip():
        return 0.0
    return round(_value(section, find_cues(text), literal_density(text), len(text)), 4)


def finished(todos: Iterable[Todo], raw: Raw) -> frozenset[str]:
    """Return the ids of open work that these messages say is done."""
    said = listen(raw)
    reports = _reports(list(candidates(said.utterances)), said.steps)
    return frozenset(one.id for one in todos if not one.done and _is_reported(0, one.text, reports))


def _section(section: Section, lines: Iterable[Candidate], taken: set[str], first: list[Bullet]) -> list[Bullet]:
    """Return the bullets of a section: those that are known for certain, then the best of the sentences."""
    bullets = [one for one in first if one.text not in taken][:MAX_BULLETS]
    taken.update(one.text for one in bullets)
    ranked = [Ranked(line, value) for line in lines if (value := _worth(line, section)) >= _FLOORS[section]]
    for one in choose(ranked, MAX_BULLETS + len(taken)):
        text = shorten(one.candidate.text, MAX_BULLET_CHARS)
        if not text or text in taken or len(bullets) == MAX_BULLETS:
            continue
        taken.add(text)
        bullets.append(_bullet(section, text, one.candidate.said.seq, one.value))
    return bullets


def _bullet(section: Section, text: str, seq: int, weight: float) -> Bullet:
    return Bullet(section, text, f"messages:{seq}", weight=round(min(1.0, weight), 4))


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


def _worth(line: Candidate, section: Section) -> float:
    """Return what a sentence is worth for a section, with who said it, when, and under which heading."""
    cues, said = line.cues, line.said
    context = getattr(line.context, section)
    if not context and not line.box and _strength(section, cues) < _least(said, section):
        return 0.0  # most sentences, and most of the time
    if said.voice == "assistant" and _SELF.search(line.text):
        return 0.0
    if said.voice == "assistant":
        # An imperative of the assistant is advice, not an order.
        cues = cues._replace(order=0.0, doubt=max(cues.doubt, line.context.doubt))
        if said.working and _NEXT.match(line.text):
            cues = cues._replace(talk=1.0)
    else:
        # Among friends an imperative is a good wish.
        cues = cues._replace(talk=0.0, order=0.4 * cues.order if said.chatting else cues.order)
    if context:
        cues = cues._replace(**{section: max(0.8 * context, getattr(cues, section))})
    if cues.pending >= 1.0 and section == "decisions":
        cues = cues._replace(order=0.0)  # "don't forget to …"
    if section == "pending" and line.box:
        cues = cues._replace(pending=1.0 if line.box == " " else 0.0, talk=0.0)
    if _strength(section, cues) < _least(said, section):
        return 0.0
    value = _value(section, cues, line.density, len(line.text))
    if _LEANING.match(line.text) and section != "decisions":
        value *= 0.85
    if line.text.endswith("!") and section != "facts":
        value *= 0.8
    return value * _trust(said, section) * _age(line, section, cues)


def _least(said: Utterance, section: Section) -> float:
    """Return how plain a cue has to be to count at all."""
    if section == "decisions":
        return 1.0 if said.chatting else 0.5 if said.voice == "user" else 0.7
    return 0.5 if section == "pending" else 0.3


def _trust(said: Utterance, section: Section) -> float:
    if said.voice == "user":
        return 1.0 if said.size < 6000 else 0.75
    if said.working:
        return (0.85 if section == "decisions" else 0.92) * (1.08 if said.closing else 1.0)
    if said.size <= ESSAY_CHARS // 2:
        return 0.85
    return 0.3 if section == "decisions" else 0.4


def _age(line: Candidate, section: Section, cues: Cues) -> float:
    if section != "pending":
        return 0.85 + 0.15 * line.place
    # "I need to …" is what comes next, and a request has been answered; only at the end that is not yet so.
    passing = cues.pending < 1.0 and (line.said.voice == "assistant" or cues.request >= 0.8)
    if passing and line.place < _RECENT_SHARE:
        return 0.3
    return 0.7 + 0.3 * line.place


def _task(utterances: Sequence[Utterance]) -> Bullet | None:
    """Return what the newest request of substance asks for; a small remark does not change the task."""
    working = any(one.working for one in utterances)
    asked = [one for one in utterances if one.voice == "user" and not is_acknowledgement(one.text)]
    others: list[_Request] = []
    for said in reversed(asked):
        best = _request(said)
        if best is None:
            continue
        if _is_substantial(said, best.request, working=working):
            return best.bullet
        others.append(best)
    # Nobody asked for anything: what is spoken of at the end comes nearest to a task.
    newest = others[:_TALK_MESSAGES]
    return max(newest, key=lambda one: one.bullet.weight).bullet if newest else None


class _Request(NamedTuple):
    bullet: Bullet
    request: float  # how plainly it asks


def _request(said: Utterance) -> _Request | None:
    """Return the sentence of a message that asks."""
    best: tuple[float, str, float] | None = None
    language = language_of(words_of(said.text[:LANGUAGE_CHARS]))
    headed, bonus = 0.0, 0.3  # for the line below "Issue:", once
    for at, sentence in enumerate(sentences(said.text)[:_REQUEST_SENTENCES]):
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
        headed, bonus = 0.0, 0.0 if headed else bonus
        if best is None or value > best[0]:
            best = value, text, cues.request - cues.chatter
    return _Request(_bullet("task", best[1], said.seq, best[0]), best[2]) if best else None


def _is_substantial(said: Utterance, request: float, *, working: bool) -> bool:
    words = len(set(content_words(said.text[:2000])))
    if said.chatting:
        return request >= 0.8 and words >= 8 and literal_density(said.text[:400]) > 0
    if request >= 0.8:
        return words >= 3 or (words >= 2 and literal_density(said.text[:400]) > 0)
    return words >= 8 and working


def _without_old_status(lines: Sequence[Candidate]) -> list[Candidate]:
    """Leave out counts of passing and failing tests that a later count has made history."""
    counts = [line for line in lines if _STATUS.search(line.text)]
    old = set(map(id, counts[:-2]))
    return [line for line in lines if id(line) not in old or line.density > 0.7]


def _answers(said: Said) -> list[Bullet]:
    """Return what somebody chose when an agent asked, newest first; of a long question its last sentence at most."""
    found: list[Bullet] = []
    for seq, answer in said.answers:
        text = _answer(answer)
        if text:
            found.append(_bullet("decisions", text, seq, _ANSWER_WEIGHT))
    return found[::-1]


def _answer(text: str) -> str:
    parts = sentences(text)
    if len(parts) > 1:
        chosen = text.rpartition('"="')[2].rstrip('"')
        # An answer in words of its own needs no question.
        text = chosen if chosen.count(" ") > 2 else parts[-1].text
    return shorten(text, MAX_BULLET_CHARS)


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
    return [
        line
        for line in lines
        if (line.cues.pending or line.context.pending or line.box)
        and not _is_reported(line.said.seq, line.text, reports)
    ]


def _reports(lines: Sequence[Candidate], steps: Sequence[Step]) -> list[tuple[int, frozenset[str]]]:
    """Return what is said to be done: when, and in which words."""
    told = [
        (line.said.seq, line.words)
        for line in lines
        if (line.cues.done and not line.cues.denied and not line.cues.asks and line.cues.pending < 1.0)
        or line.box in ("x", "X", "✓")
    ]
    return told + [(step.seq, frozenset(content_words(step.text))) for step in steps if step.done]


def _is_reported(seq: int, text: str, reports: Sequence[tuple[int, frozenset[str]]]) -> bool:
    words = frozenset(content_words(text))
    least = max(2, round(0.6 * len(words))) if len(words) > 1 else 1
    return any(told > seq and len(words & done) >= least for told, done in reports)


def _errors(errors: Sequence[ErrorSeen]) -> list[Bullet]:
    """Return the errors, those that nothing resolved first, the newest of each first."""
    found: dict[str, Bullet] = {}
    # One that names nothing ("File does not exist.") helps least.
    ordered = sorted(errors, key=lambda one: (one.resolved_by is not None, not literal_density(one.text), -one.seq))
    for at, error in enumerate(ordered):
        text = shorten(" ".join(error.text.split()), MAX_BULLET_CHARS)
        if not text or text in found:
            continue
        resolution = shorten(" ".join((error.resolution or "").rstrip("…").split()), MAX_BULLET_CHARS) or None
        weight = (0.5 if error.resolved_by else 0.9) * (1 - 0.3 * at / len(ordered))
        found[text] = Bullet("errors", text, f"messages:{error.seq}", resolution, round(weight, 4))
    return list(found.values())[:MAX_BULLETS]


def _fallback(utterances: Sequence[Utterance], taken: set[str]) -> list[Bullet]:
    """Return the sentences that score best by place and literals alone: of a language without cues, say."""
    found: list[tuple[float, int, str]] = []
    seen = set(taken)
    for said in utterances[::-1][:_FALLBACK_MESSAGES]:
        for one in score(said.text)[:_REQUEST_SENTENCES]:
            text = shorten(tidy(one.text), MAX_BULLET_CHARS)
            if text in seen or not says_something(text, words_of(text)) or is_acknowledgement(text):
                continue
            seen.add(text)
            if said.voice == "user" or not find_cues(text).talk:
                found.append((one.score * (1.0 if said.voice == "user" else 0.7), said.seq, text))
    found.sort(key=lambda one: (-one[0], -one[1]))
    return [_bullet("facts", text, seq, 0.5 * value) for value, seq, text in found[:_FALLBACK_FACTS]]
