"""Health: findings of the doctor, hook failures, disk use, indexes, metrics."""

from pathlib import Path

import pytest
from browser.driver.page import Page
from browser.driver.places import ITEM, panel
from browser.driver.viewed import Viewed

import daypack
from daypack.hooks.failures import Place, record


def test_the_health_of_a_home_is_shown(page: Page, sample: Viewed) -> None:
    sample.open(page, "health")
    page.see("h1", "Health")
    assert f"daypack {daypack.__version__}" in page.text(".pagehead")
    assert "✓ None." in page.text(panel("Hook failures"))
    assert page.texts(f"{panel('Disk')} .meter")
    assert page.texts(f"{panel('Indexes')} li")


def test_all_sessions_are_examined_by_mouse(page: Page, sample: Viewed) -> None:
    sample.open(page, "health")
    page.click("button", "Examine sessions and memories")
    page.see(f"{panel('Doctor')} [role=status]", "no findings")
    assert "5 of 5" in page.text(panel("Doctor"))


def test_a_damaged_session_is_found_by_keyboard(page: Page, own_sample: Viewed) -> None:
    [log] = Path(own_sample.home).glob("home/*/agent/default/session/sample/messages.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"role"', b'"rule"', 1)
    log.write_bytes(b"".join(lines))
    own_sample.open(page, "health")
    page.focus("button", "Examine sessions and memories")
    page.press("Enter")
    page.see(f"{panel('Doctor')} li", "sample")
    page.focus(f"{panel('Doctor')} li a", "sample")
    page.press("Enter")
    page.wait_for("location.hash.startsWith('#/s/default/sample')")
    page.see(ITEM)  # the lines that are left are shown


def test_hook_failures_are_listed(page: Page, own_sample: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_HOME", own_sample.home)
    record(Place("claude-code", "Stop", "sample"), ValueError("<b>no such thing</b>"))
    own_sample.open(page, "health")
    page.see(panel("Hook failures"), "<b>no such thing</b>")


def test_the_metrics_are_one_press_away(page: Page, sample: Viewed) -> None:
    sample.open(page, "health")
    page.click("a", "Metrics")
    page.wait_for("location.pathname === '/metrics' && document.body.innerText.includes('daypack_requests_total')")
