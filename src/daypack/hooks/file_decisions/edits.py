"""The edits of a range of messages: which files each turn changed, which identifiers are in them, what was renamed."""

from typing import NamedTuple

from daypack.derived.artifacts.observations import Artifacts
from daypack.derived.artifacts.tool_calls import read_call
from daypack.derived.compaction.utterances import user_words
from daypack.derived.raw_history import Raw
from daypack.hooks.file_decisions.naming import MAX_MEANT, is_file, meant_by, names_in, relative_path
from daypack.text.literals import literals

_EDITED_CHARS = 40_000  # of one edit, that are searched for identifiers
_CHANGING = ("written", "created")


class Workplace(NamedTuple):
    """Where a session worked: <agent>/<session>, its folder, and the top of the working tree it was in."""

    session: str
    folder: str
    top: str


class Edits:
    """Answers which files of a project a sentence is about."""

    def __init__(self, raw: Raw, artifacts: Artifacts, place: Workplace) -> None:
        self.paths: dict[str, None] = {}  # the files that were touched, from the top of the working tree
        self.renamed: list[tuple[str, str]] = []
        self._place = place
        self._by_turn: dict[int, dict[str, None]] = {}
        self._turns: dict[int, int] = {}  # of each message
        self._by_name: dict[str, dict[str, None]] = {}  # the files in which an identifier was edited
        turn = 0
        for message in raw.messages:
            if message.role == "user" and user_words(message):
                turn += 1
            self._turns[message.seq] = turn
            for call in message.tool_calls:
                self._take(turn, call.name, call.arguments)
        touched = (self._relative(file.path) for file in artifacts.files)
        self.paths.update(dict.fromkeys(path for path in touched if path))

    def about(self, text: str, seq: int = 0) -> list[str]:
        """Return the files that a sentence is about: those it names, else by its identifiers, else by its turn.

        `seq` is the message that it was said in, if its turn counts.
        """
        if named := self.named(text):
            return named
        identifiers = (_bare(literal.text) for literal in literals(text) if literal.kind == "id")
        known = [files for name in identifiers if 0 < len(files := self._by_name.get(name, {})) <= MAX_MEANT]
        if known:
            return list(dict.fromkeys(path for files in known for path in files))[:MAX_MEANT]
        edited = self._by_turn.get(self._turns.get(seq, -1), {})
        return list(edited) if len(edited) <= MAX_MEANT else []

    def named(self, text: str, *, folders: bool = False) -> list[str]:
        """Return the files that a text names: known ones by their paths, others as they are written."""
        found: list[str] = []
        for name in names_in(text):
            if not is_file(name):
                found += [name] if folders else []
                continue
            meant = meant_by(name, self.paths) or [path for path in self.paths if name.endswith(f"/{path}")]
            found += meant if len(meant) == 1 else [] if meant or name.startswith("/") else [name]
        return found

    def _relative(self, path: str) -> str | None:
        return relative_path(path, self._place.folder, self._place.top)

    def _take(self, turn: int, tool: str, arguments: str) -> None:
        removed: list[str] = []
        for touch in read_call(tool, arguments).touches:
            path = self._relative(touch.path)
            if path is None:
                continue
            if touch.verb == "deleted":
                removed.append(path)
            elif touch.verb in _CHANGING:
                if len(removed) == 1:
                    self.renamed.append((removed[0], path))
                removed.clear()
                self._by_turn.setdefault(turn, {})[path] = None
                changed = "\n".join(part for old, new, _ in touch.edits or () for part in (old, new))
                for literal in literals((touch.content or changed)[:_EDITED_CHARS]):
                    if literal.kind == "id":
                        self._by_name.setdefault(_bare(literal.text), {})[path] = None


def _bare(identifier: str) -> str:
    """Return an identifier without its call and its receiver: `settings.Load()` and `Load` are one."""
    return identifier.removesuffix("()").rpartition(".")[2]
