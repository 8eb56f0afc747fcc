"""Fixtures for all tests."""

import signal
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import both_homes
import campaigns
import pytest

import daypack
from daypack.session import Session

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and programs that tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HOME",
        "UID",
        "AGENT",
        "SESSION",
        "DURABILITY",
        "LOCKING",
        "MODEL",
        "COMPACTION_MODEL",
        "EMBEDDING_MODEL",
        "MEMORY_MS",
        "TOKEN",
        "URL",
        "API_KEY",
        "API_URL",
        "WORKSPACE",
        "REDACTION",
        "STORE_URL",
        "STORE_REPLICA_URL",
    ):
        monkeypatch.delenv(f"DAYPACK_{name}", raising=False)


@pytest.fixture(autouse=True)
def sessions_in(
    request: pytest.FixtureRequest, _no_settings_from_outside: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Where the sessions of a test are: in files, or of modules that run twice, in a database the second time."""
    place: str = getattr(request, "param", "files")
    if place == "files":
        yield place
        return
    if reason := _problem():
        pytest.skip(reason)
    url = both_homes.shared_database()
    monkeypatch.setenv("DAYPACK_STORE_URL", url)
    yield place
    both_homes.empty_database(url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules once for each place that sessions can be in."""
    module = metafunc.definition.path.relative_to(Path(__file__).parent).as_posix()
    if module in both_homes.MODULES:
        is_of_files = f"{module}::{metafunc.function.__name__}" in both_homes.FILES_ONLY
        metafunc.parametrize("sessions_in", ["files"] if is_of_files else ["files", "database"], indirect=True)


def _problem() -> str:
    from tools.postgres import problem

    return problem()


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A root folder for sessions."""
    return str(tmp_path / "home")


@pytest.fixture
def session(home: str) -> Iterator[Session]:
    """An empty session that does not wait for the disk."""
    with daypack.open_session("work", home=home, durability="os") as session:
        yield session


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Iterator[campaigns.Campaign]:
    """How often a long test tries; each test has a seed of its own, which moves on with the day."""
    node = request.node.nodeid.encode()
    campaign = campaigns.Campaign(seed=campaigns.SEED + zlib.crc32(node))
    yield campaign
    request.node.user_properties.append(("campaign", dict(campaign.ran)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and "campaign" in item.fixturenames:
            item.add_marker("campaign")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran = Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                ran.update(dict(report.user_properties).get("campaign", {}))
    if ran:
        terminalreporter.write_line(campaigns.report(ran))


@pytest.fixture
def database_url() -> Iterator[str]:
    """The address of a new PostgreSQL database with the present schema; skipped where no server can be had."""
    import postgres_server  # starts nothing before it is used

    if reason := _problem():
        pytest.skip(reason)
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)
