"""Who may see the page: a token that works once, a cookie, and nothing for pages of other origins."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from browser.driver.chromium import Chromium
from browser.driver.page import Page, open_page
from browser.driver.places import PROBLEM, TITLE
from browser.driver.viewed import Viewed, run_daypack, start_view

from daypack.memory.tools import open_memory

FORM = "main input[type=password]"


@pytest.fixture
def fresh(sample_home: Path) -> Iterator[Viewed]:
    """A server whose token is not used yet."""
    with start_view(str(sample_home)) as viewed:
        yield viewed


def test_the_printed_address_opens_the_page_and_the_token_disappears(page: Page, fresh: Viewed) -> None:
    page.goto(fresh.address)
    page.see(TITLE)
    assert "token" not in page.evaluate("location.href")
    assert page.evaluate("document.cookie") == ""  # scripts cannot read it


def test_a_used_token_is_refused_in_another_browser(chromium: Chromium, page: Page, fresh: Viewed) -> None:
    page.goto(fresh.address)
    page.see(TITLE)
    with open_page(chromium) as other:
        other.goto(fresh.address)
        other.see(FORM)
        assert "This address was used already" in other.text()
        assert "The poster job" not in other.text()


def test_without_a_token_there_is_only_a_form(any_page: Page, fresh: Viewed) -> None:
    any_page.goto(f"{fresh.origin}/#/s/default/sample")
    any_page.see(FORM)
    assert any_page.evaluate("fetch('/page/data/sessions').then((answer) => answer.status)") == 401
    assert "poster" not in any_page.evaluate("document.documentElement.outerHTML")


def test_a_token_is_pasted_by_keyboard(any_page: Page, fresh: Viewed) -> None:
    any_page.goto(f"{fresh.origin}/")
    any_page.focus(FORM)
    any_page.write("wrong")
    any_page.press("Enter")
    any_page.see(PROBLEM)
    any_page.focus(FORM)
    any_page.press("Control+a")
    any_page.write(fresh.address)  # the whole address is what people have
    any_page.press("Enter")
    any_page.see(TITLE)


def test_another_user_sees_her_memories_and_no_sessions(any_page: Page, own_sample: Viewed) -> None:
    with open_memory(home=own_sample.home) as memories:
        memories.users.get("eve")
        memories.as_user("eve").create_memory("Notes of Eve")
    token = run_daypack(own_sample.home, "token", "new", "eve").stdout.strip()
    any_page.goto(f"{own_sample.origin}/#/memory")
    any_page.click(FORM)
    any_page.write(token)
    any_page.click("main button", "Enter")
    any_page.see("main a", "Notes of Eve")
    assert "Harbour festival" not in any_page.text()
    any_page.evaluate("location.hash = '#/'")
    any_page.see(PROBLEM, "sessions are shown to their owner only")


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[str]:
    """Another web site of this machine: the same host, another port."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Elsewhere</title>", encoding="utf-8")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — its name in the class above
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_of_another_origin_reads_and_writes_nothing(any_page: Page, own_sample: Viewed, foreign: str) -> None:
    own_sample.open(any_page)
    any_page.see(TITLE)
    any_page.goto(foreign)
    read = (
        f"fetch('{own_sample.origin}/page/data/sessions', {{credentials: 'include'}})"
        ".then((answer) => answer.text(), (error) => String(error))"
    )
    assert "TypeError" in any_page.evaluate(read)
    before = own_sample.daypack("compactions", "sample")
    for mode in ("cors", "no-cors"):
        any_page.evaluate(
            f"fetch('{own_sample.origin}/page/do/undo', {{method: 'POST', mode: '{mode}', credentials: 'include',"
            " headers: {'Content-Type': 'text/plain'}, body: JSON.stringify({agent: 'default', session: 'sample',"
            f" compaction: '{before['compactions'][-1]['id']}'}})}}).then(() => 1, () => 0)"
        )
    assert own_sample.daypack("compactions", "sample") == before
    framed = any_page.evaluate(
        "new Promise((done) => { const frame = document.createElement('iframe'); frame.onload = () => {"
        " try { done(frame.contentDocument ? 'empty' : 'foreign'); } catch (error) { done('foreign'); } };"
        f" frame.src = '{own_sample.origin}/'; document.body.append(frame); setTimeout(() => done('none'), 3000); }})"
    )
    assert framed in ("foreign", "none")
    assert any("frame" in line.lower() for line in any_page.console)


def test_a_link_from_elsewhere_brings_no_cookie_along(any_page: Page, own_sample: Viewed, foreign: str) -> None:
    own_sample.open(any_page)
    any_page.see(TITLE)
    any_page.goto(foreign)
    for path in ("/page/data/sessions", "/page/live"):
        answer = httpx.get(own_sample.origin + path, headers={"Origin": foreign.rstrip("/")}, trust_env=False)
        assert answer.status_code in (401, 403)


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1.elsewhere.example", "localhost.elsewhere.example"])
def test_another_host_name_is_refused(sample: Viewed, host: str) -> None:
    for path in ("/", "/page/data/sessions", "/page/live"):
        answer = httpx.get(sample.origin + path, headers={"Host": host, "Accept": "text/html"}, trust_env=False)
        assert answer.status_code == 421
