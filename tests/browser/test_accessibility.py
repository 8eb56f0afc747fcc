"""Accessibility: axe in every view, light and dark; everything by keyboard; small windows; reduced motion."""

from functools import cache
from pathlib import Path

import pytest
from browser.driver.page import Page
from browser.driver.places import CARD, CHOSEN, DETAIL, DIALOG, ITEM, ITEM_NAME, RAW, TITLE
from browser.driver.viewed import PRINT_JOB, RECORDED, SAMPLE, Viewed

from tools import browser

FOLDER = Path(__file__).parents[2] / ".venv" / "browser"
SERIOUS = ("serious", "critical")
VIEWS: dict[str, tuple[tuple[object, ...], str]] = {
    "sessions": ((), TITLE),
    "call": (("s", *SAMPLE), ITEM),
    "difference": (("s", *SAMPLE, "diff", "", "ev-94"), ITEM),
    "fit": (("s", *SAMPLE, "fit", 6000), ".fitbars"),
    "history": (("s", *SAMPLE, "history", 17), f"{CHOSEN} button"),
    "compactions": (("s", *SAMPLE, "compactions"), f"{DETAIL} .record"),
    "children": (("s", *SAMPLE, "children"), "main details"),
    "tiers": (("s", *PRINT_JOB, "tiers"), ".tiers"),
    "observed": (("s", *RECORDED), ITEM),
    "memory": (("memory",), "main nav a"),
    "health": (("health",), "h1"),
    "find": (("find", "font"), "main ol li"),
}
FOCUSABLE = "a[href], button:not([disabled]), input, select, summary, [tabindex='0']"


@cache
def source() -> str:
    return browser.axe(FOLDER).read_text(encoding="utf-8")


def check(page: Page) -> None:
    serious = [found for found in page.violations(source) if found.impact in SERIOUS]
    assert serious == []


def show(page: Page, viewed: Viewed, view: str) -> None:
    place, awaited = VIEWS[view]
    page.goto("about:blank")  # nothing is left of the view before
    viewed.open(page, *place)
    page.see(awaited)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", list(VIEWS))
def test_axe_finds_nothing_serious(page: Page, sample: Viewed, view: str, dark: bool) -> None:
    page.prefer(dark=dark, reduced_motion=True)
    show(page, sample, view)
    check(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_what_opens(page: Page, sample: Viewed, dark: bool) -> None:
    page.prefer(dark=dark, reduced_motion=True)
    show(page, sample, "call")
    page.press("?")
    page.see(DIALOG)
    check(page)
    page.press("Escape", "r")
    page.see(RAW)
    check(page)
    show(page, sample, "compactions")
    page.click(CARD)
    page.see(f"{DETAIL} h2")
    check(page)
    show(page, sample, "memory")
    page.click("main nav a")
    page.see(f"{DETAIL} h2")
    check(page)
    page.click(f"{DETAIL} button", "Hide …")
    page.see(DIALOG)
    check(page)


def test_axe_finds_nothing_serious_before_one_has_entered(any_page: Page, sample: Viewed) -> None:
    any_page.goto(f"{sample.origin}/")
    any_page.see("main form")
    check(any_page)


@pytest.mark.parametrize("view", list(VIEWS))
def test_tab_reaches_everything_and_shows_where_it_is(page: Page, sample: Viewed, view: str) -> None:
    show(page, sample, view)
    page.evaluate("document.activeElement?.blur(); window.seen = new Set()")
    wanted = page.evaluate(
        f'[...document.querySelectorAll("{FOCUSABLE}")].filter((e) => e.tabIndex >= 0 && e.getClientRects().length'
        " && !e.closest('dialog:not([open])')).length"
    )
    unmarked: list[str] = []
    for _ in range(wanted + 3):
        page.press("Tab")
        marked = page.evaluate(
            "(e => { window.seen.add(e); const { outlineStyle, boxShadow } = getComputedStyle(e);"
            " return e === document.body || outlineStyle !== 'none' || boxShadow !== 'none'; })(document.activeElement)"
        )
        if not marked:
            unmarked.append(page.focused)
    missed = page.evaluate(
        f'[...document.querySelectorAll("{FOCUSABLE}")].filter((e) => e.tabIndex >= 0 && e.getClientRects().length'
        " && !e.closest('dialog:not([open])') && !window.seen.has(e)).map((e) => e.outerHTML.slice(0, 160))"
    )
    assert missed == []
    assert unmarked == []


@pytest.mark.parametrize("view", list(VIEWS))
def test_nothing_is_wider_than_a_phone(page: Page, sample: Viewed, view: str) -> None:
    page.resize(390, 844, mobile=True)
    show(page, sample, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_nothing_moves_for_those_who_prefer_that(page: Page, sample: Viewed) -> None:
    page.prefer(reduced_motion=True)
    show(page, sample, "call")
    page.press("k")
    page.click(ITEM_NAME)
    moving = page.evaluate(
        "document.getAnimations().filter((each) => (each.effect?.getComputedTiming().duration ?? 0) > 10).length"
    )
    assert moving == 0


def test_the_page_has_a_name_a_language_and_a_main_part(page: Page, sample: Viewed) -> None:
    show(page, sample, "call")
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("document.title").startswith("The poster job fails")
    assert page.evaluate("document.querySelectorAll('main').length") == 1
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    page.press("Tab", "Enter")
    page.wait_for("document.activeElement?.tagName === 'MAIN'")
