"""Timeline: what happened in a range after a sentence was said: edits, reports. Descriptions hold until an edit."""

import re
import sys
from bisect import bisect_right
from collections.abc import Sequence

from daypack.derived.artifacts.patches import Touch
from daypack.derived.artifacts.tool_calls import read_action, read_call
from daypack.derived.compaction.utterances import Utterance
from daypack.text.literals import literals
from daypack.types.history import Message

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,80}")
_CODE_SHAPE = re.compile(r"_|[a-z][A-Z]|\d")
_CODE_SPAN = re.compile(r"`([^`\n]{1,120})`")
_LEAST_PLAIN = 6  # letters of a plain word in backticks that names something
_MAX_EDIT_CHARS = 20_000
_OPEN = re.compile(
    r"\(Open file: ([^\n]{1,400}?)\)$", re.MULTILINE
)  # what an editor in a shell says after every command
_STATUS_CHARS = 600
_PROSE = (".md", ".txt", ".rst", ".adoc")


class Timeline:
    """The edits of a range, and the agent's reports of finished work."""

    def __init__(self, messages: Sequence[Message], utterances: Sequence[Utterance]) -> None:
        self._edits: list[int] = []  # messages that edit a file
        self._touched: dict[str, int] = {}  # a name -> the last message that edited text with it
        self._removed: dict[str, int] = {}  # a name -> the last message that took it out of a text
        self._opened = ""  # the file in the editor of an agent that has one
        self._start = messages[0].seq if messages else 0
        self._paths: dict[str, set[str]] = {}  # the name of a file -> the paths under which it was edited
        for message in messages:
            if message.role == "assistant":
                self._take(message)
            elif shown := _OPEN.findall(message.text[-_STATUS_CHARS:]):
                self._opened = shown[-1]
        self.reports = [utterance.seq for utterance in utterances if utterance.reporting]
        self.has_work = any(utterance.working for utterance in utterances)  # the agent used tools
        self._asked = [utterance.seq for utterance in utterances if utterance.voice == "user"]

    def _take(self, message: Message) -> None:
        calls = [read_call(call.name, call.arguments) for call in message.tool_calls]
        action = message.meta.get("action") if message.meta else None
        if isinstance(action, str) and action.strip() and not calls:
            calls = [read_action(action)]
        for call in calls:
            changes = [touch for touch in call.touches if touch.verb in ("written", "created", "deleted")]
            if call.opened and call.shape.verb == "written":
                changes.append(Touch("written", self._opened))
            if action and call.touches:
                self._opened = call.touches[-1].path
            if any(touch.verb != "deleted" for touch in changes):
                self._edits.append(message.seq)
            for touch in changes:
                self._change(touch, message.seq)

    def _change(self, touch: Touch, seq: int) -> None:
        file = touch.path.rpartition("/")[2]  # nothing, where the open file is not known
        paths = self._paths.setdefault(file, set())
        if touch.verb == "deleted":
            paths.discard(touch.path)
        else:
            paths.add(touch.path)
        before, after = _names(file), _names(file)
        for old, new, _ in touch.edits or ():
            before |= _names(old[:_MAX_EDIT_CHARS])
            after |= _names(new[:_MAX_EDIT_CHARS])
        if not file.endswith(_PROSE):  # a plan that names code does not change it
            after |= _names((touch.content or "")[:_MAX_EDIT_CHARS])
        self._touched.update(dict.fromkeys(before | after, seq))
        if touch.verb == "deleted":
            self._removed.update(dict.fromkeys(before, seq))
            return
        self._removed.update(dict.fromkeys(before - after, seq))
        for name in after:
            self._removed.pop(name, None)  # it is back

    def edited_after(self, seq: int) -> bool:
        """Return True if a file was edited after a message."""
        return bool(self._edits) and self._edits[-1] > seq

    def first_edit_after(self, seq: int) -> int:
        """Return the first message after another that edits a file; a very high number if there is none."""
        at = bisect_right(self._edits, seq)
        return self._edits[at] if at < len(self._edits) else sys.maxsize

    @property
    def has_edits(self) -> bool:
        """A file was edited in the range."""
        return bool(self._edits)

    def follows_edits(self, seq: int) -> bool:
        """Return True if files were edited between the last message of the user and a message."""
        before = bisect_right(self._asked, seq) - 1
        asked = self._asked[before] if before >= 0 else 0
        at = bisect_right(self._edits, asked)
        return at < len(self._edits) and self._edits[at] < seq

    def is_worked_off(self, seq: int) -> bool:
        """Return True if the agent edited files for a message of the user, and reported before the next one.

        Of a message before the range the edits may be there too: then the report is enough.
        """
        until = next((asked for asked in self._asked if asked > seq), sys.maxsize)
        reports = [report for report in self.reports if seq < report < until]
        return any(seq < self._start or self.follows_edits(report) for report in reports)

    def settled_after(self, seq: int) -> bool:
        """Return True if files were edited after a message, and the agent reported after that."""
        edit = self.first_edit_after(seq)
        return bool(self.reports) and self.reports[-1] > edit

    def reported_after(self, seq: int) -> int:
        """Return how many reports of the agent follow a message."""
        return len(self.reports) - bisect_right(self.reports, seq)

    def moved(self, text: str) -> bool:
        """Return True if a text names a path, and only a file of that name elsewhere was edited."""
        named = [literal.text for literal in literals(text) if literal.kind == "path" and "/" in literal.text]
        for path in named:
            edited = self._paths.get(path.rpartition("/")[2])
            if edited and not any(f"/{other}".endswith(f"/{path.lstrip('./')}") for other in edited):
                return not any(path.endswith(other.lstrip("./")) for other in edited)
        return False

    def touched_after(self, text: str, seq: int) -> bool:
        """Return True if something that a text names was edited after a message."""
        return any(self._touched.get(name, 0) > seq for name in names_in(text))

    def removed_after(self, text: str, seq: int) -> bool:
        """Return True if something that a text names was taken out of the code after a message."""
        return any(self._removed.get(name, 0) > seq for name in names_in(text))


def names_in(text: str) -> set[str]:
    """Return the names of code and files in a text: in backticks, or in the shape of an identifier."""
    found = {name for name in _NAME.findall(text) if _CODE_SHAPE.search(name)}
    for span in _CODE_SPAN.findall(text):
        found |= {name for name in _NAME.findall(span) if len(name) >= _LEAST_PLAIN}
    for literal in literals(text):
        if literal.kind == "path":
            found |= _names(literal.text.rpartition("/")[2])
    return found


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))
