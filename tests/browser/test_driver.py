"""The driver itself: what it reports must have happened in the browser."""

import json
from pathlib import Path

import pytest
from browser.driver.page import Page

from tools import browser

FORM = """<!doctype html><html lang="en"><title>Form</title><main><h1>Form</h1>
<button id="ask" onclick="alert('asked'); this.textContent = 'answered'">Ask</button>
<label>Name <input id="name"></label>
<label>Size <input id="size" type="range" min="0" max="100" value="0" style="width: 300px"></label>
<p id="keys"></p></main>
<script>addEventListener("keydown", (event) => { document.getElementById("keys").textContent += event.key + " "; });
console.error("a wrong note");</script>"""


@pytest.fixture
def form(any_page: Page, tmp_path: Path) -> Page:
    path = tmp_path / "form.html"
    path.write_text(FORM, encoding="utf-8")
    any_page.goto(path.as_uri())
    return any_page


def test_a_click_reaches_the_element_and_a_dialog_is_recorded(form: Page) -> None:
    form.click("button", "Ask")
    form.wait_text("answered")
    assert form.dialogs == ["alert: asked"]


def test_keys_arrive_as_a_keyboard_sends_them(form: Page) -> None:
    form.focus("#name")
    form.write("Ab 7?")
    form.press("Backspace", "Shift+Tab")
    assert form.evaluate("document.getElementById('name').value") == "Ab 7"
    assert form.text("#keys").endswith("A b 7 ? Backspace Tab")
    assert form.focused.startswith("BUTTON")


def test_a_drag_moves_a_slider(form: Page) -> None:
    form.drag("#size", 0.1, 0.8)
    assert form.evaluate("document.getElementById('size').value > 70")


def test_console_and_requests_are_recorded(form: Page, tmp_path: Path) -> None:
    form.evaluate("fetch('http://127.0.0.1:9/elsewhere').catch(() => 0)")
    assert "a wrong note" in form.console
    assert form.requests == [(tmp_path / "form.html").as_uri(), "http://127.0.0.1:9/elsewhere"]


def test_a_covered_element_cannot_be_clicked(form: Page) -> None:
    form.evaluate(
        "document.body.append(Object.assign(document.createElement('div'),"
        " {id: 'cover', style: 'position: fixed; inset: 0'}))"
    )
    with pytest.raises(AssertionError, match=r"is covered by <div id=.cover"):
        form.click("button", "Ask")


def test_a_condition_that_never_holds_fails_with_what_the_page_shows(form: Page) -> None:
    with pytest.raises(AssertionError, match=r"never true: false\n.*\nForm"):
        form.wait_for("false", seconds=0)


def test_axe_finds_a_missing_label(form: Page) -> None:
    form.evaluate("document.querySelector('main').append(document.createElement('input'))")
    found = form.violations(browser.axe(Path(__file__).parents[2] / ".venv" / "browser").read_text)
    assert [(each.rule.split(":")[0], each.impact) for each in found] == [("label", "critical")]


def no_network(*_: object) -> str:
    return "no network"


def test_without_a_browser_the_reason_is_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "install", no_network)
    assert browser.main([str(tmp_path / "browser")]) == 0
    said = capsys.readouterr().err.strip()
    assert said.startswith("no browser for tests/browser, which are skipped: none of chromium")
    assert said.endswith("npm: no network")
    assert browser.problem(tmp_path / "browser") == said
    assert not (tmp_path / "browser" / "ready").exists()


def test_a_browser_that_was_removed_is_looked_for_again(tmp_path: Path) -> None:
    (tmp_path / "browser.json").write_text(json.dumps({"program": str(tmp_path / "gone"), "variables": {}}))
    assert browser.find(tmp_path) is None
    assert browser.problem(tmp_path) == "there is no browser: run make .venv/browser/ready"
