"""Metrics: what they count, as the official parser reads them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from daypack.serve.observe import metrics as metrics_module
from daypack.serve.observe.metrics import CONTENT_TYPE, OTHER, SECONDS, Metrics


def parse(text: str) -> dict[str, Any]:
    from prometheus_client.parser import text_string_to_metric_families

    return {family.name: family for family in text_string_to_metric_families(text)}


def value(families: dict[str, Any], name: str, **labels: str) -> float:
    found = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    assert len(found) == 1, (name, labels)
    return found[0]


def test_the_official_parser_reads_every_metric() -> None:
    metrics = Metrics(["get_user"], ["BadInput"])
    metrics.requests.add("/api", "get_user", "2xx", "ok")
    metrics.requests.add("/api", "get_user", "2xx", "ok")
    metrics.refusals.add("BadInput")
    metrics.connections.read = lambda: 3
    for seconds in (0.0, 0.001, 0.0011, 11.0):
        metrics.seconds.observe(seconds, "/api", "get_user")
    families = parse(metrics.text())
    assert value(families, "daypack_requests_total", route="/api", tool="get_user", status="2xx", result="ok") == 2
    assert value(families, "daypack_refusals_total", reason="BadInput") == 1
    assert value(families, "daypack_failed_authentications_total") == 0
    assert value(families, "daypack_open_connections") == 3
    assert value(families, "process_resident_memory_bytes") > 1 << 20
    told = {"route": "/api", "tool": "get_user"}
    assert value(families, "daypack_request_seconds_bucket", **told, le="0.001") == 2
    assert value(families, "daypack_request_seconds_bucket", **told, le="0.0025") == 3
    assert value(families, "daypack_request_seconds_bucket", **told, le="10.0") == 3
    assert value(families, "daypack_request_seconds_bucket", **told, le="+Inf") == 4
    assert value(families, "daypack_request_seconds_count", **told) == 4
    assert value(families, "daypack_request_seconds_sum", **told) == pytest.approx(11.0021)
    assert families["daypack_request_seconds"].type == "histogram"
    assert "version=0.0.4" in CONTENT_TYPE


def test_memory_is_left_out_on_macos_and_open_files_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "_STATM", str(tmp_path / "no proc"))
    families = parse(Metrics(["get_user"], ["BadInput"]).text())
    assert "process_resident_memory_bytes" not in families
    before = value(families, "process_open_fds")
    with (tmp_path / "file").open("w"):
        assert value(parse(Metrics(["get_user"], ["BadInput"]).text()), "process_open_fds") == before + 1


def test_labels_are_bounded_whatever_callers_send() -> None:
    metrics = Metrics(["get_user"], ["BadInput"])
    for number in range(1_000):
        metrics.requests.add(f"/x{number}", f'"\n{number}', "9xx", "ok")
        metrics.seconds.observe(0.1, "/api", f"tool {number}")
        metrics.refusals.add(f"user {number}")
    families = parse(metrics.text())
    assert value(families, "daypack_requests_total", route=OTHER, tool=OTHER, status=OTHER, result="ok") == 1_000
    assert value(families, "daypack_refusals_total", reason=OTHER) == 1_000
    assert len(families["daypack_request_seconds"].samples) == len(SECONDS) + 3


def test_threads_lose_no_count() -> None:
    metrics = Metrics(["get_user"])

    def count() -> None:
        for _ in range(2_000):
            metrics.damage.add()
            metrics.queued.observe(0.01, "work")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    families = parse(metrics.text())
    assert value(families, "daypack_damage_total") == 8_000
    assert value(families, "daypack_queue_seconds_count", queue="work") == 8_000


def test_a_gauge_that_cannot_be_read_hides_no_other() -> None:
    def fail() -> float:
        raise OSError

    metrics = Metrics()
    metrics.lag.read = fail
    families = parse(metrics.text())
    assert "daypack_index_lag_entries" not in families
    assert "daypack_damage" in families
