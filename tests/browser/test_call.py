"""One call: the pack as sent, the raw request, and what the cache did."""

import json
from typing import Any

import pytest
from browser.driver.page import Page
from browser.driver.places import CACHE, CHOSEN, FIT, ITEM, ITEM_NAME, LEFT_OUT, RAW, STRIP
from browser.driver.viewed import RECORDED, SAMPLE, Viewed

NAMES = {"openai": "OpenAI chat", "responses": "OpenAI responses", "anthropic": "Anthropic messages"}


@pytest.fixture
def newest(sample: Viewed) -> dict[str, Any]:
    return sample.daypack("explain", "sample")


def open_call(page: Page, viewed: Viewed, *rest: object) -> None:
    viewed.session(page, SAMPLE, *rest)
    page.see(ITEM)


def test_the_pack_is_shown_in_the_order_sent_with_why_each_item_is_in(
    page: Page, sample: Viewed, newest: dict[str, Any]
) -> None:
    open_call(page, sample)
    heads = [text.split("\n")[0].split()[0] for text in page.texts("main h3.grouphead")]
    assert heads[:2] == ["Prefix", "Tail"]
    whys = page.texts(f"{ITEM} .why")
    prefix = [item for item in newest["included"] if item["part"] == "prefix"]
    categories = [why.split(" · ")[0] for why in whys[: len(prefix)]]
    assert categories[0] == "Prefix"
    assert categories[1:3] == ["Pins", "Pins"]
    assert "Memory" in categories
    assert "Summary" in categories
    assert any("pinned" in why for why in whys)
    tokens = [int(text.replace(",", "")) for text in page.texts(f"{ITEM} .head > .num")]
    assert 0.9 * newest["tokens"] < sum(tokens) <= newest["tokens"]  # what is around the items is counted apart
    assert tokens[1 : len(prefix)] == [item["tokens"] for item in prefix[1:]]


def test_an_item_is_opened_by_mouse_and_by_keyboard(page: Page, sample: Viewed) -> None:
    open_call(page, sample)
    page.click(ITEM_NAME, "system")
    body = page.see(f"{ITEM}.open .body")
    assert "You maintain the poster job of the harbour festival" in body
    assert "Authority" in body
    page.press("Enter")
    page.wait_gone(f"{ITEM}.open")
    page.press("ArrowDown", " ")
    assert "Printing house" in page.see(f"{ITEM}.open .body")


def test_a_source_opens_the_history_at_that_message(page: Page, sample: Viewed) -> None:
    open_call(page, sample)
    [address] = page.attributes(f"{ITEM} a.source", "href")[-1:]
    page.click(f'{ITEM} a.source[href="{address}"]')
    page.wait_for(f"location.hash === {json.dumps(address)}")
    number = str(address).rpartition("/")[2]
    assert page.see(f"{CHOSEN} > .num") == number
    chosen = "document.querySelector('article.message[aria-current=true]').getBoundingClientRect().top"
    page.wait_for(f"(top => 0 <= top && top < 800)({chosen})")


@pytest.mark.parametrize("dialect", list(NAMES))
def test_the_raw_request_is_what_replay_prints(page: Page, sample: Viewed, dialect: str) -> None:
    open_call(page, sample)
    event = sample.daypack("explain", "sample")["event_id"]
    page.press("r")
    page.click("[aria-label=Dialect] button", NAMES[dialect])
    page.see("[aria-label=Dialect] button[aria-pressed=true]", NAMES[dialect])
    text = page.see(RAW)
    assert json.loads(text) == sample.daypack("replay", "sample", event, "--dialect", dialect)


def test_the_raw_request_is_copied(page: Page, sample: Viewed) -> None:
    page.allow("clipboardReadWrite", "clipboardSanitizedWrite")
    open_call(page, sample)
    page.click(".callhead button", "Raw request")
    text = page.see(RAW)
    page.click("button", "Copy request")
    page.see("button", "Copied")
    assert page.evaluate("navigator.clipboard.readText()").strip() == text
    page.press("p")
    page.see(ITEM)


def test_expected_and_reported_cache_are_side_by_side(page: Page, sample: Viewed) -> None:
    turns = sample.daypack("turns", "sample", "-n", "0")
    missed = next(turn for turn in turns if turn["cached_tokens"] == 0 and turn["expected_cached_tokens"])
    open_call(page, sample, "call", missed["event"])
    panel = page.see(CACHE)
    assert f"{missed['expected_cached_tokens']:,}" in panel
    assert "Break" in panel
    assert f"{missed['input_tokens']:,} tokens" in panel
    assert page.see(".callhead .good") == "✓ replays to the same bytes"


def test_the_answer_of_a_call_is_opened(page: Page, sample: Viewed) -> None:
    turn = sample.daypack("turns", "sample", "-n", "0")[3]
    open_call(page, sample, "call", turn["event"])
    page.click(".callhead a", "message")
    page.wait_for(f"location.hash.endsWith('/history/{turn['reply'].removeprefix('msg-')}')")


def test_an_incomplete_answer_and_an_error_are_marked(page: Page, sample: Viewed) -> None:
    sample.session(page)
    page.see(STRIP)
    marks = page.evaluate(
        "fetch('/page/data/session?agent=default&session=sample').then((r) => r.json()).then((s) =>"
        " s.calls.map((c) => c[s.columns.indexOf('mark')]).filter(Boolean))"
    )
    assert "incomplete" in marks
    assert "error" in marks


def test_an_observed_call_says_what_is_unknown(page: Page, sample: Viewed) -> None:
    sample.session(page, RECORDED)
    page.see(ITEM)
    assert "messages:1-20" in page.see(LEFT_OUT)
    assert not page.has(FIT)
    page.press("r")
    assert json.loads(page.see(RAW))["model"] == "claude-sonnet-4-5"
    assert page.texts("[aria-label=Dialect] button")[:-1] == ["Anthropic messages"]


def test_a_long_text_is_shown_whole_on_request(page: Page, sample: Viewed) -> None:
    sample.session(page, SAMPLE, "history", 5)
    page.click(f"{CHOSEN} button")
    assert "posters/layout.toml" in page.see(f"{CHOSEN} .body")
