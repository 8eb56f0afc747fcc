"""Headers: lines that introduce a list of rules, or a text that the message only carries."""

import re

from daypack.derived.rules.english import OPENERS, WORK_VERB

RULES_HEADER = re.compile(
    r"\b(?:rules?|guidelines?|conventions?|preferences|principles|standards?|house style|style guide|"
    r"standing (?:orders|instructions)|"
    r"instructions for you|dos and don'ts|how (?:i|we) (?:want|like|work)|for all (?:your|future)|"
    r"when(?:ever)? you (?:write|answer|reply|"
    r"code|work)|always|never|remember|keep in mind|from now on|going forward|in (?:the )?future|i (?:want|like|"
    r"expect) you to|"
    r"my (?:style|format|tone))\b"
)
MATERIAL = re.compile(
    r"\b(?:summari[sz]e|review|proofread|translate|rewrite|rephrase|improve|edit|correct|check|explain|"
    r"analy[sz]e|evaluate|eval|compare|"
    r"implement|here (?:is|are)|here's|this is|these are|below (?:is|are)|following|attached|pasted|error|log|"
    r"output|trace|text|draft|"
    r"e?mail|paragraph|article|document|says?|said|wrote|writes|prompt|reads?|transcript|feedback|comment|issue|"
    r"ticket|description|"
    r"readme|got this|get this|saw this|found this|quote)\b"
)
_INLINE_HEADER = re.compile(
    r"(?:\w+ ){0,4}(?:rules?|conventions?|guidelines?|preferences?|house style)(?: (?:for|in|of|on|about|"
    r"here)\b[^:]{0,40})?: ?\S"
)


def is_rules_header(line: str) -> bool:
    """Return True if a line introduces rules; "summarise these rules:" introduces a text to work on."""
    return RULES_HEADER.search(line) is not None and WORK_VERB.match(OPENERS.sub("", line, count=1)) is None


def has_inline_header(words: str) -> bool:
    """Return True if a sentence is a list of rules itself: "House rules: no emojis, short answers."."""
    return _INLINE_HEADER.match(words) is not None
