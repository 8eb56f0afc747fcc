"""Finds what messages and entries decide about files.

A mention of a file is no decision. A sentence counts by its words, as in a compaction: as a decision, as a rule
of the user, as a cause that was found. It is about a file if it names it, if it has an identifier that was edited
in few files of the session, or if the turn it was said in edited few files.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.artifacts.commands import is_path
from daypack.derived.artifacts.observations import Artifacts, CommandRun
from daypack.derived.artifacts.shell import split
from daypack.derived.compaction.candidates import tidy
from daypack.derived.compaction.extractive import FLOORS, Extraction
from daypack.derived.compaction.utterances import user_words
from daypack.derived.compaction.worth import weigh
from daypack.derived.raw_history import Raw
from daypack.derived.rules.recognition import find_rules
from daypack.hooks.file_decisions.edits import Edits, Workplace
from daypack.hooks.file_decisions.index import FileDecision, Kind
from daypack.hooks.file_decisions.naming import MAX_MEANT, names_in, relative_path
from daypack.text.cues.cues import Cues, find_cues
from daypack.text.injected import strip_blocks
from daypack.text.redact.redact import redact
from daypack.text.sentences import sentences
from daypack.text.trim import trim
from daypack.types.history import Message
from daypack.types.memory import Entry

MAX_CHARS = 280  # of a decision
_LEAST_CHARS = 20  # of a cause
_MOST_TOLD = 6_000  # characters of a message: a longer one is pasted, and judged by its place in the conversation
_CAUSE = 1.0  # of the cue of a fact: "the root cause is", "caused by"; a weaker one only states something …
_REASON, _FAILED = 0.7, 0.7  # … unless it is why something failed or was taken back
_UNDONE = re.compile(r"\b(?:revert(?:ed|s)?|roll(?:ed)? back|undone|undid|took (?:it|that) out again)\b", re.IGNORECASE)
_BECAUSE = re.compile(r"\b(?:because|since|due to|so that|otherwise|caused|weil|parce que|porque)\b", re.IGNORECASE)
# "In retry.py, never …": where it applies comes first.
_SCOPE = re.compile(
    r"(?:in|inside|within|for|with|on|as for|regarding|bei|für|dans|pour|en|para)\s+[`\"']?(?=\S*[./])\S+?[`\"']?,?\s+",
    re.IGNORECASE,
)
_REVERTING = {("git", "restore"), ("git", "checkout")}  # of files: `git checkout -- retry.py`


class Found(NamedTuple):
    """What a range of messages shows: decisions in their order, renamed files, and the files it touched."""

    decisions: list[FileDecision]
    renamed: list[tuple[str, str]]
    paths: list[str]


def find_in_messages(raw: Raw, place: Workplace) -> Found:
    """Return what messages decide about the files of their project."""
    artifacts = read_artifacts(raw)
    edits = Edits(raw, artifacts, place)
    messages = {message.seq: message for message in raw.messages}
    found: dict[tuple[int, str], FileDecision] = {}
    for statement in (*_told_by_user(raw, edits), *_held(raw, artifacts, edits), *_reverted(artifacts, place)):
        text, message = " ".join(statement.text.split()), messages.get(statement.seq)
        if statement.files and message is not None:
            decision = FileDecision(
                files=tuple(dict.fromkeys(statement.files)),
                kind=statement.kind,
                text=trim(text, MAX_CHARS),
                at=message.ts,
                by_user=message.role == "user",
                session=place.session,
                seq=statement.seq,
            )
            found.setdefault((statement.seq, text.casefold()), decision)
    decisions = sorted(found.values(), key=lambda decision: decision.seq)
    return Found(decisions, edits.renamed, list(edits.paths))


def find_in_entry(entry: Entry) -> list[FileDecision]:
    """Return what an entry of the project's memory decides about files that it names."""
    by_user = entry.role != "assistant"
    return [
        FileDecision(
            files=tuple(names_in(text)),
            kind=kind,
            text=trim(" ".join(text.split()), MAX_CHARS),
            at=entry.at or entry.created_at,
            by_user=by_user,
            entry=entry.entry_id,
        )
        for kind, text in _told(redact(strip_blocks(entry.raw_entry)).text, by_user=by_user)
    ]


class _Statement(NamedTuple):
    kind: Kind
    seq: int
    text: str
    files: list[str]


def _told_by_user(raw: Raw, edits: Edits) -> Iterator[_Statement]:
    """Yield what the user says about files by their names."""
    for message in raw.messages:
        words = user_words(message) if message.role == "user" else ""
        if len(words) <= _MOST_TOLD:
            for kind, text in _told(words, by_user=True):
                yield _Statement(kind, message.seq, text, edits.named(text, folders=True))


def _held(raw: Raw, artifacts: Artifacts, edits: Edits) -> Iterator[_Statement]:
    """Yield what a compaction would keep: decisions that hold, causes, and errors that were explained."""
    extraction = Extraction(raw, artifacts)
    for choice in extraction.holding("decisions"):
        line, seq = choice.candidate, choice.candidate.utterance.seq
        by_turn = line.utterance.voice == "user" or line.utterance.reporting
        yield _Statement("decision", seq, line.text, edits.about(line.text, seq if by_turn else 0))
    for choice in extraction.holding("facts"):
        line, seq = choice.candidate, choice.candidate.utterance.seq
        if _is_reason(line.text, line.cues):
            yield _Statement("reason", seq, line.text, edits.about(line.text, seq))
    for error in extraction.errors():
        if error.cause and len(error.cause) >= _LEAST_CHARS:
            text = f"{error.cause.rstrip('.')} ({error.text})"
            files = edits.about(text) or edits.about(error.resolution or "")
            seq = int(error.source.rpartition(":")[2])
            yield _Statement("failure", seq, text, files if len(files) <= MAX_MEANT else [])


def _reverted(artifacts: Artifacts, place: Workplace) -> Iterator[_Statement]:
    """Yield the commands that brought files back to what is committed."""
    for run in artifacts.commands:
        paths = [relative_path(path, place.folder, place.top) for path in _brought_back(run)]
        yield _Statement("revert", run.seq, f"reverted: `{run.command}`", [path for path in paths if path])


def _brought_back(run: CommandRun) -> list[str]:
    if run.failed or "git" not in run.command:
        return []
    return [
        word
        for simple in split(run.command)
        if tuple(simple.words[:2]) in _REVERTING and (simple.words[1] == "restore" or "--" in simple.words)
        for word in simple.words[2:]
        if is_path(word) and not word.startswith("-")
    ]


def _told(text: str, *, by_user: bool) -> Iterator[tuple[Kind, str]]:
    """Yield the sentences of a text that name files and decide something, by their words alone."""
    for sentence in sentences(text) if "." in text or "/" in text else ():
        words = tidy(sentence.text)
        if not names_in(words):
            continue
        scope = _SCOPE.match(words)
        judged = words[scope.end() :] if scope else words
        cues = find_cues(judged)
        if cues.asks:
            continue
        if weigh(judged, "decisions") >= FLOORS["decisions"]:
            is_rule = by_user and find_rules(Message(role="user", content=judged))
            yield ("rule" if is_rule else "decision"), words
        elif _is_reason(words, cues) and weigh(words, "facts") >= FLOORS["facts"]:
            yield "reason", words


def _is_reason(text: str, cues: Cues) -> bool:
    """Return True if a sentence says why something is so, failed or was taken back."""
    if cues.facts >= _CAUSE:
        return True
    if cues.facts < _REASON or not _BECAUSE.search(text):
        return False
    return cues.errors >= _FAILED or _UNDONE.search(text) is not None
