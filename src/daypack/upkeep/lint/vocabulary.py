"""Words of instructions as the duplication map sees them: folded, stemmed, and with words that mean one rule as one.

    terms_of("Be **concise** — keep answers short.")  ->  ("concise", "answer", "concise")

Nothing is learnt and no model is asked: the table below says which words stand for the same concept in files that
speak to an agent.
"""

import re
from functools import lru_cache

from daypack.search.words import fold
from daypack.text.english import INSTRUCTION_STOP_WORDS, root

# The first word of a line stands for all of them. Only words that instruct: a noun of some project is never in here.
_CONCEPTS = """
    concise brief terse succinct short laconic verbose verbosity filler pithy chatty
    voice spoken speak speech aloud tts oral
    verify verification check confirm validate validation provenance proof prove evidence substantiate doublecheck
    fabricate fabrication invent hallucinate hallucination
    assume assumption presume presumption guess guesswork suppose supposition speculate speculation
    delegate delegation subagent offload outsource
    narrate narration announce
    memory remember recollection
"""
# The same, for words that are too common to say what a text is about.
_SAME = """
    never no not forbidden forbid prohibit prohibited ban banned disallow cannot dont doesnt mustnt isnt without
    always every
    claim assert assertion
    cite citation attribute attribution
    cheap cheaper inexpensive economical thrifty frugal
    expensive costly pricey
    longterm durable permanent persistent lasting
    layer tier
    answer reply respond response
    ask question clarify clarification
"""
_PHRASES = (
    (re.compile(r"\bmak(?:e|es|ing) (?:\w+ ){0,2}up\b"), "fabricate"),
    (re.compile(r"\blong[\s-]+term\b"), "longterm"),
    (re.compile(r"\bread (?:\w+ )?(?:aloud|out loud)\b"), "voice"),
    (re.compile(r"\b(?:do|does|must|should|can|could|would|is|are)(?:n['’]t| not)\b"), "not"),
    (re.compile(r"\bcan ?not\b"), "not"),
    (re.compile(r"\bdouble[\s-]+check\b"), "verify"),
    (re.compile(r"\bsub[\s-]+agents?\b"), "subagent"),
    (re.compile(r"\btext[\s-]+to[\s-]+speech\b"), "voice"),
)
# What may be added to a sentence without it saying anything else.
_FILLER_WORDS = "a an the is are be to please that of it its this"
# Words of headings that name no subject.
_HEADING_WORDS = """
    rule protocol section note guideline policy guide overview instruction behaviour behavior summary detail info
    information style convention principle important general setup layer architecture system structure tier mode usage
    tip default my your the and how thing
"""
# Members of a concept that mean other things as often: alone they prove nothing.
_WEAK_WORDS = "short check checks checked proof filler chatty speak speaks"
NEGATION = "never"
# Words any instruction may have: two texts that share only these share nothing.
_COMMON = """
    add agent allow always answer ask back bad best better big call change check code come command create day default
    different do done easy end enough example fail file find first follow format full get give go good great help high
    important include instead keep kind know large last leave let level like line list long look low make many matter
    mean message method mode name need never new next nothing now number off often old one open option order output part
    path people person place point possible prefer put quick read real reason result right run same say second see
    send session set show side simple single small something start state stay step still stop sure take task tell test
    text three time today tool true try turn two type under use user value want way well whole word work write year
    read reads using used made makes taken takes given gives rule must require when even yet own note detail
    """
_FILLER, _WEAK = (frozenset(words.split()) for words in (_FILLER_WORDS, _WEAK_WORDS))
_WORD = re.compile("[0-9a-z\x80-\U0010ffff]+")
_MARKUP = re.compile(r"[*_`~]+|<!--|-->|!?\[([^\]]*)\]\([^)]*\)")


def plain(text: str) -> str:
    """Return text without Markdown and in small letters; a link is its words."""
    return _MARKUP.sub(lambda match: match[1] or "", text).lower()


def words_of(text: str) -> tuple[str, ...]:
    """Return the words two sentences must share, in order, to be the same sentence."""
    return tuple(word for word in _WORD.findall(_folded(text)) if word not in _FILLER)


def terms_of(text: str) -> tuple[str, ...]:
    """Return the words that carry the meaning, stemmed, each as its concept."""
    text = _folded(text)
    for pattern, concept in _PHRASES:
        text = pattern.sub(concept, text)
    words = _WORD.findall(text)
    return tuple(concept_of(word) for word in words if word not in INSTRUCTION_STOP_WORDS and len(word) > 1)


def is_concept(term: str) -> bool:
    """Return True if a term names a rule of behaviour, and so weighs more than other words."""
    return term in _HEADS


def is_file(term: str) -> bool:
    """Return True if a term is the name of a prompt file, such as MEMORY.md."""
    return term.endswith("xmd")


def names_concept(text: str, terms: frozenset[str]) -> bool:
    """Return True if a text has a word that names one of these concepts and little else."""
    return any(concept_of(word) in terms and word not in _WEAK for word in _WORD.findall(_folded(text)))


def is_common(term: str) -> bool:
    """Return True if a term carries almost no meaning."""
    return term in _COMMON_TERMS


def _folded(text: str) -> str:
    # A file is one word: MEMORY.md is neither memory nor md.
    text = re.sub(r"\b([\w-]+)\.(md|json|jsonl|toml|py|rs|txt|ya?ml)\b", r"\1x\2", plain(text))
    text = text.replace("n't", "nt").replace("n’t", "nt")
    return text if text.isascii() else fold(text)


@lru_cache(20_000)
def concept_of(word: str) -> str:
    """Return what a word counts as."""
    found = root(word)
    return _BY_ROOT.get(found, found)


_HEADS = frozenset(line.split()[0] for line in _CONCEPTS.strip().splitlines())
_BY_ROOT = {
    root(word): line.split()[0] for line in (_CONCEPTS + _SAME).split("\n") if line.strip() for word in line.split()
}
HEADING_FILLER = frozenset(map(concept_of, _HEADING_WORDS.split()))
_COMMON_TERMS = frozenset(map(concept_of, _COMMON.split())) - _HEADS
