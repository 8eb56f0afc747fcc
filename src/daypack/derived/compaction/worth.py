"""The worth of a sentence for a section: by its cues, its literals, its speaker and its place."""

import re

from daypack.derived.compaction.candidates import Candidate, refers_back
from daypack.derived.compaction.utterances import ESSAY_CHARS, Utterance
from daypack.text.cues.cues import Cues, commands, find_cues
from daypack.text.extract import literal_density
from daypack.types.compaction import Section

# A sentence that begins so leans on the one before it.
_LEANING = re.compile(r"(?:it|this|that|these|those|they|he|she|which|also|then|if|when|but|so)\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:let me|i should)\b", re.IGNORECASE)  # what an assistant says to itself
_NEXT = re.compile(r"(?:let's|we'll|we will|i'll|i will|now)\b", re.IGNORECASE)  # an assistant's next step
# Of an assistant: what it means to do, once the step at hand is done.
_INTENDING = re.compile(
    r"(?:(?P<later>then|next|after that|afterwards|later|finally|after this),?\s+)?"
    r"(?:i|we)(?:'ll| will)?\s+(?:still\s+|also\s+|then\s+)?(?:need|have)\s+to\b",
    re.IGNORECASE,
)
_RECENT_SHARE = 0.8  # the end of a conversation: a next step mentioned there is still open


def weigh(text: str, section: Section) -> float:
    """Return what a sentence is worth for a section, from 0 to 1, from its words alone."""
    if not text.strip():
        return 0.0
    return round(_value(section, find_cues(text), literal_density(text), len(text)), 4)


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


def worth(line: Candidate, section: Section) -> float:
    """Return what a sentence is worth for a section, with its speaker, its place and its heading."""
    cues, utterance = line.cues, line.utterance
    context = getattr(line.context, section)
    if not context and not line.box and _strength(section, cues) < _least(utterance, section):
        return 0.0  # most sentences, and most of the time
    if utterance.scripted or _is_beside(line, section):
        return 0.0
    intended = section == "pending" and is_intention(line)
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


def is_intention(line: Candidate) -> bool:
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
    passing = (
        cues.pending < 1.0 and not line.context.pending and (line.utterance.voice == "assistant" or cues.request >= 0.8)
    )
    if passing and line.place < _RECENT_SHARE:
        return 0.3
    return 0.7 + 0.3 * line.place
