"""Plays a session through the public interface, with a clock of its own and without a model.

Every message has a client key. A run after an interrupted one continues at the first message that is missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.facets import moment
from daypack.serve.sample.story import Fault
from daypack.session import Session, open_session
from daypack.turn.turn import Turn

Message = Mapping[str, Any]
MODEL = "gpt-4o"
FOLDER = "/home/ada/posters"  # that the conversations are about
_FIRST = "sample-0"
_CACHE_BLOCK = 128  # providers round what they read from the cache
_CUT_OFF = "The layout names no font for Chinese characters, so I "


class Place:
    """Where the sessions of the sample are stored."""

    def __init__(self, home: str | None, uid: str | None, agent: str) -> None:
        self.home, self.uid, self.agent = home, uid, agent

    def open(self, name: str) -> Session:
        """Open a session that uses no model, whatever is configured."""
        return open_session(
            name,
            agent=self.agent,
            home=self.home,
            uid=self.uid,
            workspace="",
            model=MODEL,
            compaction_model="none",
            durability="os",
        )


class Clock:
    """The time of a session: it moves with what happens in it."""

    def __init__(self, began: float) -> None:
        self.now = began

    def read(self) -> float:
        """Return the time."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Play:
    """One session while it is played; `tools` are offered with every call."""

    def __init__(self, session: Session, began: float, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        self.session = session
        self.clock = Clock(began)
        session.history.clock = self.clock.read
        self._tools = list(tools)
        self._stored = {message.client_key for message in session.messages()}
        if not self._stored:  # as if it was created then and there
            atomic.replace(session.layout.created_at, f"{moment(began)}\n".encode(), durable=False)
            atomic.replace(session.layout.cwd, f"{FOLDER}\n".encode(), durable=False)

    @property
    def wanted(self) -> bool:
        """False if the session is finished, or not one of the sample: of another version, or of the user."""
        return self.session.state != "done" and (not self._stored or self.has(_FIRST))

    def has(self, key: str) -> bool:
        """Return True if an earlier run stored a message."""
        return key in self._stored

    def say(self, key: str, text: str) -> None:
        """Append a message of the user."""
        self.clock.wait(40 + len(text) // 2)
        if not self.has(key):
            self.session.append("user", text, client_key=key)

    def reply(self, key: str, message: Message | Callable[[Turn], Message], fault: Fault | None = None) -> None:
        """Prepare a call and accept the reply to it, which may depend on the turn."""
        self.clock.wait(5)
        if self.has(key):
            return
        turn = self.session.prepare(tools=self._tools)
        if fault in ("cut", "overloaded"):
            self._fail(fault)
            self.clock.wait(7)
            turn = self.session.prepare(tools=self._tools)
        reply = message(turn) if callable(message) else message
        self.clock.wait(3 + len(str(reply)) // 60)
        usage = _usage(turn, reply, missed=fault == "cache miss")
        self.session.accept({"role": "assistant", "client_key": key, **reply}, usage)

    def _fail(self, fault: Fault) -> None:
        if fault == "overloaded":
            with suppress(DaypackError):
                self.session.accept({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
            return
        with suppress(ConnectionResetError):
            self.session.accept(_broken_stream())

    def answer(self, call_id: str, output: str) -> None:
        """Append the output of a tool."""
        self.clock.wait(2)
        if not self.has(call_id):
            self.session.append("tool", output, tool_call_id=call_id, client_key=call_id)

    def finish(self) -> None:
        """Mark the session as finished; it is not played again."""
        self.session.set_state("done")


def _usage(turn: Turn, reply: Message, *, missed: bool) -> dict[str, int]:
    cached = 0 if missed else turn.expected_cached_tokens // _CACHE_BLOCK * _CACHE_BLOCK
    return {"input_tokens": turn.tokens, "cached_tokens": cached, "output_tokens": 20 + len(str(reply)) // 4}


def _broken_stream() -> Iterator[str]:
    yield _CUT_OFF
    raise ConnectionResetError("connection reset by peer")
