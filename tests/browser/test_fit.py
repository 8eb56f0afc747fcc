"""Would it fit? A dry run of the next call with another budget."""

from hashlib import sha256
from pathlib import Path

from browser.driver.page import Page
from browser.driver.places import FIT, SLIDER
from browser.driver.viewed import SAMPLE, Viewed

RESULT = f"{FIT} .fitbars"


def digests(viewed: Viewed) -> dict[str, str]:
    """Return what is recorded in the home: the logs and blobs, not what is derived from them."""
    root = Path(viewed.home)
    kept = [
        path for path in (*root.rglob("*.jsonl"), *root.rglob("blob/*"), *root.rglob("meta.json")) if path.is_file()
    ]
    logs = [path for path in kept if "context" not in path.parts]
    assert len(logs) >= 8
    return {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in logs}


def newest_event(viewed: Viewed) -> str:
    return str(viewed.daypack("turns", "sample", "-n", "1")[0]["event"])


def would_send(page: Page) -> int:
    text = page.wait_for(
        f"[...document.querySelectorAll('{FIT} .facts div')].find((e) => e.innerText.includes('WOULD SEND')"
        " || e.innerText.includes('Would send'))?.innerText"
    )
    return int("".join(letter for letter in text.split("token")[0] if letter.isdigit()))


def test_the_budget_is_dragged_and_nothing_is_recorded(page: Page, own_sample: Viewed) -> None:
    before = digests(own_sample)
    own_sample.session(page)
    page.see(FIT)
    page.drag(SLIDER, 0.4, 0.9)
    page.see(RESULT)
    large = would_send(page)
    page.drag(SLIDER, 0.9, 0.3)
    page.wait_for(f"!document.querySelector('{FIT}').innerText.includes('{large:,} tokens')")
    assert would_send(page) < large
    assert "Would be out" in page.text(FIT)
    assert digests(own_sample) == before
    assert "Dry run" in page.text(FIT)


def test_the_budget_of_an_address_is_tried(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "fit", 6000)
    page.see(RESULT)
    text = page.evaluate(
        "fetch('/page/data/fit?agent=default&session=sample&budget=6000').then((r) => r.json()).then((f) => f.headline)"
    )
    assert text.startswith(f"{would_send(page):,} of 6,000 tokens")
    assert would_send(page) < 4500  # a quarter is kept for the answer


def test_an_address_with_a_budget_is_followed_inside_the_page(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(FIT)
    page.evaluate("location.hash = '#/s/default/sample/fit/6000'")
    page.see(RESULT)


def test_what_joins_leaves_and_changes_accounts_for_every_token(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "fit", 8700)
    page.see(RESULT)
    totals = page.evaluate(
        f"[...document.querySelectorAll('{FIT} h3')].map((head) => [head.firstChild.textContent,"
        " head.querySelector('span').innerText.split('·')[1]])"
    )
    moved = {name.strip(): int(count.replace(",", "").replace("−", "-").split()[0]) for name, count in totals}
    views = f"['fit?budget=8700&', 'call?event={newest_event(sample)}&']"
    sizes = page.evaluate(
        f"Promise.all({views}.map((view) => fetch(`/page/data/${{view}}agent=default&session=sample`)"
        ".then((answer) => answer.json()).then(({items}) => items.reduce((sum, {tokens}) => sum + (tokens ?? 0), 0))))"
    )
    change = (
        moved.get("Would be in", 0) - moved.get("Would be out", 0) + moved.get("Would be shown at another length", 0)
    )
    assert change == sizes[0] - sizes[1]
    assert "Would be shown at another length" in moved


def test_the_budget_is_changed_by_keyboard(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(FIT)
    page.press("b")
    page.wait_for(f"document.activeElement === document.querySelector('{SLIDER}')")
    page.see(RESULT)
    before = page.attributes(SLIDER, "aria-valuetext")
    page.press(*["ArrowRight"] * 30)
    page.wait_for(f"document.querySelector('{SLIDER}').getAttribute('aria-valuetext') !== '{before[0]}'")
    page.press("Tab")
    page.press("Control+a")
    page.write("2500")
    page.wait_for(f"document.querySelector('{FIT}').innerText.includes('the budget changed')")
    assert 1000 < would_send(page) < 2500


def test_a_larger_budget_holds_more_messages(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "fit", 200000)
    page.see(RESULT)
    text = page.text(FIT)
    assert "114 of 115" in text  # the reply that broke off is sent to no model
    assert "Would be in" in text
