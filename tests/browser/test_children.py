"""Child agents as a tree."""

from browser.driver.page import Page
from browser.driver.places import STRIP
from browser.driver.viewed import SAMPLE, Viewed


def test_a_child_has_its_own_strip_handoff_and_result(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "children")
    child = page.see(".tree .child")
    assert "proofreader" in child
    assert "done" in child
    assert "8 messages · 4 calls" in child
    assert "findings.md" in child
    page.see(".tree svg.ministrip")
    assert page.evaluate("document.querySelector('.ministrip path').getAttribute('d').match(/M/g).length") == 4
    page.click(".tree summary", "Result")
    assert "texts/en.md: no mistake." in page.see(".tree details[open] .shown")


def test_the_session_of_a_child_is_opened_by_mouse(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.click(".sections a", "Children")
    page.click(".tree h2 a", "proofreader")
    page.wait_for("location.hash === '#/s/default/sample--proofreader'")
    page.see("[role=slider][aria-valuemax='4']")


def test_the_session_of_a_child_is_opened_by_keyboard(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(STRIP)
    page.press("n")
    page.see(".tree .child")
    page.focus(".tree summary", "Handoff")
    page.press("Enter")
    page.see(".tree details[open]", "change nothing")
    page.focus(".tree h2 a", "proofreader")
    page.press("Enter")
    page.wait_for("location.hash === '#/s/default/sample--proofreader'")


def test_a_session_without_children_says_so(page: Page, sample: Viewed) -> None:
    sample.session(page, ("default", "sample--proofreader"), "children")
    page.see(".empty", "no child agents")
