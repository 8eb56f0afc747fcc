"""Diagnoses: the errors of a range that are open, and of the others those whose cause and cure are known."""

import re
from collections.abc import Iterable, Sequence

from daypack.derived.artifacts.observations import (
    Artifacts,
    ErrorSeen,
    resolving_step,
)
from daypack.derived.artifacts.outcomes import names_problem
from daypack.derived.compaction.candidates import Candidate, shorten
from daypack.derived.compaction.timeline import Timeline
from daypack.derived.template import MAX_BULLET_CHARS
from daypack.text.extract import literal_density
from daypack.text.words import content_words
from daypack.types.compaction import Bullet
from daypack.types.records import ErrorRecord

_MOST_RESOLVED = 3
_MOST_FILES = 3
_EDITING = "editing "
_CAUSE_CHARS = 160
# Looking for something that is not there is no error that has to be resolved.
_LOOKING = re.compile(r"(?:read|fetch|tool) ")
_LOOKED = re.compile(
    r"(?:cd \S+ && )?(?:ls|cat|grep|rg|find|stat|head|tail|wc|file|which|sed -n|tree|git (?:show|log|diff|"
    r"status|branch))\b"
)
# Programs whose failure another command mends, not an edit.
_OPERATING = re.compile(r"run (?:git|gh|docker|kubectl|terraform|pip|npm|apt|apt-get|brew|curl|ssh)\b")
# A slip of the agent with its own editor, unless the file cannot be written at all.
_SLIP = re.compile(r"write ")
_UNWRITABLE = re.compile(r"permission|denied|read-only|no space|disk", re.IGNORECASE)
# What is not there will not be there next time either: worth knowing.
_ABSENT = re.compile(r"command not found|not installed|no task \S+ found|not recognized as", re.IGNORECASE)
_CAUSAL = re.compile(
    r"\b(?:because|root cause|caused by|due to|turns out|culprit|the (?:issue|problem|error|bug|failure|cause|reason) "
    r"(?:is|was|comes)|since the)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\b(?:missing|expects?|expected|requires?|doesn't|does not|isn't|aren't|wrong|undefined|unused|"
    r"mismatch|conflicts?|no "
    r"longer|without|can't|cannot|stale|old|creates?|writes?|runs?|hardcoded|instead)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:maybe|might|perhaps|probably|possibly|let me|not sure|seems?|appears?|should|i(?:'ll| will)? need|need to|"
    r"pre-existing|actually|wait)\b|[?:]$|^\W*(?:it|this|that|these|those|but|so|for|now|however)\b",
    re.IGNORECASE,
)
_SHARED_WORDS = 2
_NEAR = 8  # messages after an error in which its cause is explained
_LONG_AGO = 12  # messages after which a failed look-up counts as passed over


def find_errors(artifacts: Artifacts, lines: Sequence[Candidate], timeline: Timeline, stop: int) -> list[Bullet]:
    """Return the errors, open ones first, the newest of each first; `stop` is the last message of the range."""
    errors = _newest_runs([error for error in artifacts.errors if names_problem(error.text)])
    found: dict[str, Bullet] = {}
    # One that names nothing ("File does not exist.") helps least.
    ordered = sorted(errors, key=lambda seen: (seen.resolved_by is not None, not literal_density(seen.text), -seen.seq))
    resolved = 0
    for at, error in enumerate(ordered):
        text = shorten(" ".join(error.text.split()), MAX_BULLET_CHARS)
        if not text or text in found:
            continue
        weight = round((0.5 if error.resolved_by else 0.9) * (1 - 0.3 * at / len(ordered)), 4)
        if error.resolved_by is None:
            if not _is_passed_over(error, timeline, stop):
                found[text] = Bullet("errors", text, f"messages:{error.seq}", weight=weight, keys=error.keys)
            continue
        cure, cause = _cure(error, artifacts), _cause(error, lines, timeline)
        if cure and (cause or not cure.startswith(_EDITING)) and resolved < _MOST_RESOLVED:
            resolved += 1
            found[text] = Bullet("errors", text, f"messages:{error.seq}", cure, weight, cause)
    return list(found.values())


def _newest_runs(errors: Sequence[ErrorSeen]) -> list[ErrorSeen]:
    """Leave out open errors of a step that failed again later: the newer run says what is wrong now."""
    newest = {error.keys: error.seq for error in errors if error.keys}
    return [error for error in errors if error.resolved_by or newest.get(error.keys, error.seq) == error.seq]


def resolved_since(errors: Iterable[ErrorRecord], artifacts: Artifacts, timeline: Timeline) -> dict[str, str | None]:
    """Return the ids of earlier errors that this range resolved, with the cure, or passed over, without one."""
    found: dict[str, str | None] = {}
    for error in errors:
        seen = ErrorSeen(error.error, 0, "", keys=error.keys)
        step = resolving_step(artifacts, seen) if error.keys else None
        if step and step.resolved_by:
            cure = _cure(step, artifacts)
            # The record does not say which command failed: the one that succeeded may be the same.
            operating = any(map(_OPERATING.match, error.keys))
            mended = cure and cure.startswith(_EDITING) != operating
            found[error.id] = cure if mended else None
        elif timeline.settled_after(0) and not _ABSENT.search(error.error):
            found[error.id] = None
    return found


def _is_passed_over(error: ErrorSeen, timeline: Timeline, stop: int) -> bool:
    """Return True if an agent continued without resolving an error."""
    if _ABSENT.search(error.text):
        return False
    if timeline.settled_after(error.seq):
        return True
    if any(map(_SLIP.match, error.keys)) and not _UNWRITABLE.search(error.text):
        return True
    looking = any(map(_LOOKING.match, error.keys)) or bool(_LOOKED.match(error.command))
    return looking and stop - error.seq > _LONG_AGO


def _cure(error: ErrorSeen, artifacts: Artifacts) -> str | None:
    """Return what was done between an error and the step that succeeded; None if that only was tried again."""
    until = error.resolved_by or 0
    if any(key.startswith(("write ", "read ", "tool ")) for key in error.keys):
        return None  # a slip of the agent with its own tool
    other = _other_command(error, artifacts)
    if other and any(map(_OPERATING.match, error.keys)):
        return other
    edited = {
        file.path.rpartition("/")[2]: None
        for file in artifacts.files
        if any(error.seq < seq <= until for seq in file.written + file.created)
    }
    if edited:
        names = ", ".join(list(edited)[:_MOST_FILES])
        return f"{_EDITING}{names}" + (f" and {len(edited) - _MOST_FILES} more" if len(edited) > _MOST_FILES else "")
    return other


def _other_command(error: ErrorSeen, artifacts: Artifacts) -> str | None:
    """Return the command that succeeded in the place of the one that failed, if it is short and known whole."""
    tried = " ".join((error.resolution or "").split())
    runs = [run.command for run in artifacts.commands if run.result == error.resolved_by]
    # The same with a filter after it only hides the error.
    again = tried.partition("|")[0].strip() == error.command.partition("|")[0].strip()
    if not tried or again or (runs and tried not in runs) or "<<" in tried or "&&" in tried:
        return None
    return shorten(tried, MAX_BULLET_CHARS) or None


def _cause(error: ErrorSeen, lines: Sequence[Candidate], timeline: Timeline) -> str | None:
    """Return the sentence in which the agent explains an error, before it edits anything."""
    words = frozenset(content_words(error.text))
    until = min(error.resolved_by or 0, error.seq + _NEAR, timeline.first_edit_after(error.seq))
    for line in lines:
        if line.utterance.voice != "assistant" or not error.seq < line.utterance.seq <= until:
            continue
        if _HEDGED.search(line.text) or len(line.text) > _CAUSE_CHARS:
            continue
        near = len(words & line.words) >= _SHARED_WORDS
        if _CAUSAL.search(line.text) or (near and line.density and _WRONG.search(line.text)):
            return line.text.rstrip(".:")
    return None
