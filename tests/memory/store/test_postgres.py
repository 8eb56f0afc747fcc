"""Memories in a PostgreSQL database: what every store must do, and what is special about the database."""

from collections.abc import Iterator

import postgres_server
import pytest
from memory.ownership import OwnershipConformance
from memory.store.conformance import StoreConformance
from memory.store.sharing import Sharing

from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database

pytestmark = postgres_server.needs_postgres


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(Database(database_url))
    yield store
    store.close()


class TestPostgresStore(StoreConformance, OwnershipConformance, Sharing):
    """The store in a database is a store."""
