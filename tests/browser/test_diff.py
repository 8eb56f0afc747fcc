"""The difference between two calls."""

import json
from typing import Any

import pytest
from browser.driver.page import Page
from browser.driver.places import DIFFERENCE, ITEM, STRIP
from browser.driver.viewed import RECORDED, SAMPLE, Viewed
from browser.test_strip import bar, wait_selected


@pytest.fixture
def turns(sample: Viewed) -> list[dict[str, Any]]:
    return sample.daypack("turns", "sample", "-n", "0")


SUMMARY = "main p.line b.num"


def asked(page: Page, before: str, after: str, session: tuple[str, str] = SAMPLE) -> dict[str, Any]:
    query = f"agent={session[0]}&session={session[1]}&before={before}&after={after}"
    return page.evaluate(f"fetch('/page/data/diff?{query}').then((r) => r.json())")


@pytest.mark.parametrize("step", [1, 12])
def test_it_equals_that_of_the_command(page: Page, sample: Viewed, turns: list[dict[str, Any]], step: int) -> None:
    sample.session(page)
    page.see(STRIP)
    for at in range(step, len(turns), 9):
        before, after = turns[at - step]["event"], turns[at]["event"]
        expected = sample.daypack("diff", "sample", before, after)
        assert asked(page, before, after)["difference"] == expected


def test_the_rows_are_the_items_of_the_command(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    opening = next(at for at, turn in enumerate(turns) if at and turn["new_epoch"])
    before, after = turns[opening - 1]["event"], turns[opening]["event"]
    expected = sample.daypack("diff", "sample", before, after)
    sample.session(page, SAMPLE, "diff", before, after)
    summary = page.see(SUMMARY)
    assert f"{expected['tokens'][0]:,} → {expected['tokens'][1]:,} tokens" in summary
    names = [name.strip() for name in page.texts(f"{ITEM} button[aria-expanded]")]
    for change, word in (("added", "Added"), ("dropped", "Removed"), ("changed", "Changed")):
        for item in expected[change]:
            name = item if isinstance(item, str) else item["item"]
            assert f"{word}: {name}" in names
    assert "new epoch" in page.text("main")


def test_the_difference_to_the_call_before_by_keyboard(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    page.see(ITEM)
    page.press("d")
    last = turns[-1]["event"]
    page.wait_for(f"location.hash === '#/s/default/sample/diff//{last}'")
    expected = sample.daypack("diff", "sample")
    assert f"{expected['tokens'][0]:,} → {expected['tokens'][1]:,} tokens" in page.see(SUMMARY)
    line = page.text("main")
    assert "prefix unchanged" in line
    assert "same epoch" in line
    assert page.texts(f"{ITEM} button[aria-expanded]")
    page.press("k")
    page.wait_for(f"location.hash === '#/s/default/sample/diff//{turns[-2]['event']}'")
    page.wait_for(f"document.querySelector('main p.line b.num').innerText.includes('{turns[-2]['tokens']:,} tokens')")
    page.press("d")
    page.see(ITEM)


def test_the_difference_to_any_other_call_by_mouse(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page)
    page.see(ITEM)
    third = bar(page, 2)
    page.press("End")
    wait_selected(page, len(turns) - 1)
    page.click(".callhead button", "Difference")
    page.see(DIFFERENCE)
    page.mouse_at(third, shift=True)
    page.wait_for(f"location.hash.includes('/diff/{turns[2]['event']}/{turns[-1]['event']}')")
    page.wait_for(f"document.querySelector('main p.line b.num').innerText.startsWith('{turns[2]['tokens']:,} →')")
    page.evaluate(
        "(select => { select.value = " + json.dumps(turns[5]["event"]) + "; select.dispatchEvent("
        "new Event('change', {bubbles: true})); })(document.querySelector('section[aria-label=Calls] select'))"
    )
    page.wait_for(f"document.querySelector('main p.line b.num').innerText.startsWith('{turns[5]['tokens']:,} →')")
    page.click("main button", "The call before")
    page.wait_for(f"document.querySelector('main p.line b.num').innerText.startsWith('{turns[-2]['tokens']:,} →')")


def test_another_call_is_chosen_by_keyboard(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page, SAMPLE, "diff", turns[3]["event"], turns[6]["event"])
    page.see(SUMMARY)
    page.focus(DIFFERENCE)
    page.press("ArrowUp")
    page.wait_for(f"location.hash.includes('/diff/{turns[2]['event']}/')")
    page.see(SUMMARY, f"{turns[2]['tokens']:,} →")
    page.focus(f"{ITEM} button[aria-expanded]")
    page.press("Enter")
    page.see(f"{ITEM} button[aria-expanded=true]")


def test_a_source_in_a_difference_opens_the_history(page: Page, sample: Viewed, turns: list[dict[str, Any]]) -> None:
    sample.session(page, SAMPLE, "diff", "", turns[-1]["event"])
    page.see(ITEM)
    page.click(f"{ITEM} a.source")
    page.wait_for("location.hash.includes('/history/')")


def test_observed_calls_are_compared_too(page: Page, sample: Viewed) -> None:
    calls = [
        row
        for row in sample.daypack("turns", RECORDED[1], "--agent", RECORDED[0], "-n", "0")
        if row["kind"] == "observed"
    ]
    before, after = calls[7]["event"], calls[8]["event"]
    expected = sample.daypack("diff", RECORDED[1], before, after, "--agent", RECORDED[0])
    sample.session(page, RECORDED, "diff", before, after)
    page.see(f"{ITEM} button[aria-expanded]")
    assert asked(page, before, after, RECORDED)["difference"] == expected
