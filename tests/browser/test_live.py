"""The page moves by itself while another process writes."""

import subprocess
import sys

from browser.driver.page import Page
from browser.driver.places import STRIP
from browser.driver.viewed import SAMPLE, Viewed, environment

_OPEN = """
import sys, daypack
session = daypack.open_session(sys.argv[2], home=sys.argv[1], workspace="", model="gpt-4o", compaction_model="none")
"""


def elsewhere(viewed: Viewed, code: str, session: str = SAMPLE[1]) -> None:
    """Do something with a session in another process."""
    command = [sys.executable, "-c", _OPEN + code + "\nsession.close()", viewed.home, session]
    subprocess.run(command, check=True, env=environment())


def stay(page: Page) -> None:
    """Wait until the page is connected, and mark it: a reload would remove the mark."""
    page.wait_for("document.querySelector('header .dot.on')")
    page.evaluate("window.stayed = true")


def check_stayed(page: Page) -> None:
    assert page.evaluate("window.stayed") is True


def test_the_list_shows_new_messages_and_sessions(page: Page, own_sample: Viewed) -> None:
    own_sample.open(page)
    page.see("[role=row][data-row] a")
    stay(page)
    elsewhere(own_sample, 'session.append("user", "One more thing.")')
    rows = "[...document.querySelectorAll('[role=row][data-row]')]"
    row = f"{rows}.find((each) => each.innerText.includes('The poster job fails'))"
    page.wait_for(f"{row}?.innerText.includes('116') && {row}.dataset.row === '0'")
    elsewhere(own_sample, 'session.append("user", "A session from elsewhere.")', "new")
    page.see("[role=row][data-row] a", "A session from elsewhere.")
    check_stayed(page)


def test_the_strip_grows_with_a_call(page: Page, own_sample: Viewed) -> None:
    own_sample.session(page)
    page.see(STRIP)
    before = int(page.attributes(STRIP, "aria-valuemax")[0] or 0)
    stay(page)
    elsewhere(own_sample, 'session.append("user", "One more thing."); session.prepare()')
    page.wait_for(f"document.querySelector('{STRIP}').getAttribute('aria-valuemax') === '{before + 1}'")
    page.see(f"{STRIP}[aria-valuenow='{before + 1}']")  # the selection of the newest call follows
    page.wait_text("One more thing.", "main")
    page.press("Home")
    page.see(f"{STRIP}[aria-valuenow='1']")
    elsewhere(own_sample, 'session.accept("Done."); session.append("user", "Thanks."); session.prepare()')
    page.wait_for(f"document.querySelector('{STRIP}').getAttribute('aria-valuemax') === '{before + 2}'")
    assert page.attributes(STRIP, "aria-valuenow") == ["1"]  # an older one stays
    check_stayed(page)


def test_the_history_follows_new_messages(page: Page, own_sample: Viewed) -> None:
    own_sample.session(page, SAMPLE, "history", 115)
    page.wait_text("Build 1191 has the permit line", "main")
    stay(page)
    for text in ("First from elsewhere.", "Second from elsewhere."):
        elsewhere(own_sample, f'session.append("user", "{text}")')
        page.wait_text(text, "main")
    page.wait_for("location.hash.endsWith('/history/117')")
    check_stayed(page)


def test_a_compaction_by_another_process_appears(page: Page, own_sample: Viewed) -> None:
    own_sample.session(page, SAMPLE, "compactions")
    page.wait_for("document.querySelectorAll('main ol li a.card').length === 5")
    stay(page)
    elsewhere(own_sample, 'session.compact(model="none", keep_tokens=500)')
    page.wait_for("document.querySelectorAll('main ol li a.card').length === 6")
    check_stayed(page)


def test_several_pages_follow_one_session(page: Page, own_sample: Viewed) -> None:
    own_sample.session(page)
    page.see(STRIP)
    stay(page)
    for number in range(3):
        elsewhere(own_sample, f'session.append("user", "Message {number}"); session.prepare()')
    page.wait_for(f"document.querySelector('{STRIP}').getAttribute('aria-valuemax') === '59'")
    check_stayed(page)
