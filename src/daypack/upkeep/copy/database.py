"""The sessions of a user in a database, as a side of a copy."""

from collections.abc import Iterator, Mapping

from daypack.errors import Damaged, Overtaken, SourceMissing
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.appends import Added, new_writer
from daypack.history.postgres.rewriting import Known, SessionRows
from daypack.history.postgres.store import Opened, SessionStore
from daypack.history.postgres.stored import SmallFiles
from daypack.upkeep.copy.port import LOGS, Extent, Small


class DatabaseSession:
    """One session in a database."""

    def __init__(self, store: SessionStore, agent: str, name: str, opened: Opened) -> None:
        self._rows = SessionRows(store.database, store.tenant, opened.stored.number)
        self._stored = opened.stored
        self._known: Known | None = None
        self.place = f"{store.place} {agent}/{name}"

    def measure(self) -> Extent:
        """Return how far the logs reach now."""
        self._known = known = self._rows.known()
        ends = tuple(mark.end for mark in known.ends)
        return Extent(Small(*known.files), ends, ends)

    @property
    def _generation(self) -> int:
        return self._known.generation if self._known is not None else self._rows.known().generation

    def read(self, log: int, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes between two places; rows that do not follow each other are damage."""
        at = 0 if start == 0 else None
        for row in self._rows.read(self._generation, log, self._row_before(log, start), stop):
            if at is not None and row.start != at:
                hint = "`daypack doctor` shows all of them; restore the database from a backup"
                problem = f"{LOGS[log]} has a gap between byte {at:,} and byte {row.start:,}"
                raise Damaged(problem, operation="copy", place=self.place, hint=hint)
            at = row.stop
            data = row.data[max(0, start - row.start) : stop - row.start]
            if data:
                yield data

    def _row_before(self, log: int, start: int) -> int:
        """Return the beginning of the row that has a byte: a target may have ended within a row of its source."""
        if start == 0:
            return 0
        found = self._rows.row_with(log, start)
        return start if found is None else found

    def blob_names(self) -> list[str]:
        """Return the names of all blobs."""
        return self._stored.blob_names()

    def blob(self, name: str) -> bytes:
        """Return the bytes of a blob."""
        data = self._stored.blob(name)
        if data is None:
            raise SourceMissing("no such blob", operation="copy", place=f"{self.place} {name}", hint="run it again")
        return data

    def put_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Store blobs in one transaction."""
        self._rows.put_blobs(blobs)

    def append(self, log: int, place: Mark, data: bytes, crc: int) -> None:
        """Store lines as one row, in one transaction."""
        outcome = self._stored.append(self._generation, Added(log, place, data, crc, new_writer()), {})
        if outcome == "gone":
            raise self._stored.gone("copy")
        if outcome != "stored":
            hint = "stop what writes to the copy, then run the same command again"
            problem = f"another worker wrote to {LOGS[log]} of the copy"
            raise Overtaken(problem, operation="copy", place=self.place, hint=hint)

    def put_settings(self, files: Small) -> None:
        """Replace meta.json."""
        self._rows.put_settings(SmallFiles(*files))

    def finish(self) -> None:
        """Do nothing: every worker makes what follows from the logs."""

    def is_finished(self) -> bool:
        """Return True: there is nothing to finish."""
        return True

    def close(self) -> None:
        """Do nothing: connections are shared."""


class DatabaseSide:
    """The sessions of a user in a database."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    @property
    def place(self) -> str:
        """The address, without its password."""
        return self.store.place

    def names(self) -> list[tuple[str, str]]:
        """Return the agent and the name of every session."""
        return [(head.agent, head.name) for head in self.store.heads()]

    def find(self, agent: str, name: str) -> DatabaseSession | None:
        """Return a session; None if there is none of that name."""
        opened = self.store.find(agent, name)
        return None if opened is None else DatabaseSession(self.store, agent, name, opened)

    def create(self, agent: str, name: str, files: Small) -> DatabaseSession:
        """Create a session without lines."""
        return DatabaseSession(self.store, agent, name, self.store.create(agent, name, SmallFiles(*files)))
