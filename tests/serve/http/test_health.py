"""Readiness: while starting, stopping, busy, and with an audit log that cannot be written."""

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
import pytest

from daypack.errors import WriteFailed
from daypack.memory.tools import open_memory
from daypack.serve.http import health as healths
from daypack.serve.http.health import Health
from daypack.serve.http.tenants import Tenants
from daypack.serve.toolset import Toolset


@pytest.fixture
def tenants(home: str) -> Iterator[Tenants]:
    tenants = Tenants(open_memory(home=home), Toolset(), home)
    yield tenants
    tenants.close()


def ask(health: Health) -> tuple[int, Any]:
    async def run() -> tuple[int, Any]:
        answer = await health.ready(None)  # pyright: ignore[reportArgumentType] — it looks at no request
        return answer.status_code, msgspec.json.decode(bytes(answer.body))

    return anyio.run(run)


def not_ready(message: str) -> tuple[int, Any]:
    return 503, {"error": {"code": "NotReady", "message": message}}


def test_it_is_ready_between_start_and_stop(tenants: Tenants) -> None:
    health = Health(tenants)
    assert ask(health) == not_ready("the server is starting")
    health.state = "running"
    assert ask(health) == (200, {"status": "ok"})
    health.state = "stopping"
    assert ask(health) == not_ready("the server is shutting down")


def test_it_is_not_ready_while_the_audit_log_cannot_be_written(
    tenants: Tenants, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    health = Health(tenants)
    health.state = "running"
    audit = tenants.backend.audit
    assert audit is not None

    def fail() -> None:
        raise WriteFailed("No space left on device", place="/secret/place")

    with monkeypatch.context() as full:
        full.setattr(audit, "check", fail)
        assert ask(health) == not_ready("the store cannot be read and written")
    assert ask(health) == not_ready("the store cannot be read and written")  # examined at most once a second
    monkeypatch.setattr(healths, "_FRESH_SECONDS", 0.0)
    assert ask(health) == (200, {"status": "ok"})


def test_it_is_not_ready_while_the_store_does_not_answer(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healths, "CHECK_SECONDS", 0.05)
    health = Health(tenants)
    health.state = "running"
    release = threading.Event()
    monkeypatch.setattr(tenants.backend, "check", lambda: release.wait(30))
    try:
        assert ask(health) == not_ready("the store did not answer in time")
    finally:
        release.set()
