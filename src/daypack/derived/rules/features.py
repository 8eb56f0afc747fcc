"""Features of an English sentence that speak for or against a standing rule; `weights` has how much."""

import re

from daypack.derived.rules import english as en
from daypack.derived.rules.english import MANNER, NO_DETERMINER, OUTPUT, WORK, any_of

_OBJECT = (
    rf"(?:(?:don't|do not|dont|never|always|only|please|ever) )*(?:{MANNER}|{WORK}|avoid)(?: me| us| to me| out|"
    rf" up)? "
)
_PROCESS = any_of(
    "run check test commit push stage squash confirm wait verify validate log report record save store rebuild"
    " regenerate bump call name read repeat remind warn tell ask note stop pause return try mark number tag"
    " label sign"
    " document say point start end begin link put"
)

# Where the sentence begins, without greetings and polite forms.
AT_START = {
    "manner": en.MANNER_VERB,
    "work": en.WORK_VERB,
    "process": re.compile(rf"{_PROCESS}\b"),
    "retrieve": re.compile(
        r"(?:show|give|tell|send|list|find|get|bring|fetch|explain|describe|summari[sz]e|translate)\b"
    ),
    "always": en.ALWAYS,
    "norm": en.NORM,
    "no such": en.NO_SUCH,
    "no idiom": en.NO_IDIOM,
    "pronoun object": re.compile(
        rf"{_OBJECT}(?:this|that|these|those|it|them)\b(?! (?:i|you|we|clear|explicit|simple))"
    ),
    "definite object": re.compile(rf"{_OBJECT}(?:the|my|our|their|his|her|its)\b"),
    "indefinite object": re.compile(rf"{_OBJECT}(?:a|an|another|one|two|three|four|five|\d+|some|more)\b"),
    "generic object": re.compile(
        rf"{_OBJECT}(?!(?:the|my|our|their|his|her|its|a|an|another|one|two|three|some|more|this|that|these|those|it|"
        r"them|me|us|what|how|why|where|when|if|for|in|on|at|to|with|and|up|out|again|back|sure|now|not|as|"
        r"like)\b)[a-z]"
    ),
    "styled object": re.compile(
        rf"{_OBJECT}(?:the|a|an|my|your|any|all|more|less|fewer|so many|too many|\d+)?[ -]?(?:[\w'-]+ )?"
        rf"{en.STYLE.pattern[2:]}"
    ),
    "your object": re.compile(rf"{_OBJECT}your\b"),
    "first person": re.compile(r"(?:i|we)(?:'m|'ve|'ll|'d|'re)?\b"),
    "third person": re.compile(
        r"(?:he|she|they|it|this|that|there|the \w+(?: \w+)? (?:is|are|was|has|does|should|will))\b"
    ),
    # "I'm colour-blind, so never use red."
    "reason first": re.compile(
        r"(?:i|we|my \w+(?: \w+)?|our \w+(?: \w+)?)(?:'m|'re| am| are| is| have| work| don't| do not| only| use|"
        r" can't|"
        r" live| read| speak| hate)?\b[^.!?]*?(?:,? so|,? therefore|;|:|,| -| –|—) (?:please )?"
        rf"(?:{MANNER}|{WORK}|don't|do not|never|always|prefer|avoid|you)\b"
    ),
    # "For code reviews, start with …", "In emails to clients, use …"
    "for each": re.compile(
        r"(?:for|in|with|on|to) (?!this|that|now|me\b|us\b|the\b|some|a\b|an\b)(?:[\w'-]+ ){0,4}?[\w'-]+, \w+"
    ),
    "universal first": re.compile(
        r"(?:all|every|each|any|no) (?!of|the|that|this|good|right|tests? (?:pass|were)|idea|news)\w+"
    ),
    "modal universal": re.compile(
        r"(?:make sure|be sure|ensure|see to it|let's|i want|i need|i expect|i'd like|you)\b[\w\s']{0,24}?"
        r"\b(?:every|each(?! other)|all(?! the| of)|always|never|any)\b"
    ),
    "noun first": re.compile(rf"(?:{NO_DETERMINER}[\w'-]+ ){{0,2}}{NO_DETERMINER}{OUTPUT}\b"),
    "fragment": re.compile(
        r"(?!(?:i|we|you|he|she|it|they|the|this|that|there|and|yes|no|ok)\b)(?:[\w'’-]+ ){1,3}"
        r"(?:only|over [\w-]+|first|always|never)\b"
    ),
    "plural fact": re.compile(
        rf"{NO_DETERMINER}(?:[\w-]+ )?[\w-]+s (?:are|go|always|never|come|must|should|have to|need|explain|"
        rf"follow|include|"
        r"live|belong|end|start|begin|in|with|without)\b"
    ),
    "anything first": re.compile(
        r"(?:anything|everything|nothing|whatever|no \w+(?: \w+)?|every \w+(?: \w+)?|each \w+(?: \w+)?|all \w+s) "
        r"(?:you|we|gets?|goes?|go|may|must|should|is to|are to|needs?|has to|have to|comes?|without|in)\b"
    ),
    "condition first": re.compile(
        r"(?:when|whenever|if|before|after|once|unless|until|each time|every time|any ?time|as soon as|in case|"
        r"wherever)\b"
        r"[^,]{3,80}, (?!(?:i|we|he|she|it|they|there|the|this|that|my|our|his|her|their|its|a|an|nothing|"
        r"everything|what|"
        r"why|how|can|could|is|are|do|does|should|you (?!must|should|have|need))\b)"
        r"(?:please |always |never |just |then |first )*[a-z]"
    ),
    "praise": re.compile(
        r"(?:nice|great|good|awesome|well|sounds|looks|seems|thank|thankfully|congrats|wow|cool|same|true|exactly|"
        r"you can do|you should[!.])\b"
    ),
}
# Where any clause begins.
IN_CLAUSE = {
    "negative clause": en.NEGATIVE,
    "modal clause": en.MODAL,
    "lasting": en.LASTING,
    "preference": en.PREFERENCE,
    "convention": en.CONVENTION,
    "instead clause": en.INSTEAD,
}
# Anywhere, after words of scope are taken out.
ANYWHERE = {
    "story": en.STORY,
    "reported": en.REPORTED,
    "supposed": en.SUPPOSED,
    "one-off": en.ONE_OFF,
    "demonstrative": re.compile(r"\b(?:this|these|those) \w+|\bhere\b"),
    "definite": re.compile(r"\bthe\b"),
    "all the": re.compile(
        r"\b(?:all|each of|every one of|every other|each|every) (?:of )?(?:the|these|those|them|his|her|other|"
        r"file in|"
        r"test in)\b|\b(?:occurrence|usage|place|instance)s?\b|\bboth\b|\brest\b"
    ),
    "universal": en.UNIVERSAL,
    "always anywhere": re.compile(r"\b(?:always|never)\b"),
    "anything": re.compile(r"\b(?:anything|everything|nothing|whatever|anyone|nobody|everybody|any|everywhere)\b"),
    "output": en.AGENT_OUTPUT,
    "reply": en.REPLY,
    "style": en.STYLE,
    "generic output": en.GENERIC_OUTPUT,
    "user condition": en.USER_CONDITION,
    "agent condition": en.AGENT_CONDITION,
    "lasting prohibition": en.SCOPE_OF_PROHIBITION,
    "only": re.compile(r"\bonly\b"),
    "over": re.compile(r"\w over \w|\bnot \w+[.!]?\Z"),
    "past": en.PAST,
    "literal": re.compile(
        r"`|\w+\(\)|\b\w+\.(?:py|js|ts|go|rs|json|ya?ml|toml|csv|html|css|txt|sh|java|rb)\b|https?:|\bline \d|"
        r"[\w-]+/[\w-]+/|\b[a-z]+_[a-z]+\b"
    ),
    "about agent": en.ABOUT_AGENT,
    "your": re.compile(r"\byour\b"),
    "ban": re.compile(
        r"\b(?:banned|forbidden|off[- ]limits|not allowed|not optional|mandatory|taboo|strictly|policy|"
        r"convention|rule)\b"
    ),
    "word": re.compile(r"\bthe words?\b|\bterms?\b"),
    "means": re.compile(
        r"[\"'”] (?:in my \w+ )?(?:means|is short for|refers to|stands for)\b|\bi (?:always"
        " )?mean\b"
    ),
    "aside": en.ASIDE,
    "feeling": re.compile(
        r"\b(?:love|awesome|amazing|great|glad|proud|inspiring|thanks|wow|haha|lol|fun|excited|sorry|hope|wish|lucky|"
        r"support|dream|journey|motivat\w+|friends?|family|kids)\b"
    ),
    "result": re.compile(
        r"\b(?:result|output|error|bug|issue|crash|page|button|form|app|users?|function|endpoint|script|server)\b"
    ),
}
# How long an instruction lasts.
SCOPES = {"scope": re.compile(rf"\b{en.SCOPE_ADVERB.pattern}"), "again": en.SCOPE}
