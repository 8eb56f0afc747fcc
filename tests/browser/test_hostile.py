"""Contents that try to be more than text, everywhere a text can be: they are shown, and nothing else happens."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from browser.driver.hostile import CONTENTS, LONG_LINE, NAME, TITLE, make_hostile_home
from browser.driver.page import Page
from browser.driver.places import CARD, CHOSEN, DETAIL, DIALOG, DIFFERENCE, ITEM, ITEM_NAME, STRIP
from browser.driver.viewed import Viewed, start_view

HOSTILE = ("<b>agent", NAME)
# Elements that the page itself never makes.
FOREIGN = (
    "img, iframe, object, embed, video, audio, math, marquee, base, form[action], meta[http-equiv], [onload], [onerror]"
)
HIDDEN = re.compile(
    "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    home = str(tmp_path_factory.mktemp("hostile") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        make_hostile_home(home)
    with start_view(home) as viewed:
        yield viewed


def visible(text: str) -> str:
    """Return a text as the page shows it: characters that hide or reorder something are symbols."""

    def symbol(found: re.Match[str]) -> str:
        code = ord(found[0])
        return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"

    return HIDDEN.sub(symbol, text.replace("\r\n", "\n"))


def check_harmless(page: Page, viewed: Viewed) -> None:
    """Check what no content may do; the fixture of the page checks console, dialogs and requests at the end."""
    assert page.evaluate("[window.hit ?? null, ({}).polluted ?? null]") == [None, None]
    assert page.evaluate(f"[...document.querySelectorAll('{FOREIGN}')].map((e) => e.outerHTML.slice(0, 200))") == []
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.styleSheets.length") == 1
    links = page.evaluate("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert [link for link in links if not str(link).startswith(("#", "/metrics"))] == []
    assert {url for url in page.requests if not url.startswith((viewed.origin, "data:"))} == set()
    assert page.evaluate("location.href").startswith(f"{viewed.origin}/#/")


def test_there_are_enough_of_them() -> None:
    assert len(set(CONTENTS)) >= 120


def test_every_message_is_shown_as_its_text(page: Page, hostile: Viewed) -> None:
    hostile.session(page, HOSTILE, "history", 1)
    page.see(CHOSEN)
    for at, content in enumerate(CONTENTS):
        seq = at + 2
        page.evaluate(f"location.hash = '#/s/{quote(HOSTILE[0], safe='')}/{quote(NAME, safe='')}/history/{seq}'")
        shown = page.wait_for(
            f"(e => e && e.getAttribute('aria-busy') !== 'true' && e.textContent)"
            f"(document.querySelector('[data-row=\"{at + 1}\"]'))"
        )
        assert visible(content) in shown, content
    check_harmless(page, hostile)


def test_a_line_of_a_megabyte_is_shown_on_request(page: Page, hostile: Viewed) -> None:
    total = hostile.daypack("session", "list")
    [messages] = [session["messages"] for session in total if session["session"] == NAME]
    hostile.session(page, HOSTILE, "history", messages - 2)
    row = f"[data-row='{messages - 3}']"
    page.see(row)
    page.click(f"{row} button[aria-expanded]")
    page.click(f"{row} button", "Show all")
    page.wait_for(f'document.querySelector("{row}").textContent.length > {len(LONG_LINE)}')
    check_harmless(page, hostile)


def test_the_list_of_sessions(page: Page, hostile: Viewed) -> None:
    hostile.open(page)
    page.see("[role=row][data-row] a")
    titles = page.texts("[role=row][data-row] a")
    assert len(titles) == 6
    assert sum(TITLE in title for title in titles) >= 5
    assert "<i>gpt-4o" in page.text()
    check_harmless(page, hostile)
    for name in ("__proto__", "constructor", "javascript:alert(1)", "${7*7}", "{{7*7}}"):
        hostile.session(page, ("default", name), "history", 1)
        page.wait_text(name, "main")
        check_harmless(page, hostile)


def test_every_view_of_the_session(page: Page, hostile: Viewed) -> None:
    hostile.session(page, HOSTILE)
    page.see(ITEM)
    for key in ("r", "p", "d", "d", "e", "Home", "r", "p"):
        page.press(key)
    for opened in page.texts(ITEM_NAME)[:12]:
        assert opened
    page.evaluate(
        "document.querySelectorAll('article.item button[aria-expanded=false]').forEach((each) => each.click())"
    )
    page.wait_text(CONTENTS[0], "main")
    page.wait_text("<b>pin", "main")
    check_harmless(page, hostile)
    page.press("c")
    page.wait_for("document.querySelector('main ol li a.card')")
    page.click(CARD)
    page.see(f"{DETAIL} h2")
    page.wait_text("<script>", "article")
    check_harmless(page, hostile)
    page.press("n")
    page.wait_text("<svg onload=alert(1)>", "main")
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.wait_text(CONTENTS[0], "main")
    check_harmless(page, hostile)


def test_the_difference_and_the_pointer(page: Page, hostile: Viewed) -> None:
    turns = hostile.daypack("turns", NAME, "--agent", HOSTILE[0], "-n", "0")
    hostile.session(page, HOSTILE, "diff", turns[0]["event"], turns[-1]["event"])
    page.see(DIFFERENCE)
    page.evaluate(
        "document.querySelectorAll('article.item button[aria-expanded=false]').forEach((each) => each.click())"
    )
    page.hover_at(page.place(STRIP, at=(0.05, 0.6)))
    check_harmless(page, hostile)


def test_memories(page: Page, hostile: Viewed) -> None:
    hostile.open(page, "memory")
    page.click("main nav a", TITLE)
    page.wait_text("# Notes", "main")
    page.wait_text(CONTENTS[25], "main")
    page.click("input[aria-label='Search this memory']")
    page.write("script alert number")
    page.press("Enter")
    page.see("main", "floor")
    check_harmless(page, hostile)
    page.focus("main select")
    page.press("ArrowDown")
    page.wait_for("document.querySelector('.difflines')")
    page.click(f"{DETAIL} button.danger")
    page.see(DIALOG, TITLE)
    page.press("Escape")
    check_harmless(page, hostile)


@pytest.mark.parametrize(
    "query", ["<script>", "alert(1)", "javascript:", "${7*7}", "__proto__", "\u202egnp.exe", "elsewhere"]
)
def test_search(page: Page, hostile: Viewed, query: str) -> None:
    hostile.open(page, "find", query)
    page.see("h1")
    page.wait_for("document.querySelector('main ol li, main .empty')")
    assert visible(query) in page.text("h1")
    check_harmless(page, hostile)


@pytest.mark.parametrize("content", ["<img src=x onerror=alert(1)>", "%", "%zz", "__proto__", "a/b", "\u202e"])
def test_addresses(any_page: Page, hostile: Viewed, content: str) -> None:
    for place in (("s", "default", content), ("s", *HOSTILE, "call", content), ("memory", content), (content, content)):
        hostile.open(any_page, *place)
        any_page.see("main")
    for raw in (f"#/s/{content}", f"#{content}", "#/s/%E0%A4%A/x"):
        any_page.goto(f"{hostile.origin}/{raw}")
        any_page.see("main")
    check_harmless(any_page, hostile)
    assert any_page.dialogs == []


def test_health(page: Page, hostile: Viewed) -> None:
    hostile.open(page, "health")
    page.click("main button", "Examine sessions and memories")
    page.wait_text("6 of 6", "main")
    check_harmless(page, hostile)
