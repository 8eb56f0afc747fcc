"""One HTML file about a session: everything inside, nothing loaded, and the same answers as the server gives."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, cast

import msgspec
import pytest

import daypack
from daypack.errors import SessionMissing
from daypack.serve.page import export
from daypack.serve.page.export import export_session, key_of
from daypack.serve.page.views import registry
from daypack.serve.page.views.asked import Asked, Viewer
from daypack.serve.page.views.opened import OpenedHome

PLACE = {"agent": "default", "session": "work"}
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
LONG = "Line of a long answer, which the page cuts.\n" * 200


@pytest.fixture
def opened(home: str) -> Iterator[OpenedHome]:
    """A session of three calls with a long answer, a secret and things that do not fit."""
    with daypack.open_session("work", home=home, durability="os", model="gpt-4o") as session:
        session.pin("rules", "Be brief.")
        session.append("user", f"</script><script>alert(1)</script> My key is {SECRET}, what is in a.py?")
        session.prepare(budget=6_000)
        session.append("assistant", LONG)
        for number in range(40):
            session.append("user", f"Question {number}: {'why is the build slow ' * 30}")
            session.append("assistant", f"Answer {number}: {'because of the tests ' * 30}")
        session.append("user", "And now?")
        session.prepare(budget=6_000)
        session.append("assistant", "Done.")
        session.append("user", "Thanks, go on.")
        session.prepare(budget=6_000)
    with daypack.open_session("other", home=home, durability="os") as session:
        session.append("user", "words of another session")
    page = OpenedHome(home, None, None)
    yield page
    page.close()


def read(data: bytes) -> dict[str, Any]:
    """Return the answers in a file, with the shared values put back as the page does."""
    [packed] = re.findall(rb'<script type="application/json" id="daypack-export">([A-Za-z0-9+/=]+)</script>', data)
    content = json.loads(gzip.decompress(b64decode(packed)))

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(part) for part in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, Any]", value)
        if list(fields) == ["$"]:
            return content["texts"][fields["$"]]
        return {name: walk(part) for name, part in fields.items()}

    return {key: walk(answer) for key, answer in content["answers"].items()}


def test_the_file_has_the_answers_of_the_server(opened: OpenedHome) -> None:
    data, contents = export_session(opened, "default", "work")
    answers = read(data)
    asked: dict[str, int] = {}
    for key, answer in answers.items():
        view, _, query = key.partition("?")
        asked[view] = asked.get(view, 0) + 1
        if view in ("start", "sessions"):
            continue
        arguments = dict(pair.split("=") for pair in query.split("&"))
        live = registry.show(opened, Asked(view, arguments, Viewer("local", owner=True, writes=True)))
        assert answer == msgspec.json.decode(msgspec.json.encode(live)), key
    calls = answers[key_of("session", PLACE)]["calls"]
    assert (asked["call"], contents.calls, contents.of_calls) == (3, 3, len(calls))
    assert asked["diff"] == 4  # each under the name of the call before, and as "the call before"
    assert (asked["messages"], contents.messages, contents.unreadable) == (1, contents.of_messages, 0)
    assert asked["message"] >= 1
    assert asked["recall"] >= 1
    assert {"compactions", "children", "tiers"} <= asked.keys()
    assert (asked["request"], contents.requests) == (9, 3)  # in three dialects


def test_the_page_in_the_file_is_read_only_and_knows_this_session_only(opened: OpenedHome) -> None:
    data, _ = export_session(opened, "default", "work")
    answers = read(data)
    start = answers["start?"]
    assert (start["writes"], start["write_token"], start["home"]) == (False, None, "")
    assert start["session"] == ["default", "work"]
    assert start["exported_at"].endswith("Z")
    [row] = answers["sessions?"]["sessions"]
    assert (row["session"], row["calls"]) == ("work", 3)
    assert "words of another session" not in json.dumps(answers)
    assert opened.home.root not in json.dumps(answers)


def test_the_file_loads_nothing_and_runs_only_the_script_of_its_policy(opened: OpenedHome) -> None:
    text = export_session(opened, "default", "work")[0].decode()
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert "connect-src" not in rules
    assert (rules["require-trusted-types-for"], rules["trusted-types"]) == (["'script'"], ["'none'"])
    [script] = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for name, inside in (("script-src", script), ("style-src", style)):
        assert rules[name] == [f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"]
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert (text.count("<script"), text.count("</script>")) == (2, 2)  # a title with a tag adds none
    assert "alert(1)&lt;/script&gt;" in text
    outside = re.sub(r'<link rel="icon" href="data:[^"]*">', "", text.replace(script, "").replace(style, ""))
    assert not re.search(r"(?:src|href|action)=|url\(|@import|<(?:iframe|object|embed|link|base|form)\b", outside)
    assert not re.search(r"url\((?!['\"]?(?:data:|#))|@import", style)


def test_the_file_contains_the_licences_of_what_it_passes_on(opened: OpenedHome) -> None:
    text = export_session(opened, "default", "work")[0].decode()
    [comment] = re.findall(r"</html>\s*<!--(.*)-->\s*$", text, re.DOTALL)
    assert "Permission is hereby granted, free of charge" in comment
    assert "Apache License" in comment
    assert "-->" not in comment


def test_a_secret_is_not_in_the_file(opened: OpenedHome) -> None:
    data, _ = export_session(opened, "default", "work")
    assert SECRET not in json.dumps(read(data))
    assert SECRET not in data.decode()


def test_fewer_calls_are_the_newest(opened: OpenedHome) -> None:
    data, contents = export_session(opened, "default", "work", 1)
    answers = read(data)
    strip = answers[key_of("session", PLACE)]
    newest = strip["calls"][-1][strip["columns"].index("event")]
    assert [key for key in answers if key.startswith("call?")] == [key_of("call", PLACE | {"event": newest})]
    assert (contents.calls, contents.of_calls) == (1, 3)
    assert (answers["start?"]["calls"], answers["start?"]["total_calls"]) == (1, 3)


def test_raw_requests_are_those_of_the_newest_calls_that_there_is_room_for(
    opened: OpenedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_REQUEST_CHARS", 1)
    data, contents = export_session(opened, "default", "work")
    answers = read(data)
    strip = answers[key_of("session", PLACE)]
    newest = strip["calls"][-1][strip["columns"].index("event")]
    assert contents.requests == 1
    assert {key for key in answers if key.startswith("request?")} == {
        key_of("request", PLACE | {"event": newest, "dialect": dialect})
        for dialect in ("openai", "responses", "anthropic")
    }


def test_of_a_very_long_history_the_newest_blocks_are_in_the_file(
    opened: OpenedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BLOCK", 20)
    monkeypatch.setattr(export, "MESSAGES", 30)
    data, contents = export_session(opened, "default", "work")
    starts = {key.partition("start=")[2] for key in read(data) if key.startswith("messages?")}
    total = contents.of_messages
    assert starts == {str(start) for start in range((total - 30) // 20 * 20 + 1, total + 1, 20)}
    assert contents.messages == total - (total - 30) // 20 * 20
    everything = export_session(opened, "default", "work", 0)[1]
    assert everything.messages == total


def test_repeated_values_are_stored_once(opened: OpenedHome) -> None:
    data, _ = export_session(opened, "default", "work")
    [packed] = re.findall(rb'id="daypack-export">([^<]+)<', data)
    plain = gzip.decompress(b64decode(packed)).decode()
    assert plain.count("Question 39: why") < json.dumps(read(data)).count("Question 39: why")


def test_data_that_looks_like_a_shared_value_stays_what_it_is() -> None:
    answers: dict[str, Any] = {"a?": {"rows": [{"$": 0}, {"x": {"$": 7}}], "text": "t" * 80, "same": "t" * 80}}
    packed = export.pack(answers)
    assert read(b'<script type="application/json" id="daypack-export">%s</script>' % packed.encode()) == answers


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({}, "call?"),
        ({"session": "a b", "agent": "x/y"}, "call?agent=x%2Fy&session=a%20b"),
        ({"q": "é'()*!~-_.&=+\u65e5"}, "call?q=%C3%A9'()*!~-_.%26%3D%2B%E6%97%A5"),  # as encodeURIComponent writes it
    ],
)
def test_keys_are_those_of_the_page(arguments: dict[str, str], key: str) -> None:
    assert key_of("call", arguments) == key


def test_an_unknown_session_is_refused(opened: OpenedHome) -> None:
    with pytest.raises(SessionMissing):
        export_session(opened, "default", "nothing")
