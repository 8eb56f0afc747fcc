"""A child forked while other threads of its parent work can do everything, whatever locks they held at that moment."""

import faulthandler
import json
import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaigns import Campaign

import daypack
from daypack.memory.tools import Memories
from daypack.session import Session
from daypack.upkeep.doctor import examine_session

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
WATCHDOG_SECONDS = 60  # a child that hangs is killed; none takes a second
MAX_TURNS = 30  # of a thread: more only make the log long, which the child then compacts
Acknowledge = Callable[[str], None]


class Work:
    """Every kind of operation on one session and one memory; `done` gets each text that was acknowledged."""

    def __init__(self, session: Session, memories: Memories, memory_id: str, done: Acknowledge) -> None:
        self.session = session
        self.memories = memories
        self.memory_id = memory_id
        self.done = done

    def append(self, text: str) -> None:
        self.session.append("user", text)
        self.done(f"message {text}")

    def append_keyed(self, text: str) -> None:
        self.session.append("user", text, client_key=text)
        self.done(f"message {text}")

    def append_many(self, text: str) -> None:
        texts = [f"{text} {part}" for part in "abc"]
        self.session.append_many([{"role": "user", "content": words} for words in texts])
        for words in texts:
            self.done(f"message {words}")

    def event(self, text: str) -> None:
        self.session.append_event("noted", {"text": text})
        self.done(f"event {text}")

    def call(self, text: str) -> None:
        self.session.append("assistant", text, tool_calls=[{"id": text, "name": "run", "arguments": "{}"}])
        self.done(f"message {text}")
        self.done(f"called {text}")

    def prepare(self, text: str) -> None:
        self.session.append("user", text)
        self.done(f"message {text}")
        assert self.session.prepare(budget=8000).messages

    def accept(self, text: str) -> None:
        self.session.accept(text)
        self.done(f"message {text}")

    def stream(self, text: str) -> None:
        for _ in self.session.stream([text[:3], text[3:]]):
            pass
        self.done(f"message {text}")

    def compact(self, text: str) -> None:
        self.session.append("user", f"{text} " + "because the parser of the report fails on empty input. " * 5)
        try:
            self.session.compact(keep_tokens=200)
        except daypack.errors.NothingToCompact:
            return  # another thread was faster

    def search(self, text: str) -> None:
        self.session.append("user", text)
        self.done(f"message {text}")
        self.session.search_history(text)

    def pin(self, text: str) -> None:
        self.session.pin(f"{text.replace(' ', '-')}.md", text)
        self.done(f"pin {text}")

    def child(self, text: str) -> None:
        self.session.put_child(text.replace(" ", "-"), handoff=text)

    def add_entry(self, text: str) -> None:
        self.memories.add_entry(self.memory_id, text)
        self.done(f"entry {text}")

    def search_memory(self, text: str) -> None:
        self.memories.search_memories(self.memory_id, text)


KINDS = tuple(name for name in vars(Work) if not name.startswith("_"))


def open_work(home: str, done: Acknowledge) -> Work:
    session = daypack.open_session("work", home=home)
    memories = daypack.open_memory(home=home)
    named = {memory.title: memory.memory_id for memory in memories.memories()}
    memory_id = named.get("forks") or memories.create_memory("forks").memory_id
    return Work(session, memories, memory_id, done)


class Crowd:
    """Threads that repeat one kind of operation."""

    def __init__(self, work: Work, kind: str, name: str, threads: int) -> None:
        self._work, self._kind, self._name = work, kind, name
        self._stopped = threading.Event()
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, thread: int) -> None:
        try:
            for turn in range(MAX_TURNS):
                if self._stopped.is_set():
                    return
                getattr(self._work, self._kind)(f"{self._name} {self._kind} {thread} {turn}")
        except BaseException as error:
            self.errors.append(error)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(WATCHDOG_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)


def fork_and_do_everything(home: str, work: Work, name: str) -> list[str]:
    """Fork; the child does every kind, with the session it inherited and with a new one. Return what it stored."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, step = 1, "begin"
        try:
            trace = open(os.path.join(home, "hung"), "w")  # noqa: SIM115 — written to by the watchdog
            faulthandler.dump_traceback_later(WATCHDOG_SECONDS * 0.8, file=trace)

            def done(text: str) -> None:
                os.write(writing, (json.dumps(text) + "\n").encode())

            work.done = done
            for where in ("inherited", "new"):
                own = work if where == "inherited" else open_work(home, done)
                for kind in KINDS:
                    step = f"{where} {kind}"
                    getattr(own, kind)(f"{name} {where} {kind}")
                own.memories.close()
                own.session.close()
            code = 0
        except BaseException as error:
            os.write(writing, (json.dumps(f"failed in {step}: {error!r}") + "\n").encode())
        finally:
            os._exit(code)
    os.close(writing)
    heard, until = b"", time.monotonic() + WATCHDOG_SECONDS
    hung = False
    while True:
        if not select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            os.kill(child, signal.SIGKILL)  # the watchdog
            hung = True
            break
        if not (data := os.read(reading, 1 << 16)):
            break
        heard += data
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = [json.loads(line) for line in heard.splitlines()]
    assert not hung, f"the child hangs after {told[-1:]}: {Path(home, 'hung').read_text()[:2000]}"
    assert status == 0, told[-1:]
    return told


def examine(home: str, acknowledged: list[str]) -> None:
    """Check that everything acknowledged is there, once, and that the numbering has no gaps."""
    with daypack.open_session("work", home=home, create=False) as session:
        session.append("user", "the end")  # completes the events of messages whose writer was interrupted
        messages, events = list(session.messages()), list(session.events())
        pins = session.pins.values()
        assert session.damage == []
        findings = [finding for finding in examine_session(session.layout) if finding.severity == "damage"]
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    stored = [f"message {message.text}" for message in messages]
    stored += [f"event {event.data['text']}" for event in events if event.type == "noted"]
    stored += [
        f"called {call['id']}" for event in events if event.type == "tool.called" for call in event.data["calls"]
    ]
    stored += [f"pin {text}" for text in pins]
    with daypack.open_memory(home=home) as memories:
        named = {memory.title: memory.memory_id for memory in memories.memories()}
        before: str | None = None
        while True:
            page = memories.list_entries(named["forks"], 50, before)
            stored += [f"entry {entry.raw_entry}" for entry in page.entries]
            if not (before := page.next_before):
                break
    found = {text: stored.count(text) for text in acknowledged}
    assert {text: times for text, times in found.items() if times != 1} == {}
    assert findings == []


@pytest.mark.requirement("G7")
@pytest.mark.parametrize("kind", KINDS)
def test_a_child_forked_while_threads_work_does_everything(home: str, kind: str, campaign: Campaign) -> None:
    chance = random.Random(campaign.seed)
    acknowledged: list[str] = []
    work = open_work(home, acknowledged.append)
    for each in KINDS:
        getattr(work, each)(f"warm {each}")
    for number in range(campaign.size("forks", 20, least=2)):
        work.done = acknowledged.append
        crowd = Crowd(work, kind, f"parent {number}", threads := chance.choice((1, 2, 4, 8)))
        try:
            time.sleep(chance.random() * 0.03)
            acknowledged += fork_and_do_everything(home, work, f"child {number} of {threads}")
        finally:
            crowd.stop()
        assert not crowd.errors
    work.session.close()
    work.memories.close()
    examine(home, acknowledged)
