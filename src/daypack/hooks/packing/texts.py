"""The texts that belong to messages of opencode: its own history does not have them, every call must.

home/<uid>/hook/opencode/<session>/texts.jsonl   {"message":"msg_…","text":"<note id=…>…"}

They are written once and sent with the same message ever after, so that the provider's cache holds.
"""

import os

import msgspec
from msgspec import Struct

from daypack.files import atomic
from daypack.files.jsonl import write_all
from daypack.history.layout import Home
from daypack.hooks.call import HookCall
from daypack.hooks.composition import SEPARATOR
from daypack.hooks.dispatch import answer
from daypack.hooks.state import SessionState


class Text(Struct, frozen=True):
    """A text, and the message that it follows."""

    message: str
    text: str


class Texts:
    """The texts of one session."""

    def __init__(self, home: Home, agent: str, session: str) -> None:
        self._home = home
        self._path = os.path.join(SessionState(home, agent, session).folder, "texts.jsonl")

    def read(self) -> dict[str, str]:
        """Return them by message; a line that a killed process left torn is left out."""
        found: dict[str, str] = {}
        for line in (atomic.read(self._path) or b"").splitlines():
            try:
                text = msgspec.json.decode(line, type=Text)
            except (msgspec.MsgspecError, UnicodeError):
                continue
            found.setdefault(text.message, text.text)
        return found

    def add(self, message: str, calls: list[HookCall]) -> str:
        """Return what hooks say at these events of a message, and store it, also if it is nothing."""
        said = [answer(call, self._home).decode("utf-8", "replace") for call in calls]
        text = Text(message, SEPARATOR.join(filter(None, said)))
        atomic.make_folders(os.path.dirname(self._path), durable=False)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, b"\n" + msgspec.json.encode(text) + b"\n")
        finally:
            os.close(fd)
        return text.text
