"""Finds memories that say nothing about anyone: courtesies, echoes of a system prompt, dumps of errors, heartbeats.

Only what is certain by its form. Chatter about a finished task looks like a fact about a project, and is not judged.
"""

import re
from collections.abc import Sequence

from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.text.filler import is_filler, strip_lead_in
from daypack.text.sentences import sentences

_WORDS = re.compile(r"[^\W_]")
_MAX_FILLER_CHARS = 300
_SYSTEM_PROMPT = re.compile(
    r"\s*(?:#+ *)?(?:system(?: prompt)?:\s*)?you are (?:a|an|the|now) (?:[\w-]+ ){0,4}"
    r"(?:assistant|ai|agent|chat ?bot|language model|expert|copilot)\b",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"\b(?:as an ai (?:language )?model|you must (?:always|never)|do not reveal|your (?:task|role|job) is to|"
    r"respond (?:only )?(?:in|with)|you (?:have access to|can use) the following tools)\b",
    re.IGNORECASE,
)
_DUMP = re.compile(
    r"^(?:Traceback \(most recent call last\):|\s+at \S+ \(.*:\d+(?::\d+)?\)|  File \"[^\"]+\", line \d+"
    r"|\s+at [\w$.<>]+\([\w.]+:\d+\)|thread '.*' panicked at |goroutine \d+ \[)",
    re.MULTILINE,
)
_HEARTBEAT = re.compile(
    r"\W*(?:HEARTBEAT_OK|NO_REPLY|heartbeat (?:ok|check|received|poll)\b.{0,40}|\[?no response\]?)\W*\Z"
)
_MOST_OF_IT = 0.5


def find_junk(memories: Sequence[StoredMemory]) -> list[Finding]:
    """Return memories that are empty or junk."""
    found: list[Finding] = []
    for at, memory in enumerate(memories):
        if not _WORDS.search(memory.text):
            found.append(Finding(kind="empty", at=at, problem="no text"))
        elif problem := _judge(memory.text):
            found.append(Finding(kind="junk", at=at, problem=problem))
    return found


def _is_courtesy(sentence: str) -> bool:
    rest = strip_lead_in(sentence.strip())[0].strip(" .!,")
    return is_filler(sentence.strip()) or is_filler(rest)


def _judge(text: str) -> str:
    if len(text) <= _MAX_FILLER_CHARS and all(_is_courtesy(part.text) for part in sentences(text)):
        return "only a courtesy"
    if _HEARTBEAT.match(text):
        return "a heartbeat"
    if _SYSTEM_PROMPT.match(text) and (_ECHO.search(text) or len(text) < _MAX_FILLER_CHARS):
        return "an echo of a system prompt"
    dumped = [match.start() for match in _DUMP.finditer(text)]
    if len(dumped) > 1 and (len(text) - dumped[0]) >= _MOST_OF_IT * len(text):
        return "a dump of an error"
    return ""
