"""The strip: every call of a session as a bar."""

from typing import Any

import pytest
from browser.driver.page import Page, Point
from browser.driver.places import DETAIL, STRIP
from browser.driver.viewed import RECORDED, SAMPLE, Viewed

FOLDS = 5  # of the sample, one of them undone


@pytest.fixture
def turns(sample: Viewed) -> list[dict[str, Any]]:
    return sample.daypack("turns", "sample", "-n", "0")


def selected(page: Page) -> int:
    """Return the number of the selected call, from 0."""
    return int(page.attributes(STRIP, "aria-valuenow")[0] or 0) - 1


def wait_selected(page: Page, number: int) -> None:
    page.wait_for(f"document.querySelector('{STRIP}')?.getAttribute('aria-valuenow') === '{number + 1}'")


def bar(page: Page, number: int) -> Point:
    """Return the middle of a bar of the window: bars are as wide as the marker of the selected one, or wider apart."""
    page.see(STRIP)  # keys that are pressed before it is drawn move nothing
    page.press("Home", *["j"] * number)
    wait_selected(page, number)
    box = page.evaluate(
        "(e => { const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })"
        "(document.querySelector('.selectedbar'))"
    )
    return Point(*box)


def test_every_call_has_a_bar_and_the_newest_is_selected(
    page: Page, sample: Viewed, turns: list[dict[str, Any]]
) -> None:
    sample.session(page)
    page.see(STRIP)
    assert page.attributes(STRIP, "aria-valuemax") == [str(len(turns))]
    assert selected(page) == len(turns) - 1
    assert page.see(".callhead h2").replace("\n", " ") == f"Call {len(turns)} of {len(turns)}"
    assert f"{turns[-1]['tokens']:,} tokens" in page.text(".callhead")
    # One path per part draws all bars; the prefix is in every call.
    drawn = page.evaluate("(document.querySelector('.bars path.p-prefix').getAttribute('d').match(/M/g)).length")
    assert drawn == len(turns)


def test_breaks_compactions_and_marks_are_drawn(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(STRIP)
    assert page.evaluate("document.querySelectorAll('.bars .fold').length") == FOLDS
    assert page.evaluate("document.querySelectorAll('.bars .fold.undone').length") == 1
    assert page.evaluate("document.querySelector('.bars .seam').getAttribute('d').length") > 0
    assert page.evaluate("document.querySelector('.bars .budgetline').getAttribute('d').length") > 0
    note = page.text(".stripnote")
    assert f"{FOLDS} × compaction" in note
    assert "cache break" in note
    marks = {
        name for name in ("error", "retry", "incomplete") if page.evaluate(f"!!document.querySelector('.mark.{name}')")
    }
    assert {"error", "incomplete"} <= marks
    assert page.has(".stripnote", "budget")


def test_keys_move_along_the_strip(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    page.see(STRIP)
    last = len(turns) - 1
    steps = {"k": last - 1, "ArrowLeft": last - 2, "j": last - 1, "ArrowRight": last, "Home": 0}
    for key, expected in steps.items():
        page.press(key)
        wait_selected(page, expected)
    page.press("k")
    wait_selected(page, 0)
    page.wait_for(f"location.hash === '#/s/default/sample/call/{turns[0]['event']}'")
    page.wait_for(f"document.querySelector('.callhead').innerText.includes('{turns[0]['tokens']:,} tokens')")
    page.press("End")
    wait_selected(page, last)
    page.wait_for("location.hash === '#/s/default/sample'")


def test_a_bar_is_clicked(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    page.see(STRIP)
    place = bar(page, 9)
    page.press("End")
    wait_selected(page, len(turns) - 1)
    page.mouse_at(place)
    wait_selected(page, 9)
    page.wait_for(f"location.hash.endsWith('/call/{turns[9]['event']}')")
    assert page.see(".callhead h2").startswith("Call 10")


def test_dragging_moves_along_the_strip(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    first, last = bar(page, 4), bar(page, 12)
    page.drag_between(first, last)
    wait_selected(page, 12)


def test_the_pointer_shows_what_a_call_had(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    missed = next(at for at, turn in enumerate(turns) if turn["cached_tokens"] == 0 and turn["expected_cached_tokens"])
    page.hover_at(bar(page, missed))
    tip = page.see(".tip")
    assert f"Call {missed + 1}" in tip
    assert f"{turns[missed]['tokens']:,}" in tip
    assert "◆" in tip
    assert "read again" in tip


def test_the_parts_of_the_legend_are_those_of_the_call_and_can_be_hidden(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(".legend button", "Tail")
    assert {"Prefix", "Pins", "Memory", "Summary", "Records", "Tail", "Recalled"} <= {
        text.split()[0] for text in page.texts(".legend button")
    }
    page.click(".legend button", "Tail")
    page.wait_for("!document.querySelector('.bars path.p-tail')")
    page.press("Enter")
    page.wait_for("document.querySelector('.bars path.p-tail')")


def test_the_whole_session_fits_the_window_on_request(page: Page, sample: Viewed) -> None:
    page.resize(390, 844)
    sample.session(page)
    page.see(STRIP)
    wide = f"document.querySelector('{STRIP}').scrollWidth - document.querySelector('{STRIP}').clientWidth"
    assert page.evaluate(wide) > 0
    page.press("z")
    page.wait_for(f"{wide} <= 12")
    page.click("main button", "Whole session")
    page.wait_for(f"{wide} > 12")


def test_a_fold_opens_its_compaction(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(STRIP)
    page.press("Home")
    wait_selected(page, 0)
    page.mouse_at(page.middle(".bars .fold.undone"))
    page.wait_for("location.hash.startsWith('#/s/default/sample/compactions/')")
    assert "undone" in page.see(DETAIL)


def test_an_observed_session_has_a_strip_too(page: Page, sample: Viewed) -> None:
    calls = [
        row
        for row in sample.daypack("turns", RECORDED[1], "--agent", RECORDED[0], "-n", "0")
        if row["kind"] == "observed"
    ]
    sample.session(page, RECORDED)
    page.see(STRIP)
    assert page.attributes(STRIP, "aria-valuemax") == [str(len(calls))]
    assert page.evaluate("document.querySelectorAll('.bars .fold').length") == 1
    page.press("Home", *["j"] * 5)
    wait_selected(page, 5)
    assert "expired" in str(page.attributes(STRIP, "aria-valuetext")[0])
    assert "budget unknown" in page.text(".callhead")


def test_a_call_that_is_not_there_is_said(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "call", "ev-99999")
    assert "no call ev-99999" in page.see(".empty")
