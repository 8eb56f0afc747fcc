"""The steps of a ref: which messages read, wrote or named a file or an address, and which lines they show."""

from typing import NamedTuple

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.artifacts.file_texts import lines_shown
from daypack.derived.raw_history import raw_of
from daypack.history.session import History
from daypack.types.records import Ref
from daypack.types.source import Messages

_VERBS = ("created", "written", "deleted", "read", "listed", "failed")
_BEFORE = 64  # messages before a range in which the call of its first result is looked for


class Step(NamedTuple):
    """Something that one message shows about a file or an address."""

    seq: int
    verb: str
    lines: str  # of the file, where a reading shows their numbers: 1-220
    size: int  # lines of the result; 0 for a call


def steps_of(history: History, ref: Ref, extent: Messages, *, redacting: bool) -> list[Step]:
    """Return what the messages of a range did with a file or an address, in order."""
    first = max(1, extent.start - _BEFORE)
    raw = raw_of(history.messages.records(first, extent.stop), first, extent.stop, redacting=redacting)
    artifacts = read_artifacts(raw)
    found: list[tuple[int, str]] = []
    for file in artifacts.files:
        if file.path == ref.path:
            found += [(seq, verb) for verb in _VERBS for seq in getattr(file, verb)]
    for url in artifacts.urls:
        if url.url == ref.path:
            found += [*((seq, "fetched") for seq in url.fetched), *((seq, "named") for seq in url.named)]
    wanted = sorted((seq, verb) for seq, verb in found if extent.start <= seq <= extent.stop)
    messages = {message.seq: message for message in raw.messages}
    steps: list[Step] = []
    for seq, verb in wanted:
        text = "" if messages[seq].role == "assistant" else messages[seq].text
        shown = lines_shown(text) if verb == "read" else None
        steps.append(Step(seq, verb, f"{shown[0]}-{shown[1]}" if shown else "", len(text.splitlines())))
    return steps
