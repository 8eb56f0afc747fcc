"""Filler: greetings, thanks and interjections, which can be removed without losing information."""

import re

NAME = r"[A-Z](?:[A-Za-zÀ-ɏ-]|['’](?!s\b))+"  # without a possessive "'s"
# Lead-ins before the content of a sentence.
_LEADS = """
hi|hello|hey|dear|good (?:morning|afternoon|evening)|thanks(?: so much| a lot)?|thank you|well|so|also|oh|ok|okay|yeah
sure|of course|actually|btw|by the way|anyway|wow|haha|hmm|um|ah|yes|yep|no|nope|great|cool|awesome|perfect|absolutely
certainly
"""
# Whole sentences of a few words.
_SHORT = """
hi|hello|hey|bye|goodbye|thanks|thank you|thx|welcome|you['’]re welcome|no problem|no worries|cheers|yay|wow|lol|haha
ok|okay|sure|great|cool|nice|perfect|awesome|amazing|wonderful|got it|sounds good|sounds great|take care|see you
well done|good morning|good afternoon|good evening|good night|good luck|good question|good point|talk soon|talk later
congrats|congratulations|my pleasure|how are you|how['’]s it going|what['’]s up|of course|certainly|absolutely
that['’]s great|that['’]s awesome|that['’]s amazing|that['’]s cool|that['’]s wonderful|that['’]s nice|yes|no|hallo|danke
that['’]s really|that['’]s so|that['’]s very|so cool|so happy for
bonjour|merci|hola|gracias|can['’]t wait
"""
# Whole sentences of any words.
_COURTESY = r"""
have a good|have a great|have a nice|hope this|hope that|hope you|i hope this|i hope you
let me know(?=\W*\Z| (?:if (?:you|there|i|anything)|how|what you|when you)\b)
feel free(?=\W*\Z| to (?:ask|reach|share|contact|let|message|get|add|write|ping))
happy to help|glad to|is there anything else|nice to meet|nice to hear|good to see|good to hear|keep it up
keep me posted|i['’]d be happy to|i['’]ll be happy to|thanks for|thank you for|thank you so much|if you have any
"""
# All that may follow a short one: with any other word it says something.
_EMPTY_WORDS = """
a again ahead all amazing and awesome buddy bye cool day dear doing done everybody everyone exciting folks for fun
going good great guys happy hear hi hey hello helpful how i i'm idea impressive inspiring interesting it it's job
just kind know later lot lovely luck man mate me much my nice night now of ok okay one perfect please pleasure
point question really see so soon sounds sure sweet team thank thanks that that's the then there things thoughtful
to today tomorrow too true very weekend well wonderful work yeah yep yes you you're your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_ANSWERS = frozenset(["yes", "no", "ok", "okay", "sure", "of course", "certainly", "absolutely", "nice", "great"])
_UNSPACED = ("你好", "您好", "嗨", "谢谢", "謝謝", "好的", "再见", "不客气", "こんにちは", "ありがとう", "はい")
_GOES_ON = re.compile(r"[，、,。.]\s*\w|[不别没勿]要?")
_SHORT_WORDS, _COURTESY_CHARS, _UNSPACED_CHARS = 4, 90, 6


def _any_of(phrases: str) -> str:
    return "|".join(phrases.strip().split("\n"))


_LEAD_IN = re.compile(
    rf"(?:{_any_of(_LEADS)})(?:,? +(?-i:(?P<name>{NAME})))?(?: *[,!.:–—-]+ *|\Z)"
    r"|(?:and|but) +(?=\S)|(?:so|ok|okay|oh|well|actually|also|anyway|btw|yes|yeah|no|sure) +"
    r"(?=(?:so|well|actually|i|i['’][a-z]+|we|we['’][a-z]+|you|the|my|our|let['’]s)\b)",
    re.IGNORECASE,
)
_FILLER = re.compile(rf"(?P<courtesy>{_any_of(_COURTESY)})\b|(?P<short>{_any_of(_SHORT)})\b", re.IGNORECASE)
# A courtesy has no second clause with information, and no "no" that matters.
_NEWS = re.compile(
    r"\b(?:not|never|no|but|because|unless|until|nothing|without|that [a-z]+)\b|n['’]t\b|[,;:–—] +\S+ +\S",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?")
# "Sam, can you …", but not "Instead, can you …" or "Optionally, please …".
_CALLED = re.compile(
    rf"(?!\w+ly\b|Instead\b|Otherwise\b)(?P<name>{NAME}), +(?=(?:please|can|could|would|will|don['’]t)\b)"
)
_DATA = re.compile(r"[0-9/_@#`\"]|[a-z][A-Z]")
# The words filler can begin with: most sentences begin with none, and the patterns need not be tried.
_FIRST = re.compile(r"[A-Za-z]+")
_FIRST_WORDS = frozenset(re.findall(r"(?:^|\|)([a-z]+)", f"{_LEADS}{_SHORT}{_COURTESY}|and|but", re.MULTILINE))


def strip_lead_in(text: str) -> tuple[str, str]:
    """Return a sentence without its lead-in, and the name of the addressee if it has one."""
    name = ""
    while _may_be(text) and (lead := _LEAD_IN.match(text)) is not None:
        name = name or lead["name"] or ""
        text = text[lead.end() :]
    called = _CALLED.match(text)
    if called:
        return text[called.end() :], name or called["name"]
    return text, name


def is_filler(text: str) -> bool:
    """Return True if a sentence is nothing but a courtesy."""
    if text.startswith(_UNSPACED):
        return len(text) <= _UNSPACED_CHARS and _GOES_ON.search(text) is None
    if len(text) > _COURTESY_CHARS or not _may_be(text):
        return False
    found = _FILLER.match(text)
    if found is None or _DATA.search(text):
        return False
    if found["courtesy"]:
        return _NEWS.search(text, found.end()) is None
    rest = _WORD.findall(text, found.end())
    named = found[0].lower() not in _ANSWERS  # "No Redis" names no person
    return len(rest) <= _SHORT_WORDS and all(
        word.lower().replace("’", "'") in _EMPTY or (named and word[0].isupper()) for word in rest
    )


def _may_be(text: str) -> bool:
    first = _FIRST.match(text)
    return first is not None and first[0].lower() in _FIRST_WORDS
