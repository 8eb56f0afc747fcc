"""The list of all sessions."""

from pathlib import Path

from browser.driver.page import Page
from browser.driver.places import DIALOG, ROW, TITLE
from browser.driver.viewed import Viewed, start_view


def titles(page: Page) -> list[str]:
    return page.texts(TITLE)


def open_list(page: Page, viewed: Viewed) -> None:
    viewed.open(page)
    page.see(TITLE)


def test_all_sessions_are_listed_newest_first_with_children_below_their_parent(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    listed = sample.daypack("session", "list")
    names = [session["title"] for session in listed]
    shown = titles(page)
    assert sorted(shown) == sorted(names)
    assert page.text("h1") == "Sessions"
    assert "4 sessions" in page.text(".pagehead")


def test_a_row_has_the_facts_of_its_session(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    page.wait_for("!document.body.innerText.includes('counting calls')")
    [session] = [each for each in sample.daypack("session", "list") if each["session"] == "sample"]
    turns = sample.daypack("turns", "sample", "-n", "0")
    rows = "[...document.querySelectorAll('[role=row][data-row]')]"
    row = f"{rows}.find((row) => row.innerText.includes('The poster job fails'))"
    cells = page.wait_for(
        f"(row => {{ const found = Object.fromEntries([...row.querySelectorAll('[role=cell]')].map((cell) =>"
        f" [cell.className.split(' ')[0], cell.innerText])); return found['c-calls'] !== '–' && found; }})({row})"
    )
    assert cells["c-messages"] == f"{session['messages']:,}"
    assert cells["c-calls"] == str(len(turns))
    assert cells["c-model"] == "gpt-4o"
    assert cells["c-compactions"] == "5"  # with the one that is undone
    assert cells["c-project"] == "posters"
    assert cells["c-tokens"] == f"{session['tokens'] / 1000:.1f}k"
    assert cells["c-age"].endswith((" mo", " d", " y"))


def test_a_child_is_marked_below_its_parent(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    shown = titles(page)
    parent = shown.index("The poster job fails since this morning. Can you find out why?")
    assert shown[parent + 1].startswith("Read texts/en.md")
    cells = page.texts(f"{ROW} [role=cell]:first-child")
    assert [cell.startswith("↳") for cell in cells] == [at == parent + 1 for at in range(len(cells))]


def test_the_list_is_filtered_while_one_types(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    page.press("f")
    page.write("poster gpt-4o fails")
    page.wait_for("document.querySelectorAll('[role=row][data-row] a').length === 1")
    assert titles(page) == ["The poster job fails since this morning. Can you find out why?"]
    assert "1 of 4 sessions" in page.text(".pagehead")
    page.press("Control+a", "Delete")
    page.wait_for("document.querySelectorAll('[role=row][data-row] a').length === 4")
    page.write("nothing has this")
    page.see("a", "Search in all messages")


def test_a_session_is_opened_by_mouse(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    page.click(f"{ROW} [role=cell]", "claude-sonnet-4-5")
    page.wait_for("location.hash === '#/s/claude-code/sample-claude-code'")
    page.see("h1", "Make a page for the web from the texts of the poster.")


def test_a_session_is_opened_by_keyboard(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    second = titles(page)[1]
    page.press("j", "j", "k", "Enter")
    page.wait_for("location.hash.startsWith('#/s/')")
    page.see("h1", second)
    page.press("Escape")
    page.wait_for("location.hash === '#/'")
    page.see(TITLE)
    page.press("End", "Home", "Enter")
    page.wait_for("location.hash.startsWith('#/s/')")


def test_the_keys_are_shown_by_mouse_and_keyboard(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    page.press("?")
    assert "next, previous call" in page.see(DIALOG)
    page.press("Escape")
    page.wait_gone(DIALOG)
    page.click("header button", "Keys")
    page.see(DIALOG)
    page.click(f"{DIALOG} button", "Close")
    page.wait_gone(DIALOG)


def test_the_parts_of_the_page_are_reached_by_mouse_and_keyboard(page: Page, sample: Viewed) -> None:
    open_list(page, sample)
    for name, key, hash_of in (("Memory", "M", "#/memory"), ("Health", "H", "#/health"), ("Sessions", "S", "#/")):
        page.click("header nav a", name)
        page.wait_for(f"location.hash === '{hash_of}'")
        page.see("h1", name)
        page.evaluate("location.hash = '#/find/x'")
        page.press(key)
        page.wait_for(f"location.hash === '{hash_of}'")


def test_an_empty_home_says_what_to_do(page: Page, tmp_path: Path) -> None:
    with start_view(str(tmp_path / "empty")) as viewed:
        viewed.open(page)
        assert "daypack import --all" in page.see(".empty")
        page.goto("about:blank")
