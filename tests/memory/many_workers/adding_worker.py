"""A process that adds entries to the memories of many users and writes down what was acknowledged.

python adding_worker.py URL NUMBER COUNT FILE     continues after the last line of FILE

Every second entry has a client key and is sent again if its acknowledgement is not in the file; the others are not,
because nobody could tell whether they were stored.
"""

import os
import sys

from daypack.memory.store.port import NewEntry
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database

PATIENCE_SECONDS = 120


def user_of(worker: int, number: int, users: int) -> str:
    """Return whose memory an entry goes to: workers share users, and each user has entries of several workers."""
    return f"user-{(worker * 7 + number * 3) % users}"


def main() -> None:
    url, worker, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    with open(os.path.join(os.path.dirname(path), "memories"), encoding="utf-8") as lines:
        memories = dict(line.split() for line in lines)
    with open(path, "a+", encoding="ascii") as file:
        file.seek(0)
        tried = [int(line.split()[0]) for line in file if line.endswith("\n")]
        store = PostgresStore(Database(url, most=2, patience=PATIENCE_SECONDS))
        for number in range(max(tried, default=-1) + 1, count):
            user = user_of(worker, number, len(memories))
            keyed = number % 2 == 0
            if not keyed:
                file.write(f"{number} tried\n")
                file.flush()
            text = f"worker {worker} entry {number}"
            entry = NewEntry(raw=text, summary=text, client_key=f"{worker}-{number}" if keyed else None)
            [stored] = store.add(user, memories[user], [entry])
            file.write(f"{number} {stored.seq}\n")
            file.flush()
        store.close()


if __name__ == "__main__":
    main()
