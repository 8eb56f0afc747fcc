"""What a call left out, and why."""

from typing import Any

import pytest
from browser.driver.page import Page
from browser.driver.places import LEFT_OUT, MISSING
from browser.driver.viewed import SAMPLE, Viewed

import daypack


def omissions(page: Page) -> list[tuple[str, str]]:
    names = page.texts(f"{LEFT_OUT} .entry .head .name")
    whys = page.texts(f"{LEFT_OUT} .entry > .why")
    return list(zip(names, whys, strict=True))


@pytest.fixture
def richest(sample: Viewed) -> dict[str, Any]:
    """The call with the most omissions, as `explain` prints it."""
    turns = sample.daypack("turns", "sample", "-n", "0")
    turn = max(turns, key=lambda turn: turn["omitted"])
    return sample.daypack("explain", "sample", "--event", turn["event"])


def test_the_list_is_that_of_explain(page: Page, sample: Viewed, richest: dict[str, Any]) -> None:
    expected = richest["omitted"]
    assert len(expected) >= 4
    sample.session(page, SAMPLE, "call", richest["event_id"])
    page.see(f"{LEFT_OUT} .entry")
    shown = omissions(page)
    assert [name for name, _ in shown] == [omission["item_ref"] for omission in expected]
    answer = page.evaluate(
        f"fetch('/page/data/call?agent=default&session=sample&event={richest['event_id']}').then((r) => r.json())"
    )
    assert [(each["item"], each["reason"]) for each in answer["omitted"]] == [
        (each["item_ref"], each["reason"]) for each in expected
    ]
    for (_, why), omission in zip(shown, answer["omitted"], strict=True):
        assert omission["words"] in why
    tokens = page.texts(f"{LEFT_OUT} .entry .head .num")
    known = [each["counted"] if each["tokens"] is None else each["tokens"] for each in answer["omitted"]]
    assert tokens == ["–" if count is None else f"{count:,}" for count in known]
    assert any(count is not None for count in known)


def test_an_omitted_text_is_read_by_mouse(page: Page, sample: Viewed, richest: dict[str, Any]) -> None:
    omission = next(each["item_ref"] for each in richest["omitted"] if each["item_ref"].startswith("messages:"))
    sample.session(page, SAMPLE, "call", richest["event_id"])
    page.click(f"{LEFT_OUT} button", f"Read {omission}")
    text = page.see(f"{LEFT_OUT} [aria-label='Recalled text']")
    recalled = sample.daypack("recall", "sample", omission)
    assert text.split() == recalled["text"].split()
    page.click(f"{LEFT_OUT} button", f"Read {omission}")
    page.wait_gone(f"{LEFT_OUT} [aria-label='Recalled text']")


def test_an_omitted_text_is_read_by_keyboard(page: Page, sample: Viewed, richest: dict[str, Any]) -> None:
    sample.session(page, SAMPLE, "call", richest["event_id"])
    page.see(f"{LEFT_OUT} .entry")
    page.press("e")
    page.wait_for("document.activeElement?.innerText?.startsWith('Left out')")
    page.press("Tab", "Enter")
    page.see(f"{LEFT_OUT} [aria-label='Recalled text']")
    page.focus(f"{LEFT_OUT} a.source")
    page.press("Enter")
    page.wait_for("location.hash.includes('/history/')")


def test_what_is_missing_is_listed(page: Page, sample: Viewed) -> None:
    question = "How many A3 posters are ordered: 600 or 800?"
    with daypack.open_session("sample", home=sample.home, create=False) as session:
        turns = [session.replay(event.id) for event in session.events() if event.type == "context.turn"]
    turn = next(turn for turn in turns if any(missing.question == question for missing in turn.missing))
    sample.session(page, SAMPLE, "call", turn.event_id)
    panel = page.see(MISSING)
    assert question in panel
    assert len(page.texts(f"{MISSING} .entry")) == len(turn.missing)


def test_a_call_with_everything_says_so(page: Page, sample: Viewed) -> None:
    first = sample.daypack("turns", "sample", "-n", "0")[0]
    sample.session(page, SAMPLE, "call", first["event"])
    page.see(f"{LEFT_OUT} p", "Nothing: everything is in.")
