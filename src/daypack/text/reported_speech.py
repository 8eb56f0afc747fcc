"""Reported speech: an English sentence in the third person, with names in place of "I", "we" and "you".

    Please update the tracker.      ->   asked Sam to update the tracker          (request)
    I moved the launch.             ->   Ana moved the launch                     (deed)
    I'm allergic to nuts.           ->   Ana is allergic to nuts                  (claim)
    If it rains we use hall B.      ->   unchanged                                (quote)

Only simple sentences are put into other words: "I", "we" or "you" may be the subject at the beginning and nothing else.
Every other sentence is quoted, because a quotation is never wrong and search ranks it as well.
"""

import re
from typing import Literal, NamedTuple

from daypack.text.english import (
    ADVERBS,
    FAMILY,
    IMPERATIVES,
    LOWER_CASE,
    MODALS,
    PRESENT,
    SINGULAR,
    is_finite,
    is_past,
)

Kind = Literal["deed", "claim", "request", "question", "quote"]

OTHERS = "and others"  # "we" are the speaker and people who are not named


class Voices(NamedTuple):
    """The speaker, the listener ("you"), and the only other person "he" or "she" can mean; empty if unknown."""

    speaker: str
    listener: str = ""
    third: str = ""


class Reported(NamedTuple):
    """A reported sentence: the whole deed, what was claimed, what was asked, or the sentence itself."""

    kind: Kind
    text: str


_SUBJECT = re.compile(r"(?P<pronoun>I|[Ww]e|[Yy]ou)(?:['’](?P<short>m|re|ve|ll|d))?(?![\w'’-])")
_NEXT = re.compile(r"\s+(no longer|[A-Za-z]+(?:['’]t)?)")
_SHORT = {"m": "is", "re": "is", "ve": "has", "ll": "will"}
_SHORT_PLURAL = {"re": "are", "ve": "have", "ll": "will"}
# Quotations, a mark without its other half, a colon, and pronouns.
_TOKEN = re.compile(
    r"(?P<quoted>\"[^\"]*\"|“[^”]*”|`[^`]*`|«[^»]*»)|(?P<mark>[\"“”`«»]|(?<!\w)['‘])|(?P<colon>: )"
    r"|\b(?:(?P<third>(?:[Hh]e|[Ss]he|him|[Hh]is|[Hh]er)(?!['’](?!s\b)))|(?P<me>me)|(?P<my>[Mm]y)|(?P<our>[Oo]ur)|(?P<your>[Yy]our)"
    r"|(?P<other>[Ii]|[Ww]e|[Yy]ou|Me|[Mm]ine|[Mm]yself|(?<!\bthe )us|[Oo]urs|[Oo]urselves|[Yy]ours|[Yy]oursel\w+))"
    r"(?![\w-])"
)
_OBJECT_HER = re.compile(
    r"\s*(?:[.,;:!?)]|\Z)|\s+(?:to|and|or|but|about|for|in|on|at|with|from|that|if|when|as|a|an|the|by|up|out|so)\b"
)

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
_BEFORE_CLAUSE = frozenset({"make", "ensure", "verify", "confirm", "remember", "tell", "remind", "let", "ask"})
_OBJECT = re.compile(r"\s+(?:the|an?|my|me|it|this|that|these|those|your|our|all|any|every|each|both|him|her|them)\b")
_CLAUSE_END = re.compile(
    r"[,:;(]|\b(?:that|which|who|whose|if|when|because|so|where|what|how|and|or|but|until|before|after|as|while|why|"
    r"whether|unless|once)\b"
)
_COURTESY = re.compile(r"[,.!\s]+(?:please|thanks|thank you|thx|ok|okay)\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")
_SECOND_VERB = re.compile(r"(?:\b(?:and|or|but|then)|,)\s+(?:also |then |just )?([a-z]+)\b")
_QUESTION = ("?", "？")


def report(sentence: str, voices: Voices) -> Reported:
    """Return a sentence in reported speech, or as a quotation where that is not certain to be right."""
    request = _report_request(sentence, voices)
    if request:
        return request
    if sentence.rstrip("\"'”’) ").endswith(_QUESTION):
        return Reported("question", sentence)
    noted = _NOTE.fullmatch(sentence)
    body = noted["claim"] if noted else sentence
    subject = _SUBJECT.match(body)
    named = _name_subject(body, subject, voices) if subject else name_people(body, voices)
    if named is None or not any(is_finite(word) for word in _WORD.findall(body)):
        return Reported("quote", sentence)
    if subject and subject[0].lower() in ("i", "we") and is_past(_verb_after(body, subject.end())[1]):
        return Reported("deed", named)
    return Reported("claim", named if subject else _without_capital(named, body))


def _report_request(sentence: str, voices: Voices) -> Reported | None:
    body = _without_courtesy(sentence)
    lets = _LETS.fullmatch(body.rstrip("?？ "))
    if lets:
        return _report_deed(lets["deed"], voices, lead="proposed")
    if not voices.listener or _NOTE.fullmatch(body):
        return None
    lead = f"asked {voices.listener}"
    polite = _POLITE.fullmatch(sentence.strip()) or _WANTED.fullmatch(body)
    if polite:
        return _report_deed(_without_courtesy(polite["deed"]), voices, lead=lead)
    if sentence.rstrip().endswith(_QUESTION):
        return None
    please = _PLEASE.fullmatch(body)
    order = please["deed"] if please else body
    return _report_deed(order, voices, lead=lead) if please or _DONT.match(order) or _is_order(order) else None


def _without_courtesy(text: str) -> str:
    """Return a sentence without its full stop and a "please" or "thanks" at its end."""
    text = text.rstrip(" .!")
    found = _COURTESY.search(text, max(0, len(text) - 14)) if text[-1:] in "sexukyKY" else None
    return text[: found.start()] if found else text


def _is_order(text: str) -> bool:
    """Return True for a sentence that begins with an imperative: "Check the log", but not "Check valve is shut"."""
    ever = _EVER.match(text)
    if ever:
        return ever["deed"].lower() in IMPERATIVES
    first = _WORD.match(text)
    if first is None or first[0].lower() not in IMPERATIVES or not text.startswith(" ", first.end()):
        return False
    if first[0].lower() in _BEFORE_CLAUSE or _OBJECT.match(text, first.end()):
        return True
    clause = _CLAUSE_END.split(text[first.end() :], maxsplit=1)[0]
    return not any(is_finite(word) for word in _WORD.findall(clause))


def _report_deed(deed: str, voices: Voices, *, lead: str) -> Reported | None:
    """Return what the listener is asked to do, or None where the words are no request."""
    denied = _DONT.fullmatch(deed)
    if denied:
        deed = denied["deed"]
    elif deed.lower().startswith("not "):
        denied, deed = _NEXT.match(" not"), deed[4:]
    first = _WORD.match(deed)
    if first is None or not first[0][1:].islower() or first[0].lower() in LOWER_CASE:
        return None
    named = name_people(deed[0].lower() + deed[1:], voices)
    return None if named is None else Reported("request", f"{lead} {'not to' if denied else 'to'} {named}")


def _name_subject(text: str, subject: re.Match[str], voices: Voices) -> str | None:
    """Return a sentence that begins with "I", "we" or "you" with a name there and the verb in the form it needs."""
    pronoun, short = subject["pronoun"].lower(), subject["short"]
    name = {"i": voices.speaker, "we": f"{voices.speaker} {OTHERS}", "you": voices.listener}[pronoun]
    at, verb, adverb = (subject.end(), "", "") if short else _verb_after(text, subject.end())
    if short:
        form = (_SHORT_PLURAL if pronoun == "we" else _SHORT).get(short, "")
    elif verb in MODALS or (is_past(verb) and verb not in SINGULAR):
        form = verb
    elif pronoun == "we":
        form = verb if verb in SINGULAR or verb in PRESENT else ""
    else:
        form = SINGULAR.get(verb) or (f"{verb}s" if verb in PRESENT else "")
    rest = name_people(text[at:], voices)
    if not name or not form or rest is None:
        return None
    if form == verb:
        return f"{name}{text[subject.end() : at]}{rest}"
    if any(word in PRESENT or word in SINGULAR for word in _SECOND_VERB.findall(rest)):
        return None  # "I live here and work there": a second verb would need another form, too
    return f"{name}{adverb} {form}{rest}"


def name_people(text: str, voices: Voices) -> str | None:
    """Return a text with names in place of possessives and objects; None if it has a pronoun that is not certain."""
    parts: list[str] = []
    at = 0
    after_colon = unpaired = False
    for token in _TOKEN.finditer(text):
        if token["quoted"]:
            continue
        if token["mark"] or token["colon"]:
            unpaired = unpaired or bool(token["mark"])
            after_colon = after_colon or bool(token["colon"])
            continue
        if token["third"]:
            name = _third_name(text, token, voices.third)
        elif after_colon or token["other"]:
            return None  # words after a colon may be another person's
        elif token["me"]:
            name = voices.speaker
        elif token["my"]:
            name = f"{voices.speaker}'s"
        elif token["our"]:
            name = _our_name(text, token, voices.speaker)
        else:
            name = f"{voices.listener}'s" if voices.listener else ""
        if not name:
            return None
        parts += (text[at : token.start()], name)
        at = token.end()
    return None if unpaired and parts else "".join((*parts, text[at:]))


def _third_name(text: str, token: re.Match[str], name: str) -> str:
    word = token["third"].lower()
    if not name:
        return token[0]
    owned = word == "his" or (word == "her" and not _OBJECT_HER.match(text, token.end()))
    return f"{name}'s" if owned else name


def _our_name(text: str, token: re.Match[str], speaker: str) -> str:
    following = _NEXT.match(text, token.end())
    if following and following[1].lower() in FAMILY:
        return f"{speaker}'s"
    return "The" if token[0] == "Our" else "the"


def _verb_after(text: str, at: int) -> tuple[int, str, str]:
    """Return where the verb after a subject ends, the verb, and an adverb before it."""
    found = _NEXT.match(text, at)
    adverb = ""
    if found and found[1].lower() in ADVERBS:
        adverb = text[at : found.end()]
        found = _NEXT.match(text, found.end())
    return (found.end(), found[1].lower().replace("’", "'"), adverb) if found else (at, "", adverb)


def _without_capital(named: str, body: str) -> str:
    """Return a claim as it follows "stated": without a capital that it has only for being first."""
    first = _WORD.match(named)
    if first and first[0] == first[0].capitalize() and first[0].lower() in LOWER_CASE and body[:1].isupper():
        return named[0].lower() + named[1:]
    return named
