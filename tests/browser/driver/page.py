"""One page in a browser: real mouse and key events, conditions to wait for, and what the page did meanwhile."""

import base64
import json
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from browser.driver.chromium import Chromium, ProtocolError
from browser.driver.keys import SHIFT, key_events

WAIT_SECONDS = float(os.environ.get("BROWSER_WAIT_SECONDS") or 30)
_SLICE_MS = 2000  # a wait is asked again after this time, as a page that is left takes its answer along
_GONE = ("context", "navigated", "Cannot find", "Promise was collected")

# The first visible element that a selector, and a text if given, describes: its label, else its text, contains it.
_FIND = """
window.__find = (selector, text, all) => {
  const shown = (element) => element.getClientRects().length > 0;
  const words = (element) => (element.getAttribute("aria-label") || "") + " " + element.textContent;
  const found = [...document.querySelectorAll(selector)].filter(shown)
    .filter((element) => text === null || words(element).replace(/\\s+/g, " ").includes(text));
  return all ? found : found[0];
};
"""


class Point(NamedTuple):
    """A place in the window, in CSS pixels."""

    x: float
    y: float


class Violation(NamedTuple):
    """A finding of axe."""

    rule: str
    impact: str
    places: tuple[str, ...]


class Page:
    """A page of its own profile; `console`, `dialogs` and `requests` fill up while it is used."""

    def __init__(self, chromium: Chromium, session: str, context: str = "") -> None:
        self._chromium = chromium
        self._session = session
        self._context = context
        self.console: list[str] = []
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        chromium.listen(session, self._hear)
        for domain in ("Page", "Runtime", "Network", "Log", "Performance", "DOM"):
            self.ask(f"{domain}.enable")
        self.ask("Page.addScriptToEvaluateOnNewDocument", source=_FIND)
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)
        self.resize(1280, 800)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol to this page."""
        return self._chromium.ask(method, parameters, self._session)

    def _hear(self, method: str, about: dict[str, Any]) -> None:
        match method:
            case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning", "assert"):
                self.console.append(" ".join(str(each.get("value", each.get("description"))) for each in about["args"]))
            case "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                self.console.append(details.get("exception", {}).get("description") or details["text"])
            case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                self.console.append(f"{about['entry']['text']} {about['entry'].get('url', '')}".strip())
            case "Page.javascriptDialogOpening":
                self.dialogs.append(f"{about['type']}: {about['message']}")
                self._chromium.send("Page.handleJavaScriptDialog", {"accept": True}, self._session)
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Network.webSocketCreated" | "Network.webTransportCreated":
                self.requests.append(about["url"])
            case _:
                pass

    # Look

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        about = {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self.ask("Runtime.evaluate", **about)
        if details := answer.get("exceptionDetails"):
            raise AssertionError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def goto(self, url: str) -> None:
        """Open an address and wait until the document is loaded; a new fragment loads nothing."""
        failed = self.ask("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        blank = "true" if url == "about:blank" else "location.href !== 'about:blank'"
        self.wait_for(f"document.readyState === 'complete' && {blank}")

    def wait_for(self, condition: str, seconds: float = WAIT_SECONDS) -> Any:
        """Return the value of an expression as soon as it is true."""
        watched = f"""new Promise((resolve) => {{
          const end = performance.now() + {_SLICE_MS};
          const look = () => {{
            let value = null;
            try {{ value = {condition}; }} catch (error) {{ window.__why = String(error); }}
            if (value || performance.now() > end) resolve(value instanceof Node ? true : value || null);
            else setTimeout(look, 15);
          }};
          look();
        }})"""
        deadline = time.monotonic() + seconds
        while True:
            try:
                value = self.evaluate(watched)
            except ProtocolError as error:
                if not any(words in str(error) for words in _GONE):
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {condition}\n{self.describe()}")

    def see(self, selector: str, text: str | None = None) -> str:
        """Wait for a visible element, and return its text."""
        return self.wait_for(f"(e => e && (e.innerText || e.value || ' '))({_found(selector, text)})").strip()

    def wait_gone(self, selector: str, text: str | None = None) -> None:
        """Wait until no such element is visible."""
        self.wait_for(f"!{_found(selector, text)}")

    def wait_text(self, text: str, selector: str = "body") -> None:
        """Wait until the visible text of an element contains a text."""
        self.wait_for(f"document.querySelector({_js(selector)})?.innerText.includes({_js(text)})")

    def has(self, selector: str, text: str | None = None) -> bool:
        return bool(self.evaluate(f"!!{_found(selector, text)}"))

    def count(self, selector: str, text: str | None = None) -> int:
        return int(self.evaluate(f"{_found(selector, text, all_of_them=True)}.length"))

    def text(self, selector: str = "body") -> str:
        """Return the visible text of an element."""
        return self.evaluate(f"document.querySelector({_js(selector)})?.innerText ?? ''")

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of all elements of a selector."""
        return self.evaluate(f"[...document.querySelectorAll({_js(selector)})].map(e => e.innerText ?? e.textContent)")

    def attributes(self, selector: str, name: str) -> list[str | None]:
        return self.evaluate(f"[...document.querySelectorAll({_js(selector)})].map(e => e.getAttribute({_js(name)}))")

    @property
    def fragment(self) -> str:
        """The address inside the page."""
        return self.evaluate("location.hash")

    @property
    def focused(self) -> str:
        """A description of the element that has the focus: its tag, label or text, and value."""
        return self.evaluate(
            "(e => e ? e.tagName + ' ' + (e.getAttribute('aria-label') || e.innerText || e.id || '') : '')"
            "(document.activeElement)"
        )

    def describe(self) -> str:
        """Return the state of the page, for the message of a failed test."""
        words = self.evaluate("location.href + '\\n' + (document.body?.innerText ?? '').slice(0, 3000)")
        return f"{words}\nconsole: {self.console}\nlast error of a condition: {self.evaluate('window.__why')}"

    # Use

    def place(self, selector: str, text: str | None = None, at: tuple[float, float] = (0.5, 0.5)) -> Point:
        """Wait for an element, scroll it into view and return a point in it, its centre unless told otherwise."""
        self.see(selector, text)
        where = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}});"
            " return new Promise((done) => requestAnimationFrame(() => { const box = e.getBoundingClientRect();"
            f" const x = box.left + box.width * {at[0]}, y = box.top + box.height * {at[1]};"
            " const hit = document.elementFromPoint(x, y);"
            " done([x, y, !hit || hit === e || e.contains(hit) || hit.contains(e) || e.control === hit"
            " ? '' : hit.outerHTML.slice(0, 200)]); })); })"
            f"({_found(selector, text)})"
        )
        assert not where[2], f"{selector} {text or ''} is covered by {where[2]}"
        return Point(where[0], where[1])

    def middle(self, selector: str) -> Point:
        """Return the middle of an element that others may cover, such as a shape in a drawing."""
        return Point(
            *self.evaluate(
                "(box => [box.left + box.width / 2, box.top + box.height / 2])"
                f"(document.querySelector({_js(selector)}).getBoundingClientRect())"
            )
        )

    def click(self, selector: str, text: str | None = None, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """Click an element with the mouse."""
        self.mouse_at(self.place(selector, text, at))

    def mouse_at(self, point: Point, *, shift: bool = False) -> None:
        """Click at a point."""
        self._mouse("mouseMoved", point)
        self._mouse("mousePressed", point, down=True, shift=shift)
        self._mouse("mouseReleased", point, shift=shift)

    def hover_at(self, point: Point) -> None:
        """Move the mouse to a point."""
        self._mouse("mouseMoved", Point(point.x - 1, point.y))
        self._mouse("mouseMoved", point)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Drag along an element, from one share of its width to another."""
        self.drag_between(self.place(selector, at=(start, 0.5)), self.place(selector, at=(end, 0.5)))

    def drag_between(self, first: Point, last: Point) -> None:
        """Drag from a point to another."""
        self._mouse("mouseMoved", first)
        self._mouse("mousePressed", first, down=True)
        for step in range(1, 6):
            self._mouse("mouseMoved", Point(first.x + (last.x - first.x) * step / 5, first.y), down=True)
        self._mouse("mouseReleased", last)

    def scroll(self, selector: str, pixels: float) -> None:
        """Turn the mouse wheel over an element."""
        point = self.place(selector)
        self.ask("Input.dispatchMouseEvent", type="mouseWheel", x=point.x, y=point.y, deltaX=0, deltaY=pixels)

    def _mouse(self, kind: str, point: Point, *, down: bool = False, shift: bool = False) -> None:
        button = "none" if kind == "mouseMoved" and not down else "left"
        about = {"button": button, "buttons": int(down), "modifiers": SHIFT if shift else 0}
        clicks = 0 if kind == "mouseMoved" else 1
        self.ask("Input.dispatchMouseEvent", type=kind, x=point.x, y=point.y, clickCount=clicks, **about)

    def allow(self, *permissions: str) -> None:
        """Grant permissions for which people are asked, such as clipboardReadWrite."""
        self._chromium.ask("Browser.grantPermissions", {"permissions": permissions, "browserContextId": self._context})

    def press(self, *keys: str) -> None:
        """Press keys one after the other: "j", "Enter", "ArrowLeft", "Shift+Tab"."""
        for key in keys:
            for event in key_events(key):
                self.ask("Input.dispatchKeyEvent", **event)

    def write(self, text: str) -> None:
        """Press the keys of a text."""
        self.press(*text)

    def focus(self, selector: str, text: str | None = None) -> None:
        """Press Tab until an element has the focus."""
        self.see(selector, text)
        self.evaluate("document.activeElement?.blur()")
        passed: list[str] = []
        for _ in range(400):
            self.press("Tab")
            if self.evaluate(f"{_found(selector, text, all_of_them=True)}.includes(document.activeElement)"):
                return
            passed.append(self.focused)
        raise AssertionError(f"Tab never reaches {selector} {text or ''}: {passed[:60]}")

    # Appearance

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        scale = 2 if mobile else 1
        about = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.ask("Emulation.setDeviceMetricsOverride", **about)

    def prefer(self, *, dark: bool = False, reduced_motion: bool = False) -> None:
        """Set what the user prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme, motion])

    def screenshot(self, path: Path) -> None:
        """Write a picture of the window."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def metrics(self) -> dict[str, float]:
        """Return the counters of the page: Nodes, ScriptDuration, JSHeapUsedSize …"""
        return {each["name"]: each["value"] for each in self.ask("Performance.getMetrics")["metrics"]}

    def violations(self, source: Callable[[], str]) -> list[Violation]:
        """Return what axe finds; `source` is asked once per document."""
        if not self.evaluate("!!window.axe"):
            self.evaluate(source() + "; true")
        found = self.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations.map((each) => ({"
            "rule: each.id + ': ' + each.help, impact: each.impact || '', places: each.nodes.map((node) => "
            "node.html.slice(0, 160) + ' ' + node.any.map((check) => check.message).join(' '))})))"
        )
        return [Violation(each["rule"], each["impact"], tuple(each["places"])) for each in found]


@contextmanager
def open_page(chromium: Chromium) -> Generator[Page]:
    """Open an empty page with no cookies of others, and close it at the end."""
    context = chromium.ask("Target.createBrowserContext")["browserContextId"]
    target = chromium.ask("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
    session = chromium.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
    try:
        yield Page(chromium, session, context)
    finally:
        chromium.forget(session)
        chromium.ask("Target.disposeBrowserContext", {"browserContextId": context})


def _found(selector: str, text: str | None, *, all_of_them: bool = False) -> str:
    return f"window.__find({_js(selector)}, {_js(text)}, {_js(all_of_them)})"


def _js(value: object) -> str:
    return json.dumps(value)
