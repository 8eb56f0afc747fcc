"""The process beside opencode: a request of the plug-in per line in, an answer per line out, until its input ends.

    {"n":1,"do":"texts","session":"ses_…","cwd":"/work","message":"msg_…","prompt":"…","source":"startup"}
    {"n":1,"result":{"msg_…":"<note id=…>…"}}
    {"n":2,"do":"pack","request":{…}}        {"n":2,"result":null}      all messages fit
    {"n":3,"do":"compact","session":…}       {"n":3,"result":"…"}       what the summary must keep
    {"n":4,"do":"event","event":"Stop",…}    {"n":4,"result":null}

It is a child of opencode, ends with it, and needs no port. A failure is an answer and a line in hook.log; the plug-in
then sends what opencode would have sent.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from daypack.errors import BadInput, StorageFailed
from daypack.history.layout import Home
from daypack.hooks import failures
from daypack.hooks.call import AGENTS, HookCall, HostName
from daypack.hooks.dispatch import answer
from daypack.hooks.packing.lanes import find_database
from daypack.hooks.settings import read_settings
from daypack.importers.opencode_store import session_path

HOST: HostName = "opencode"
PACK = "Pack"  # the word in `[hooks] off` for packing
_MAX_LINE = 64 << 20
_DOWN_SECONDS = 30.0  # after a database did not answer, opencode sends its own messages without asking it again


def serve(home: Home) -> None:
    """Answer requests until standard input ends."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C in a terminal is for opencode
    out = os.dup(1)
    os.dup2(2, 1)  # nothing but answers may be on standard output
    answers = Answers(home)
    with open(0, "rb", closefd=False) as requests:
        while line := requests.readline(_MAX_LINE):
            if line.strip():
                answer_line = msgspec.json.encode(answers.answer(line)) + b"\n"
                with suppress(BrokenPipeError):  # opencode has ended: its last events may still be to come
                    _write(out, answer_line)
    answers.close()


class Answers:
    """Answers requests, one after the other."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._database = find_database()
        self._packer: Any = None  # made when it is needed: 50 ms
        self._down_until = 0.0
        self._actions: dict[str, Callable[[Mapping[str, Any]], object]] = {
            "texts": self._texts,
            "pack": self._pack,
            "compact": self._compact,
            "event": self._event,
        }

    def answer(self, line: bytes) -> dict[str, Any]:
        """Return the answer to a line; a failure is an answer too."""
        fields: dict[str, Any] = {}
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
            action = self._actions.get(str(fields.get("do")))
            if action is None:
                raise BadInput(f"no such request: {fields.get('do')}", operation="answer", place=HOST)
            return {"n": fields.get("n"), "result": action(fields)}
        except Exception as error:  # whatever it is, opencode sends its own messages
            place = failures.Place(HOST, str(fields.get("do") or "?"), str(fields.get("session") or "?"))
            failures.record(place, error)
            return {"n": fields.get("n"), "error": f"{type(error).__name__}: {error}"}

    def close(self) -> None:
        """Close the sessions that were packed."""
        if self._packer is not None:
            self._packer.close()

    def _texts(self, fields: Mapping[str, Any]) -> dict[str, str]:
        """Return all texts of a session; those of a new message are made now."""
        from daypack.hooks.packing.texts import Texts  # noqa: PLC0415 — not for an event

        texts, message = Texts(self._home, AGENTS[HOST], str(fields["session"])), fields.get("message")
        known = texts.read()
        if message and message not in known:
            source = str(fields.get("source") or "")
            calls = [self._call(fields, "SessionStart", source=source)] if source else []
            if prompt := str(fields.get("prompt") or ""):
                calls.append(self._call(fields, "UserPromptSubmit", prompt=prompt))
            known[message] = texts.add(message, calls)
        return {name: text for name, text in known.items() if text}

    def _pack(self, fields: Mapping[str, Any]) -> object:
        if not read_settings(self._home).allows(PACK) or time.monotonic() < self._down_until:
            return None
        from daypack.hooks.packing.packing import Packer, PackRequest  # noqa: PLC0415

        if self._packer is None:
            self._packer = Packer(self._home, self._database)
        try:
            return self._packer.pack(msgspec.convert(fields.get("request"), PackRequest))
        except StorageFailed as error:
            if self._home.database is not None and error.place == self._home.sessions_place:
                self._down_until = time.monotonic() + _DOWN_SECONDS
            raise

    def _compact(self, fields: Mapping[str, Any]) -> str:
        return answer(self._call(fields, "PreCompact"), self._home).decode("utf-8", "replace")

    def _event(self, fields: Mapping[str, Any]) -> None:
        answer(self._call(fields, str(fields.get("event"))), self._home)

    def _call(self, fields: Mapping[str, Any], event: str, source: str = "", prompt: str = "") -> HookCall:
        session = str(fields["session"])
        return HookCall(
            host=HOST,
            event=event,
            session=session,
            cwd=str(fields.get("cwd") or os.getcwd()),
            transcript=session_path(self._database, session),
            source=source,
            prompt=prompt,
        )


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
