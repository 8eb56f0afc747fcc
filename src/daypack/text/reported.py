"""Reported speech: an English sentence as somebody else tells it, with names in place of "I", "me" and "you".

    Please update the tracker.      ->   asked Sam to update the tracker          (request)
    I moved the launch.             ->   Ana moved the launch                     (deed)
    I'm allergic to nuts.           ->   Ana is allergic to nuts                  (claim)
    Mine, too, I put there.         ->   left as it is                            (quote)

Only what a table says is safe is put into other words. In doubt, and in every other language, a sentence is quoted.
"""

import re
from typing import Literal, NamedTuple

from daypack.text.english import (
    ADVERBS,
    AGREED,
    ENGLISH,
    FOREIGN,
    IMPERATIVES,
    INVERTS,
    KIN,
    MODALS,
    NOT_PAST,
    PAST,
    PLAIN_FIRST,
    PRESENT,
    SUBJECT_AFTER,
)

Kind = Literal["deed", "claim", "request", "question", "quote"]

OTHERS = "and others"  # "we" is the speaker and somebody else, and nothing more is known


class Voices(NamedTuple):
    """Who speaks, to whom ("you"), and the only other person "he" or "she" can mean; empty: not known."""

    speaker: str
    listener: str = ""
    third: str = ""


class Reported(NamedTuple):
    """A sentence retold: `text` of a deed is whole, of a claim what was claimed, of a request what was asked."""

    kind: Kind
    text: str


_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|does|do|did|cannot|seems?|needs?|"
    r"means?|went|made|got|took|came|said|gave|found|became|left|began|sent|wants?|costs?|uses?|runs?|works?|lives?|"
    r"starts?|ends?|takes?|[a-z]{2,}ed)\b|\w(?:['’](?:s|re|ve|ll|m)|n['’]t)\b"
    r"|\b(?:I|[Ww]e|[Yy]ou|[Tt]hey) [a-z]+|\b[a-z]{3,}s (?:on|at|in|to|for|from|with|by|the|a|an)\b"
)
_PRONOUN = re.compile(
    r"\b(?=[IWYMUOHSiwymuohs])(?:(?P<i>[Ii])(?P<ishort>['’](?:m|ve|ll|d))?(?![\w'’-]|\.\w)|(?P<we>[Ww]e)(?P<weshort>['’](?:re|ve|ll|d))?(?![\w'’-])"
    r"|(?P<you>[Yy]ou)(?P<youshort>['’](?:re|ve|ll|d))?(?![\w'’-])"
    r"|(?P<word>[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|us|Us|[Oo]urs?|[Oo]urselves|[Yy]ours?|[Yy]ourself|[Yy]ourselves"
    r"|[Hh]e|[Ss]he|him|[Hh]is|[Hh]er)(?![\w'’-])|(?P<thirdshort>[Hh]e|[Ss]he)(?=['’]s\b))"
)
_NEXT = re.compile(r"\s+(no longer|[A-Za-z]+(?:['’]t)?)")
_LAST = re.compile(r"([A-Za-z]+|,)\s+\Z")
_SHORT = {"m": "is", "re": "is", "ve": "has", "ll": "will"}
_SHORT_PLURAL = {"re": "are", "ve": "have", "ll": "will"}
_LOST = frozenset({"mine", "myself", "ours", "ourselves", "yours", "yourself", "yourselves"})
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`|«[^»]*»|[\"“”`«»]|(?<!\w)['‘]")
_OBJECT_HER = re.compile(
    r"\s*(?:[.,;:!?)]|\Z)|\s+(?:to|and|or|but|about|for|in|on|at|with|from|that|if|when|as|a|an|the|by|up|out|so)\b"
)

_SPEECH = re.compile(r"\b(?:said|says|replied|answered|asked|wrote|shouted|was like),\s+\Z")
_ANYBODY = re.compile(r"\b(?:if|when|whenever|unless|once|until|before) you\b|\byou never know\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:I|me|my|[Ww]e|us|[Oo]ur)\b")
# World War I, phase I: a name before it, unless it is one of a day ("On Monday I left").
_NUMBERED = re.compile(
    r"(?:(?<=\S )[A-Z][a-z]+|\b(?:[Pp]hase|[Tt]ype|[Pp]art|[Cc]lass|[Ss]tage|[Tt]ier|[Gg]rade))\s+\Z"
)
_DAYS = (
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
    "Oct", "Nov", "Dec",
)  # fmt: skip

_BEFORE_OBJECT = frozenset({"to", "for", "with", "from", "by", "at", "of", "about"})

_PLEASE = re.compile(r"(?:please|pls|kindly)[ ,]+(?P<deed>.+)", re.IGNORECASE | re.DOTALL)
_POLITE = re.compile(
    r"(?:can|could|would|will) you (?:please |kindly |maybe |also |just )*"
    r"(?P<deed>(?!be\b|like\b|prefer\b|mind\b|rather\b|say\b|have\b|believe\b|imagine\b|see\b|still\b)[a-z].+?)\?*\Z",
    re.IGNORECASE | re.DOTALL,
)
_WANTED = re.compile(r"I(?: need|['’]d like| want| would like) you to (?P<deed>[a-z].+)", re.DOTALL)
_LETS = re.compile(r"(?:let['’]s|let us) (?P<deed>[a-z].+)", re.IGNORECASE | re.DOTALL)
_NOTE = re.compile(r"(?:please )?note(?: that|:) ?(?P<claim>.+)", re.IGNORECASE | re.DOTALL)
_DONT = re.compile(r"(?:don['’]t|do not) (?P<deed>[a-z].+)", re.IGNORECASE | re.DOTALL)
_EVER = re.compile(r"(?:always|never|only) (?P<deed>[a-z]+)", re.IGNORECASE)
_AFTER_A_NOUN = frozenset({"is", "was", "of", "will", "has", "are", "says", "meets", "happens"})
_OF_CLAUSES = frozenset(
    {"make", "ensure", "verify", "confirm", "remember", "tell", "remind", "let", "ask", "inform", "notify", "imagine"}
)
_OBJECT = re.compile(r"\s+(?:the|an?|my|me|it|this|that|these|those|your|our|all|any|every|each|both|him|her|them)\b")
_CLAUSE_END = re.compile(
    r"[,:;(]|\b(?:that|which|who|whose|if|when|because|so|where|what|how|and|or|but|until|before|after|as|while|why|"
    r"whether|unless|once)\b"
)
_STATES = re.compile(
    r"\b(?:is|are|was|were|isn['’]t|aren['’]t|has|will|won['’]t|meets|says|runs|starts|ends|opens|closes|takes|works|costs|"
    r"(?:changed|moved|ended|started|failed|closed|opened|arrived|expired) (?:to|on|at|in|by|for|from|again))\b"
)
_TAIL = re.compile(r"[,.!\s]+(?:please|thanks|thank you|thx|ok|okay)\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+(?:['’]t)?")
_QUESTION = ("?", "？")


def report(sentence: str, voices: Voices) -> Reported:
    """Return an English sentence as it is told by somebody else."""
    asked = _read_request(sentence, voices)
    if asked:
        return asked
    if sentence.rstrip("\"'”’) ").endswith(_QUESTION):
        return Reported("question", sentence)
    noted = _NOTE.fullmatch(sentence)
    body = noted["claim"] if noted else sentence
    named = name_people(body, voices)
    if named is None or not _FINITE.search(body):
        return Reported("quote", sentence)
    first = _WORD.match(body)
    if first and first[0] in ("I", "i", "We", "we") and _is_past(_second_word(body, first.end())):
        return Reported("deed", named)
    return Reported("claim", _joined(named, body))


def name_people(text: str, voices: Voices) -> str | None:
    """Return a text with names in place of pronouns; None when that cannot be done safely."""
    parts: list[str] = []
    at = 0
    agreed = anybody = False
    colon = -1
    quoted: list[tuple[int, int]] | None = None
    for match in _PRONOUN.finditer(text):
        if match.start() < at:
            continue
        if quoted is None:
            quoted = [one.span() for one in _QUOTED.finditer(text)]
            colon = text.find(": ")
            anybody = _ANYBODY.search(text) is not None and not _SELF.search(text)
        # A mark without its other half may quote anything.
        if any(stop - start == 1 for start, stop in quoted):
            return None
        if any(start <= match.start() < stop for start, stop in quoted):
            continue  # what somebody else said, or code
        # Behind a colon words are repeated that may be anybody's.
        told = -1 < colon < match.start() and not _is_third(match)
        if told or (anybody and match["you"]) or _is_of_others(text, match):
            return None
        stop, new, changed = _replace(text, match, voices)
        if new is None:
            return None
        agreed = agreed or changed
        parts += (text[at : match.start()], new)
        at = stop
    if agreed and _goes_on_in_the_present(text):
        return None
    return "".join((*parts, text[at:]))


def _is_third(match: re.Match[str]) -> bool:
    return bool(match["thirdshort"]) or (match["word"] or "").lower() in ("he", "she", "him", "his", "her")


def _is_of_others(text: str, match: re.Match[str]) -> bool:
    """Whether a pronoun may stand for somebody else: in words that are only repeated, or as a number."""
    if _is_third(match):
        return False
    at = match.start()
    if _SPEECH.search(text, max(0, at - 24), at):
        return True
    named = _NUMBERED.search(text, max(0, at - 24), at) if match[0] == "I" else None
    return named is not None and not named[0].startswith(_DAYS)


def is_english(text: str) -> bool:
    """Whether a text seems to be English: enough of its words are those that only English has."""
    if not text.isascii() and sum(map(str.isascii, text)) < 0.9 * len(text):
        return False
    words = _WORD.findall(text[:400].lower())
    known = sum([word in ENGLISH for word in words])
    return known * 6 >= len(words) > 0 and known * 4 > sum([word in FOREIGN for word in words]) * 5


def _read_request(sentence: str, voices: Voices) -> Reported | None:
    body = _without_tail(sentence)
    lets = _LETS.fullmatch(body.rstrip("?？ "))
    if lets:
        return _reported_deed(lets["deed"], voices, proposed=True)
    if not voices.listener or _NOTE.fullmatch(body):
        return None
    polite = _POLITE.fullmatch(sentence.strip()) or _WANTED.fullmatch(body)
    if polite:
        return _reported_deed(_without_tail(polite["deed"]), voices)
    pleaded = _PLEASE.fullmatch(body)
    order = pleaded["deed"] if pleaded else body
    if sentence.rstrip().endswith(_QUESTION):
        return None
    if pleaded or _DONT.match(order) or _is_order(order):
        return _reported_deed(order, voices)
    return None


def _without_tail(text: str) -> str:
    """Return a sentence without its full stop and a "please" or "thanks" at its end."""
    text = text.rstrip(" .!")
    found = _TAIL.search(text, max(0, len(text) - 14)) if text[-1:] in "sexukyKY" else None
    return text[: found.start()] if found else text


def _is_order(text: str) -> bool:
    """Whether a sentence begins with a verb that tells somebody what to do, and goes on as an order does."""
    ever = _EVER.match(text)
    if ever:
        return ever["deed"].lower() in IMPERATIVES
    first = _WORD.match(text)
    if first is None or first[0].lower() not in IMPERATIVES:
        return False
    after = text[first.end() :]
    if not after.startswith(" ") or _second_word(text, first.end()) in _AFTER_A_NOUN:
        return False
    # "Book club meets on Monday" tells something; "Check that it is open" asks for something.
    clause = _CLAUSE_END.split(after, maxsplit=1)[0]
    return first[0].lower() in _OF_CLAUSES or _OBJECT.match(after) is not None or not _STATES.search(clause)


def _reported_deed(deed: str, voices: Voices, *, proposed: bool = False) -> Reported | None:
    """Return what somebody is asked to do, behind "asked … to" or "proposed to"."""
    negated = ""
    denied = _DONT.fullmatch(deed)
    if denied is None and proposed and deed.lower().startswith("not "):
        negated, deed = "not ", deed[4:]
    elif denied:
        negated, deed = "not ", denied["deed"]
    first = _WORD.match(deed)
    if first is None or not first[0][1:].islower() or first[0].lower() in PLAIN_FIRST - {"note"}:
        return None
    named = name_people(deed[0].lower() + deed[1:], voices)
    if named is None:
        return None
    lead = "proposed" if proposed else f"asked {voices.listener}"
    return Reported("request", f"{lead} {negated}to {named}")


def _replace(text: str, match: re.Match[str], voices: Voices) -> tuple[int, str | None, bool]:
    """Return where the pronoun and its verb end, what stands for them, and whether the verb was put in another form."""
    word = match["word"] or match["thirdshort"]
    if word:
        return match.end(), _replace_word(text, match, word.lower(), voices), False
    short = match["ishort"] or match["weshort"] or match["youshort"]
    if match["we"]:
        return _replace_plural(text, match, short, f"{voices.speaker} {OTHERS}")
    name = voices.speaker if match["i"] else voices.listener
    if not name:
        return match.end(), None, False
    if short:
        verb = _SHORT.get(short[1:])
        return match.end(), f"{name} {verb}" if verb else None, verb in ("is", "has")
    return _agree(text, match, name)


def _agree(text: str, match: re.Match[str], name: str) -> tuple[int, str | None, bool]:
    """Replace "I" or "you" together with the verb that follows it."""
    before = _word_before(text, match.start())
    found = _NEXT.match(text, match.end())
    adverb = ""
    if found and found[1].lower() in ADVERBS:
        adverb = text[match.end() : found.end()]
        found = _NEXT.match(text, found.end())
    verb = found[1].lower().replace("’", "'") if found else ""
    if match["you"] and not (before in ("", *SUBJECT_AFTER) or verb in AGREED or verb in MODALS):
        doing = verb in PRESENT or (_is_past(verb) and before not in _BEFORE_OBJECT)
        return match.end(), None if doing else name, False  # an object: "I sent you the file"
    if found is None or before in INVERTS:
        return match.end(), None, False
    if (_is_past(verb) and verb not in AGREED) or verb in MODALS:
        return found.end(), f"{name}{adverb} {found[1]}", False
    form = AGREED.get(verb) or (f"{verb}s" if verb in PRESENT else "")
    if not form or _follows_a_name(text, match.start(), before):
        return match.end(), None, False
    return found.end(), f"{name}{adverb} {form}", True


def _replace_plural(text: str, match: re.Match[str], short: str | None, name: str) -> tuple[int, str | None, bool]:
    if _word_before(text, match.start()) in INVERTS:
        return match.end(), None, False
    if not short:
        return match.end(), name, False
    verb = _SHORT_PLURAL.get(short[1:])
    return match.end(), f"{name} {verb}" if verb else None, False


def _replace_word(text: str, match: re.Match[str], word: str, voices: Voices) -> str | None:
    if word in _LOST:
        return None
    if word in ("me", "my"):
        return voices.speaker if word == "me" else f"{voices.speaker}'s"
    if word == "us" and _word_before(text, match.start()) in ("the", "a", "an", "non"):
        return match[0]  # the country
    if word == "us":
        return f"{voices.speaker} {OTHERS}"
    if word == "our":
        after = _NEXT.match(text, match.end())
        kin = after is not None and after[1].lower() in KIN
        return f"{voices.speaker}'s" if kin else "The" if match[0] == "Our" else "the"
    if word == "your":
        return f"{voices.listener}'s" if voices.listener else None
    if not voices.third:
        return match[0]
    owned = word == "his" or (word == "her" and not _OBJECT_HER.match(text, match.end()))
    return f"{voices.third}'s" if owned else voices.third


def _joined(named: str, body: str) -> str:
    """Return a claim as it stands behind "stated": its first word without the capital it has only for being first."""
    first = _WORD.match(named)
    if first and first[0] in (first[0].capitalize(),) and first[0].lower() in PLAIN_FIRST and body[:1].isupper():
        return named[0].lower() + named[1:]
    return named


def _is_past(verb: str) -> bool:
    return verb in PAST or (len(verb) > 3 and verb.endswith("ed") and verb not in NOT_PAST)


def _second_word(text: str, at: int) -> str:
    found = _NEXT.match(text, at)
    if found and found[1].lower() in ADVERBS:
        found = _NEXT.match(text, found.end())
    return found[1].lower() if found else ""


def _word_before(text: str, at: int) -> str:
    found = _LAST.search(text, max(0, at - 24), at)
    return found[1].lower() if found else ""


def _follows_a_name(text: str, at: int, before: str) -> bool:
    """Whether "I" is one of several: "Bob and I are" has another verb than "I"."""
    return before == "and" and re.search(r"\b[A-Z]\w+,? and\s+\Z", text[max(0, at - 40) : at]) is not None


def _goes_on_in_the_present(text: str) -> bool:
    """Whether a second verb without a subject of its own would have to be put in another form, too."""
    found = re.findall(r"(?:\b(?:and|or|but|then)|,)\s+(?:also |then |just )?([a-z]+)\b", text)
    return any(word in PRESENT or word in AGREED for word in found)
