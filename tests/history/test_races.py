"""Threads, signals, forks and closing, all at once."""

import os
import signal
import threading
import time
from typing import Any

import pytest
from campaigns import Campaign

import daypack
from daypack.errors import StorageFailed
from daypack.session import Session

MAX_NESTED_HANDLERS = 8


def numbers(session: Session) -> list[int]:
    return [message.seq for message in daypack.open_session("work", home=session.layout.root).messages()]


def test_closing_while_another_thread_appends_gives_no_number_twice(
    session: Session, home: str, campaign: Campaign
) -> None:
    rounds = campaign.size("concurrent writes", 300)
    foreign = daypack.open_session("work", home=home, durability="os")
    done = threading.Event()

    def keep_closing() -> None:
        while not done.is_set():
            session.history.close()

    closing = threading.Thread(target=keep_closing)
    closing.start()
    try:
        for number in range(rounds):
            session.append("user", f"ours {number}", client_key=f"k{number}")
            foreign.append("user", f"theirs {number}")
    finally:
        done.set()
        closing.join()
    assert numbers(session) == list(range(1, 2 * rounds + 1))


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_an_append_from_a_signal_handler_is_refused_or_whole(home: str, durability: Any) -> None:
    session = daypack.open_session("work", home=home, durability=durability)
    hints, stored = list[str](), list[int]()
    depth, stopped = 0, False

    # The handler restarts a one-shot timer: with a repeating one, handlers whose append outlasts the interval (a slow
    # sync, a busy machine) would nest until the interpreter's recursion limit.
    def start_timer() -> None:
        if depth < MAX_NESTED_HANDLERS and not stopped:
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

    def append(*_: object) -> None:
        nonlocal depth
        depth += 1
        start_timer()
        try:
            stored.append(session.append("user", "from the handler").seq)
        except StorageFailed as error:
            hints.append(error.hint)
        finally:
            depth -= 1
            start_timer()

    former = signal.signal(signal.SIGALRM, append)
    start_timer()
    try:
        until = time.monotonic() + 1.0
        count = 0
        while time.monotonic() < until:
            session.append("user", "from the loop")
            count += 1
    finally:
        stopped = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert hints
    assert all("signal handler" in hint for hint in hints)
    assert numbers(session) == list(range(1, count + len(stored) + 1))


def test_a_forked_child_does_not_keep_its_parents_lock(home: str) -> None:
    daypack.open_session("work", home=home).close()
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        session = daypack.open_session("work", home=home)
        session.history.lock.__enter__()
        child = os.fork()
        if child == 0:
            time.sleep(30)  # never uses the session
            os._exit(0)
        os.write(writing, f"{child}\n".encode())
        time.sleep(30)
    child = int(os.read(reading, 100))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    started = threading.Thread(target=lambda: daypack.open_session("work", home=home).append("user", "x"), daemon=True)
    started.start()
    started.join(timeout=10)
    alive = started.is_alive()
    os.kill(child, signal.SIGKILL)
    assert not alive


def test_closing_waits_for_no_other_process(session: Session, home: str) -> None:
    other = daypack.open_session("work", home=home, durability="os")
    other.append("user", "x")
    session.append("user", "y")
    with other.history.lock:
        session.close()  # as the garbage collector may do it, in a thread that holds the lock through another session
    assert numbers(session) == [1, 2]


def test_idle_sessions_that_close_do_not_spoil_the_table_of_keys(home: str) -> None:
    idle = [daypack.open_session("work", home=home, durability="os") for _ in range(4)]
    for number, session in enumerate(idle):
        session.append("user", "x", client_key=f"idle {number}")
    writer = daypack.open_session("work", home=home, durability="os")
    stored = {f"k{number}": writer.append("user", "y", client_key=f"k{number}").seq for number in range(600)}
    for session in idle:
        session.close()
        stored[f"after {id(session)}"] = writer.append("user", "y", client_key=f"after {id(session)}").seq
    assert {key: writer.append("user", "y", client_key=key).seq for key in stored} == stored
