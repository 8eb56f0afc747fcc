"""Search in all sessions."""

from browser.driver.page import Page
from browser.driver.places import CHOSEN, TITLE
from browser.driver.viewed import Viewed

FIELD = "header input[type=search]"


def test_a_search_by_keyboard_opens_the_message_in_its_place(page: Page, sample: Viewed) -> None:
    sample.open(page)
    page.see(TITLE)
    page.press("/")
    page.write("HF-2026-0613")
    page.press("Enter")
    page.wait_for("location.hash === '#/find/HF-2026-0613'")
    page.see(".hits li")
    assert "HF-2026-0613" in page.text(".hits li:first-child .hitline")
    assert page.texts(".hits li:first-child mark")
    page.press("j", "k", "Enter")
    page.wait_for("location.hash.startsWith('#/s/default/sample/history/')")
    page.see(CHOSEN, "HF-2026-0613")


def test_a_search_by_mouse(page: Page, sample: Viewed) -> None:
    sample.open(page)
    page.click(FIELD)
    page.write("Noto Sans SC")
    page.press("Enter")
    page.see(".hits li")
    hits = sample.daypack("find", "Noto Sans SC")
    assert len(page.texts(".hits li")) == len(hits)
    page.click(".hits li:first-child a")
    page.wait_for(f"location.hash.endsWith('/history/{hits[0]['seq']}')")
    page.see(CHOSEN)


def test_words_that_are_nowhere_are_named(page: Page, sample: Viewed) -> None:
    sample.open(page, "find", "zeppelin font")
    page.see(".note", "Found nowhere: zeppelin")
    sample.open(page, "find", "qqqqzzzz")
    page.see(".empty", "Nothing found")
