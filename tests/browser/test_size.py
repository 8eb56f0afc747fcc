"""A session of 100,000 messages and 2,000 calls: the page stays small, whatever the session has."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.driver.page import Page
from browser.driver.places import ITEM, STRIP
from browser.driver.viewed import Viewed, start_view

import daypack

LONG = ("default", "long")
REAL, CALLS, MESSAGES = 20, 2_000, 100_000
MOST_NODES = 6_000  # elements and texts of a view; the session's own would be hundreds of thousands


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    home = tmp_path_factory.mktemp("long") / "home"
    write_long_session(home)
    with start_view(str(home)) as viewed:
        yield viewed


def write_long_session(home: Path) -> None:
    """Write some real turns and repeat their events, which is a hundred times as fast as 2,000 turns."""
    with daypack.open_session(
        LONG[1], home=home, durability="os", workspace="", model="gpt-4o", compaction_model="none"
    ) as session:
        session.set_budget(3000)
        for number in range(REAL):
            session.append("user", f"Question {number}: which size has poster {number % 7}? " * 4)
            session.prepare()
            session.accept(f"Poster {number % 7} is {number * 31 % 90} mm wide. " * 4)
        turns = [event.data for event in session.events() if event.type == "context.turn"]
        for number in range(CALLS - REAL):
            session.append_event("context.turn", turns[number % REAL])
        for start in range(0, MESSAGES - 2 * REAL, 1000):
            count = min(1000, MESSAGES - 2 * REAL - start)
            session.append_many(
                {"role": "user" if at % 2 else "assistant", "content": f"Line {start + at} about poster {at % 41}."}
                for at in range(count)
            )


def nodes(page: Page) -> int:
    return page.evaluate("document.createTreeWalker(document).constructor && document.querySelectorAll('*').length")


def test_the_strip_of_2000_calls_is_a_few_nodes_and_can_be_walked(page: Page, long: Viewed) -> None:
    long.session(page, LONG)
    page.see(STRIP)
    assert page.attributes(STRIP, "aria-valuemax") == [str(CALLS)]
    page.see(ITEM)
    assert nodes(page) < MOST_NODES
    assert page.evaluate("document.querySelectorAll('.bars *').length") < 200
    page.press("Home")
    page.see(f"{STRIP}[aria-valuenow='1']")
    page.press(*["j"] * 40)
    page.see(f"{STRIP}[aria-valuenow='41']")
    page.press("End")
    page.see(f"{STRIP}[aria-valuenow='{CALLS}']")
    page.drag(STRIP, 0.9, 0.1)
    page.wait_for(f"Number(document.querySelector('{STRIP}').getAttribute('aria-valuenow')) < {CALLS}")
    assert nodes(page) < MOST_NODES


def test_the_history_of_100000_messages_scrolls_to_any_place(page: Page, long: Viewed) -> None:
    long.session(page, LONG, "history", MESSAGES // 2)
    page.wait_text(f"Line {MESSAGES // 2 - 2 * REAL - 1} about poster", "main")
    assert nodes(page) < MOST_NODES
    page.press("End")
    page.wait_text(f"Line {MESSAGES - 2 * REAL - 1} about poster", "main")
    page.press("Home")
    page.wait_text("Question 0: which size", "main")
    for share in (0.9, 0.2, 0.6):
        page.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
        page.wait_for(
            "(rows => rows.length && rows.every((row) => row.getAttribute('aria-busy') !== 'true'))"
            "([...document.querySelectorAll('[data-row]')].filter((row) => { const box = row.getBoundingClientRect();"
            " return box.bottom > 100 && box.top < innerHeight; }))"
        )
        assert nodes(page) < MOST_NODES
    page.scroll("main", 4000)
    page.wait_for("scrollY > 0")


def test_the_field_for_a_message_jumps_there(page: Page, long: Viewed) -> None:
    long.session(page, LONG, "history", 1)
    page.wait_text("Question 0", "main")
    page.focus("main input[type=number]")
    page.press("Control+a")
    page.write("77")
    page.evaluate("window.scrollTo(0, 40000)")
    page.wait_text("Line 42", "main")  # what is loaded meanwhile does not undo what was typed
    page.write("777")
    page.press("Enter")
    page.wait_for("location.hash.endsWith('/history/77777')")
    page.wait_text(f"Line {77777 - 2 * REAL - 1} about poster", "main")


def test_calls_far_apart_are_compared(page: Page, long: Viewed) -> None:
    turns = long.daypack("turns", "long", "-n", "0")
    long.session(page, LONG, "diff", turns[3]["event"], turns[1890]["event"])
    page.see("main p.line b.num", f"{turns[3]['tokens']:,} →")
    assert nodes(page) < MOST_NODES
