"""The tiers of the model's own memory over the rounds."""

from browser.driver.page import Page
from browser.driver.places import CHOSEN, STRIP, panel
from browser.driver.viewed import PRINT_JOB, SAMPLE, Viewed


def blocks(page: Page, tier: str) -> list[str]:
    return page.texts(f"{panel(tier)} .block b")


def test_three_columns_show_the_newest_round(page: Page, sample: Viewed) -> None:
    tiers = sample.daypack("tiers", PRINT_JOB[1])
    sample.session(page, PRINT_JOB, "tiers")
    page.see(".tiers")
    for name in ("core", "working", "ephemeral"):
        assert sorted(blocks(page, name.title())) == sorted(block["id"] for block in tiers[name])
    assert "Active task: Print the posters." in page.text()
    assert "Chen is on the train until noon." in page.text()  # expired, and listed as left out


def test_rounds_are_passed_by_keyboard(page: Page, sample: Viewed) -> None:
    sample.session(page, PRINT_JOB)
    page.see(STRIP)
    page.press("t")
    page.see(".tiers")
    page.press("Home")
    page.see("label", "Round 1 of 6")
    page.wait_for("document.querySelector('section[aria-label=Ephemeral]').innerText.includes('Chen is on the train')")
    assert blocks(page, "Working") == ["work-001"]
    page.press("ArrowRight")
    page.wait_for("document.querySelectorAll('section[aria-label=Working] .block').length === 2")
    page.press("j")
    page.see("label", "Round 3 of 6")
    page.press("j")
    page.see("label", "Round 4 of 6")
    page.wait_for("document.querySelector('section[aria-label=Core]').innerText.includes('15:00')")
    assert "changed" in page.see(".tiers .block .tag", "changed")
    page.press("k", "End")
    page.see("label", "Round 6 of 6")


def test_rounds_are_passed_by_mouse_and_lead_to_their_message(page: Page, sample: Viewed) -> None:
    sample.session(page, PRINT_JOB, "tiers")
    page.see(".tiers")
    page.drag("#round", 0.98, 0.02)
    page.see("label", "Round 1 of 6")
    page.click(".tools a.source", "message 2")
    page.wait_for("location.hash.endsWith('/history/2')")
    page.see(CHOSEN)


def test_a_session_without_the_protocol_has_no_tiers(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "tiers")
    page.see(".empty", "No reply with tiers")
    assert not page.has(".sections a", "Tiers")
