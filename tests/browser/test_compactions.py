"""Compactions: what left, what stayed, and undoing one."""

from pathlib import Path
from typing import Any

from browser.driver.page import Page
from browser.driver.places import CARD, CHOSEN, DETAIL, DIALOG, STRIP, panel
from browser.driver.viewed import RECORDED, SAMPLE, Viewed

import daypack

UNDONE = "context.compaction.undone"


def events(viewed: Viewed) -> list[str]:
    with daypack.open_session(SAMPLE[1], home=viewed.home, create=False) as session:
        return [event.id for event in session.events() if event.type == UNDONE]


def accepted(viewed: Viewed) -> list[dict[str, Any]]:
    return viewed.daypack("compactions", "sample")["compactions"]


def open_newest(page: Page, viewed: Viewed) -> str:
    newest = str(accepted(viewed)[-1]["id"])
    viewed.session(page, SAMPLE, "compactions", newest)
    page.see(f"{DETAIL} h2", newest)
    return newest


def test_all_compactions_are_listed_newest_first(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "compactions")
    page.see(CARD)
    shown = page.texts(f"{CARD} b")
    kept = [compaction["id"] for compaction in accepted(sample)]
    assert [name for name in shown if name in kept] == list(reversed(kept))
    assert len(shown) == len(kept) + 1
    assert len(page.texts(f"{CARD}.struck")) == 1


def test_what_left_and_what_stayed(page: Page, sample: Viewed) -> None:
    newest = open_newest(page, sample)
    [facts] = [compaction for compaction in accepted(sample) if compaction["id"] == newest]
    detail = page.text(DETAIL)
    document = (Path(sample.home) / "home").glob("*/agent/default/session/sample/context/CONTEXT.md")
    [path] = document
    page.click(f"{DETAIL} button", "After")
    after = page.see(f"{DETAIL} [aria-label='CONTEXT.md after']")
    assert after.split() == path.read_text(encoding="utf-8").split()
    page.click(f"{DETAIL} button", "Before")
    before = page.see(f"{DETAIL} [aria-label='CONTEXT.md before']")
    assert before.startswith("# Context")
    assert before != after
    page.click(f"{DETAIL} button", "Difference")
    page.see(f"{DETAIL} .difflines .add")
    assert "Always run the tests before you change layout.toml" in detail
    assert "What left" in detail
    assert "Losses" in detail
    assert "sentence" in page.text(panel("Losses"))
    assert str(facts["through"]) in detail


def test_a_record_opens_its_source(page: Page, sample: Viewed) -> None:
    open_newest(page, sample)
    page.click(f"{DETAIL} .record a.source", "messages:17")
    page.wait_for("location.hash.endsWith('/history/17')")
    page.see(CHOSEN, "Always run the tests")


def test_one_is_undone_by_mouse_and_that_is_recorded(page: Page, own_sample: Viewed) -> None:
    before = events(own_sample)
    newest = open_newest(page, own_sample)
    page.click(f"{DETAIL} button", "Undo …")
    assert "History is not changed" in page.see(DIALOG)
    page.click(f"{DIALOG} button", "Cancel")
    page.wait_gone(DIALOG)
    assert events(own_sample) == before
    page.click(f"{DETAIL} button", "Undo …")
    page.click(f"{DIALOG} button.danger")
    recorded = page.see(f"{DETAIL} [role=status] code")
    assert events(own_sample) == [*before, recorded]
    page.see(f"{DETAIL} .tag", "undone")
    assert newest not in [compaction["id"] for compaction in accepted(own_sample)]
    page.wait_for("document.querySelectorAll('main ol li a.struck').length === 2")


def test_one_is_undone_by_keyboard(page: Page, own_sample: Viewed) -> None:
    before = events(own_sample)
    own_sample.session(page)
    page.see(STRIP)
    page.press("c")
    page.see(CARD)
    page.press("Home")
    page.see(DETAIL)
    page.focus(f"{DETAIL} button", "Undo …")
    page.press("Enter")
    page.see(DIALOG)
    page.press("Tab")
    while not page.focused.startswith("BUTTON Undo"):
        page.press("Tab")
    page.press("Enter")
    page.see(f"{DETAIL} [role=status]")
    assert len(events(own_sample)) == len(before) + 1


def test_the_compaction_of_another_program_is_shown_and_cannot_be_undone(page: Page, sample: Viewed) -> None:
    sample.session(page, RECORDED, "compactions")
    page.see(DETAIL)
    assert "observed" in page.text(DETAIL)
    assert not page.has(f"{DETAIL} button", "Undo …")
