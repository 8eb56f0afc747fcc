"""Memories: entries, the document with its versions, search with its scores, and removing."""

from browser.driver.page import Page
from browser.driver.places import DETAIL, DIALOG, panel
from browser.driver.viewed import Viewed

from daypack.memory.tools import open_memory
from daypack.serve.sample import TITLE
from daypack.types.memory import Memory

SEARCH = "input[aria-label='Search this memory']"


def of(viewed: Viewed, *, hidden: bool = False) -> list[Memory]:
    with open_memory(home=viewed.home) as memories:
        return list(memories.memories(deleted=hidden))


def open_sample_memory(page: Page, viewed: Viewed) -> None:
    viewed.open(page, "memory")
    page.click("main nav a", TITLE)
    page.see(f"{DETAIL} h2", TITLE)


def test_a_memory_shows_its_entries_and_document(page: Page, sample: Viewed) -> None:
    open_sample_memory(page, sample)
    [memory] = of(sample)
    assert f"{memory.stats.entries} entries" in page.text(DETAIL)
    page.wait_for(f"document.querySelectorAll('section[aria-label=Entries] ol > li').length === {memory.stats.entries}")
    assert "It did not rain, 3,100 people came" in page.texts("main ol > li")[0]
    assert "Mr Okafor: key of hall B" in page.see("[aria-label='Text of the document']")


def test_what_changed_in_a_version_of_the_document(page: Page, sample: Viewed) -> None:
    open_sample_memory(page, sample)
    page.focus(f"{DETAIL} select")
    page.press("ArrowDown")
    page.see(".difflines .add", "Mr Okafor")
    page.see(".difflines .del", "tell the city before 20 March 2026")
    page.press("ArrowUp")
    page.see("[aria-label='Text of the document']")


def test_a_search_shows_the_parts_of_each_score_and_the_floor(page: Page, sample: Viewed) -> None:
    open_sample_memory(page, sample)
    page.click(SEARCH)
    page.write("who has the key of the hall")
    page.press("Enter")
    page.see(f"{DETAIL} .legend", "floor")
    first = page.see("main ol > li", "Mr Okafor, has the key")
    assert "Score" in first
    assert "Relevance" in first
    assert page.evaluate("document.querySelectorAll('.score path.seam').length") == page.count(".score")
    assert len(page.texts(f"{DETAIL} .legend li")) >= 3
    page.focus(SEARCH)
    page.press("Control+a")
    page.write("爵士乐队")
    page.focus(f"{DETAIL} button", "Search")
    page.press("Enter")
    page.see("main ol > li .score")
    page.see(f"{panel('Search')} ol > li:first-child", "上海的爵士乐队")


def hide(page: Page, viewed: Viewed) -> None:
    open_sample_memory(page, viewed)
    page.click(f"{DETAIL} button", "Hide …")
    page.click(f"{DIALOG} button", "Hide")
    page.see(f"{DETAIL} .tag", "hidden")
    page.see(f"{DETAIL} .empty", "What a hidden memory holds is not shown.")


def test_a_memory_is_hidden_and_restored_by_mouse(page: Page, own_sample: Viewed) -> None:
    hide(page, own_sample)
    assert of(own_sample) == []
    assert [memory.title for memory in of(own_sample, hidden=True)] == [TITLE]
    page.click(f"{DETAIL} button", "Restore …")
    page.click(f"{DIALOG} button", "Restore")
    page.wait_gone(f"{DETAIL} .tag", "hidden")
    assert [memory.title for memory in of(own_sample)] == [TITLE]


def test_a_memory_is_erased_only_when_its_title_is_typed(page: Page, own_sample: Viewed) -> None:
    open_sample_memory(page, own_sample)
    page.focus(f"{DETAIL} button.danger", "Erase …")
    page.press("Enter")
    page.see(DIALOG)
    assert page.evaluate("document.querySelector('dialog[open] button.danger').disabled")
    page.focus(f"{DIALOG} input")
    page.write(TITLE[:-1])
    assert page.evaluate("document.querySelector('dialog[open] button.danger').disabled")
    page.write(TITLE[-1])
    page.wait_for("!document.querySelector('dialog[open] button.danger').disabled")
    assert [memory.title for memory in of(own_sample)] == [TITLE]
    page.press("Enter")
    page.wait_for("location.hash === '#/memory'")
    page.see(".empty")
    assert of(own_sample) == []
    assert of(own_sample, hidden=True) == []


def test_an_entry_is_erased_with_a_question_before(page: Page, own_sample: Viewed) -> None:
    open_sample_memory(page, own_sample)
    page.wait_for("document.querySelectorAll('section[aria-label=Entries] ol > li').length === 12")
    before = of(own_sample)[0].stats.entries
    page.click("section[aria-label=Entries] li:nth-child(2) button", "Erase entry")
    assert "If it rains we use hall B" in page.see(DIALOG)
    page.press("Escape")
    page.wait_gone(DIALOG)
    assert of(own_sample)[0].stats.entries == before
    page.click("section[aria-label=Entries] li:nth-child(2) button", "Erase entry")
    page.click(f"{DIALOG} button.danger", "Erase")
    page.wait_for("document.querySelectorAll('section[aria-label=Entries] ol > li').length === 11")
    assert not page.has("main ol > li", "If it rains we use hall B")
    with open_memory(home=own_sample.home) as memories:
        entries = memories.list_entries(of(own_sample)[0].memory_id, limit=50).entries
    assert not any("If it rains" in entry.summary for entry in entries)


def test_memories_are_reached_by_keyboard(page: Page, sample: Viewed) -> None:
    sample.open(page)
    page.see("[role=row][data-row] a")
    page.press("M")
    page.see("main nav a", TITLE)
    page.press("j")
    page.see(f"{DETAIL} h2", TITLE)
    page.press("Escape")
    page.wait_for("location.hash === '#/memory'")


def test_a_session_leads_to_its_memory(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.click("main header a", TITLE)
    page.see(f"{DETAIL} h2", TITLE)
