"""A process that works on shared sessions and on one of its own, and writes down what was acknowledged.

python appending_worker.py URL HOME NUMBER COUNT FILE     continues after the last line of FILE

    17 tried                     an append without a client key began: nobody can tell later whether it was stored
    17 shared-1 203              number 17 is message 203 of that session
"""

import sys
from contextlib import suppress

import daypack
from daypack.errors import DaypackError
from daypack.history.postgres.cache import store_of
from daypack.session import Session

SHARED = 3
PATIENCE_SECONDS = 120
LONG = "A long text that is stored as a blob. " * 150


def session_of(worker: int, number: int) -> str:
    """Return the session that a message goes to: most are shared by all workers."""
    return f"own-{worker}" if number % 4 == 3 else f"shared-{(worker + number) % SHARED}"


def text_of(worker: int, number: int) -> str:
    return f"worker {worker} message {number}"


def do_more(session: Session, worker: int, number: int) -> None:
    """Do what is not checked one by one: pins, turns and blobs. A failure is as good as not having done it."""
    with suppress(DaypackError):
        if number % 7 == 0:
            session.pin(f"pin-{worker}", f"{LONG} {number}" if number % 14 else f"short {number}")
        if number % 21 == 0:
            session.unpin(f"pin-{worker}")
        if number % 10 == 0:
            session.prepare(budget=4_000, items=[{"context_kind": "manual_note", "content": f"{LONG} {number}"}])


def main() -> None:
    url, home, worker, count, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    sessions: dict[str, Session] = {}
    with open(path, "a+", encoding="ascii") as file:
        file.seek(0)
        tried = [int(line.split()[0]) for line in file if line.endswith("\n")]
        for number in range(max(tried, default=-1) + 1, count):
            name = session_of(worker, number)
            if name not in sessions:
                sessions[name] = daypack.open_session(name, home=home, store=url, model="gpt-4o", workspace="")
                store_of(sessions[name].layout).database.patience = PATIENCE_SECONDS
            key = f"{worker}-{number}" if number % 2 == 0 else None
            if key is None:
                file.write(f"{number} tried\n")
                file.flush()
            stored = sessions[name].append("user", text_of(worker, number), client_key=key)
            file.write(f"{number} {name} {stored.seq}\n")
            file.flush()
            do_more(sessions[name], worker, number)
    for session in sessions.values():
        session.close()


if __name__ == "__main__":
    main()
