"""Which earlier rules a new one replaces: those on the same matter."""

import re
from collections.abc import Iterable

from daypack.derived.rules.book import given_at
from daypack.derived.rules.english import SCOPE
from daypack.text.english import stem
from daypack.text.words import stems_of
from daypack.types.records import Rule

_SAME = 0.75  # of the words that name the matter
# A limit: of "under 150 words" and "under 50 words" the later counts. "Port 80" names a thing.
_LIMIT = re.compile(
    r"\b(under|below|above|over|at most|at least|to|than|of|within|in|max|maximum|only|exactly|about|up to)"
    r" (?:\d+(?:[.,]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|hundred)\b"
)
_REASON = re.compile(
    r"\b(?:because|since|so that|as (?:i|my|we|our)|weil|denn|parce que|car|porque|ya que)\b.*", re.DOTALL
)
_LANGUAGE = re.compile(
    r"\b(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese|mandarin|japanese|"
    r"korean|arabic|turkish|"
    r"hindi|swedish|danish|welsh|deutsch|englisch|französisch|spanisch|français|anglais|allemand|espagnol|"
    r"español|inglés|francés|"
    r"alemán)\b"
)
_REPLY = re.compile(
    r"\b(?:answer|repl(?:y|ie)|respon[ds]e?|responses?|message|antwort(?:e|en)?|répon(?:ds|se|ses)|responde|"
    r"respuesta)(?:s|ing|ed)?\b"
)
_NAME = re.compile(r"\b(?:(?:call|address) me|nenn(?:e)? mich|appelle-moi|llámame)\b")
# Words of every rule, whatever its matter.
_FORM_WORDS = """
always never please keep use write make sure ensure avoid stop only must should want prefer like need remember forward
future time every each all any again anymore just also more instead rather give put let can may bitte immer nie niemals
ab jetzt toujours jamais désormais siempre nunca ahora favor
"""
_FORM = frozenset(map(stem, _FORM_WORDS.split()))


def superseded_by(new: Rule, earlier: Iterable[Rule]) -> list[str]:
    """Return the ids of the rules given before it on the same matter; a pinned rule stays."""
    matter, given = _matter(new.text), given_at(new)
    return [
        rule.id
        for rule in earlier
        if not rule.pinned and given_at(rule) <= given and _overlap(matter, _matter(rule.text)) >= _SAME
    ]


def repeats(new: Rule, rules: Iterable[Rule]) -> bool:
    """Return True if a rule in force says the same words."""
    words = _plain(new.text)
    return any(_plain(rule.text) == words for rule in rules)


def _matter(text: str) -> frozenset[str]:
    words = SCOPE.sub(" ", _REASON.sub("", text.lower().replace("’", "'")))
    if _NAME.search(words):
        return frozenset({"name of the user"})
    words = _REPLY.sub(" replyword ", _LANGUAGE.sub(" languageword ", _LIMIT.sub(r"\1 limitword ", words)))
    return frozenset(stem for stem in stems_of(words) if stem not in _FORM)


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first and second else 0.0


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
