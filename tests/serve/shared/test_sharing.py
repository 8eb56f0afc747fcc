"""What is measured in the database itself."""

from pathlib import Path

import postgres_server

from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.serve.shared.sharing import measure
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres


def test_jobs_are_counted_and_the_lag_of_a_replica_is_known_if_it_answers(tmp_path: Path) -> None:
    with Server.start(tmp_path / "primary") as primary:
        home = find_home(str(tmp_path / "home"))
        alone = open_backend(home, primary.url())
        assert alone.server is not None
        (jobs,) = measure(alone.server)
        assert set(jobs.samples) == {
            f'daypack_jobs{{state="{state}"}}' for state in ("due", "leased", "retrying", "dead")
        }
        with primary.replica(tmp_path / "replica") as replica:
            both = open_backend(home, primary.url(), replica.url())
            assert both.server is not None
            jobs, lag = measure(both.server)
            assert lag.name == "daypack_replica_lag_bytes"
            assert 0 <= lag.samples[lag.name] < 1 << 24
            both.close()
            replica.down(immediate=True)
            assert [family.name for family in measure(both.server)] == ["daypack_jobs"]
            both.close()
        alone.close()
