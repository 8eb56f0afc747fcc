"""A copy that is killed anywhere continues when it is run again, and then is the same as its source."""

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import faults as faulty
import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from postgres_server import drop_database, needs_postgres, new_database
from upkeep.copy.copies import UID, bytes_of_database, bytes_of_folder, furnished

from daypack.history.postgres.store import close_databases
from daypack.postgres.transaction import Transaction
from daypack.upkeep.copy import sessions
from daypack.upkeep.copy.apply import apply
from daypack.upkeep.copy.plan import Request, plan

pytestmark = needs_postgres
_WRITES = ("open", "write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir")


def request(source: str, target: str) -> Request:
    return Request(source=source, target=target, uid=UID, memories=False)


def run_killed(work: Callable[[], object], hook: Callable[[], Any]) -> bool:
    """Run the work in a child that `hook` kills; return True if it was."""
    close_databases()
    child = os.fork()
    if child == 0:
        with suppress(BaseException), hook():
            work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


class _Statements:
    """Counts the statements that are sent to a database, and kills at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.calls: list[str] = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> "_Statements":
        original = Transaction.__init__

        def counted(transaction: Transaction, *arguments: Any) -> None:
            original(transaction, *arguments)
            execute = transaction.execute

            def call(*values: Any, **options: Any) -> Any:
                self.calls.append(str(values[0])[:30])
                if len(self.calls) == self.at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return execute(*values, **options)

            transaction.execute = call  # type: ignore[method-assign]

        self._patch.setattr(Transaction, "__init__", counted)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty, "CALLS", _WRITES)
    monkeypatch.setattr(sessions, "MAX_ROW_BYTES", 900)
    monkeypatch.setattr(sessions, "_BATCH_BYTES", 9000)


def test_a_copy_to_a_database_that_is_killed_continues(home: str, campaign: Campaign) -> None:
    furnished(home, turns=2)
    expected = bytes_of_folder(home)
    url = new_database()
    with _Statements() as counting:
        apply(request(home, url))
    close_databases()
    drop_database(url)
    states: set[str] = set()
    for at in campaign.calls("kills", counting.calls):
        url = new_database()
        assert run_killed(lambda url=url: apply(request(home, url)), lambda at=at: _Statements(at))  # type: ignore[misc]
        states.add(plan(request(home, url)).sessions[0].state)
        apply(request(home, url))
        assert bytes_of_database(url) == expected
        close_databases()
        drop_database(url)
    assert "continued" in states


def test_a_copy_to_a_folder_that_is_killed_continues(
    home: str, tmp_path: Path, database_url: str, campaign: Campaign
) -> None:
    furnished(home, turns=2)
    apply(request(home, database_url))
    expected = bytes_of_folder(home)
    target = str(tmp_path / "target")
    calls = calls_of(lambda: apply(request(database_url, target)))
    whole = _names(target)
    shutil.rmtree(target)
    for at in campaign.calls("kills", calls, every=4):
        run_killed(lambda: apply(request(database_url, target)), lambda at=at: injected(Faults(at, "kill")))  # type: ignore[misc]
        apply(request(database_url, target))
        assert bytes_of_folder(target) == expected
        assert plan(request(database_url, target)).is_empty
        assert _names(target) == whole
        shutil.rmtree(target)


def _names(root: str) -> set[str]:
    """Return the files of a home."""
    return {os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names}
