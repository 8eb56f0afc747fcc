"""Fixtures for all tests."""

import signal
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

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
    ):
        monkeypatch.delenv(f"DAYPACK_{name}", raising=False)


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
