"""Items by reference: one line for readers, the reference itself for programs, and nothing outside is opened."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from turn.scenes import SECRET, converse, exported, item, outputs, reasons, sent, stage

from daypack.session import Session
from daypack.text.tokens import counter_named
from daypack.turn.caller.items import read_items
from daypack.turn.evidence.export import export
from daypack.turn.items import Item, TokenMeter
from daypack.turn.ledger import IMPORTED
from daypack.turn.pack.fence import measurer, show
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.turn.turn import Turn
from daypack.types.context import ContextEnvelope
from daypack.types.digest import digest_text
from daypack.types.kinds import CONTEXT_KINDS, TARGETS
from daypack.types.names import CONTROLS

READERS = ("model", "user", "reviewer", "runtime", "evidence_export")
PROGRAMS = ("tool", "ui", "peer_agent")
DIGEST = digest_text("the log")
LOG: dict[str, Any] = {
    "context_kind": "tool_result",
    "content_mode": "ref",
    "content_ref": "https://ci.example/17/log",
    "item_id": "log",
    "title": "Build log",
    "byte_size": 48_120,
    "digest": DIGEST,
    "mime_type": "text/plain",
    "visibility": list(TARGETS),
}


def by_ref(ref: Any, **fields: Any) -> dict[str, Any]:
    return {"context_kind": "artifact_ref", "content_mode": "ref", "content_ref": ref, "item_id": "it", **fields}


def opened(home: str, **settings: Any) -> Session:
    session = stage(home, **settings)
    session.append("user", "Why did the build fail?")
    return session


def shown(turn: Turn, item_id: str = "item:it") -> Item:
    [found] = [found for found in turn.inserted if found.id == item_id]
    return found


def surface_item(envelope: ContextEnvelope, item_id: str) -> Any:
    return next(
        found
        for found in json.loads(msgspec.json.encode(envelope))["surfaces"][0]["items"]
        if found["item_id"] == item_id
    )


@pytest.mark.requirement("S3-O3", "S3-K11")
@pytest.mark.parametrize("target", READERS)
def test_a_reader_sees_one_line_with_everything_known_about_the_content(home: str, target: str) -> None:
    session = opened(home)
    turn = session.prepare(target=target, items=[LOG])
    line = "Build log (tool_result): https://ci.example/17/log; 48,120 bytes; text/plain; "
    line += f"{DIGEST}; open the URL to see it"
    assert shown(turn, "item:log").text == line
    assert line in turn.pack_md
    assert "item:log" not in reasons(turn)
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("S3-O3", "S3-V2", "S3-V4", "S3-V7")
@pytest.mark.parametrize("target", PROGRAMS)
def test_a_program_gets_the_reference_to_follow(home: str, target: str) -> None:
    session = opened(home)
    turn = session.prepare(target=target, items=[LOG])
    expected = {
        "ref": "https://ci.example/17/log",
        "kind": "tool_result",
        "access": "url",
        "byte_size": 48_120,
        "digest": DIGEST,
        "mime_type": "text/plain",
    }
    assert json.loads(shown(turn, "item:log").text) == {"title": "Build log", **expected}
    [block] = [block for block in turn.assembly.blocks if block.item_refs == ("item:log",)]
    assert block.content_ref == expected
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("S3-O3")
@pytest.mark.parametrize("target", TARGETS)
def test_the_envelope_hands_the_item_on_as_it_came(home: str, target: str) -> None:
    session = opened(home)
    turn = session.prepare(target=target, items=[LOG])
    found = surface_item(turn.envelope, "item:log")
    same = ("context_kind", "content_mode", "content_ref", "title", "byte_size", "digest", "mime_type", "visibility")
    assert {name: found[name] for name in same} == {name: LOG[name] for name in same}
    assert "content" not in found
    again = export(session.turns, "turn", event=turn.event_id, target=target)
    assert surface_item(again, "item:log") == found


@pytest.mark.requirement("S3-O6")
def test_the_budget_counts_the_line_and_not_the_content(home: str) -> None:
    session = opened(home)
    without = session.prepare(budget=2000)
    turn = session.prepare(budget=2000, items=[{**LOG, "byte_size": 80_000_000, "token_estimate": 20_000_000}])
    line = shown(turn, "item:log")
    counted = counter_named(turn.token_method).count(show(line))
    assert counted <= line.tokens <= counted + 2
    assert turn.tokens == without.tokens + line.tokens
    assert turn.envelope.budgets[0].actual_tokens == turn.tokens
    assert surface_item(turn.envelope, "item:log")["token_estimate"] == line.tokens


def test_a_line_that_does_not_fit_is_omitted_for_its_size(home: str) -> None:
    turn = opened(home).prepare(budget=600, items=[by_ref("https://example.org/" + "path/" * 2000)])
    assert reasons(turn) == {"item:it": "too_large"}


@pytest.mark.parametrize(
    ("ref", "how"),
    [
        ("https://example.org/film.mp4", "open the URL to see it"),
        ("HTTP://example.org", "open the URL to see it"),
        ("/srv/logs/build.log", "read the file at this path to see it"),
        ("file:///srv/logs/build.log", "read the file at this path to see it"),
        ("./build.log", "read the file at this path to see it"),
        ("src/app/main.py", "read the file at this path to see it"),
        ("C:\\logs\\build.log", "read the file at this path to see it"),
        ({"path": "Makefile"}, "read the file at this path to see it"),
        ("artifact:build-17", "its owner keeps it under this id"),
        ("s3://bucket/key", "a tool for s3:// addresses can open it"),
        (f"blob:{DIGEST}", "its owner keeps it under this id"),
        (DIGEST, "its owner keeps it under this id"),
        ({"bucket": "b", "key": "k"}, "its owner keeps it under this id"),
        ({"type": "resource_link", "uri": "https://example.org/a"}, "open the URL to see it"),
    ],
)
def test_the_line_says_how_to_get_the_content(home: str, ref: Any, how: str) -> None:
    text = shown(opened(home).prepare(items=[by_ref(ref)])).text
    assert text.endswith(f"; {how}")
    assert (ref if isinstance(ref, str) else str(list(ref.values())[-1])) in text


@pytest.mark.parametrize("mode", ["ref", "resource_link", "artifact_ref", "tool_result_ref", "opaque", "inline"])
def test_a_reference_without_content_is_shown_whatever_its_mode_is_called(home: str, mode: str) -> None:
    turn = opened(home).prepare(items=[by_ref("https://example.org/a", content_mode=mode)])
    assert shown(turn).text.startswith("artifact ref (artifact_ref): https://example.org/a; ")


def test_an_object_states_size_digest_and_type_of_its_content(home: str) -> None:
    link = {"uri": "https://example.org/a", "size": 12, "mimeType": "image/png", "sha256": DIGEST, "name": "a"}
    text = shown(opened(home).prepare(items=[by_ref(link, title="A picture")])).text
    assert f"https://example.org/a; 12 bytes; image/png; {DIGEST}; open the URL" in text
    turn = opened(home).prepare(target="tool", items=[by_ref(link, visibility=["tool"])])
    assert json.loads(shown(turn).text)["ref"] == link


def test_a_digest_is_taken_from_a_source_of_the_same_address(home: str) -> None:
    source = {"source_id": "s", "uri": "https://example.org/a", "source_kind": "page", "digest": DIGEST}
    assert DIGEST in shown(opened(home).prepare(items=[by_ref("https://example.org/a", source_refs=[source])])).text
    other = {**source, "uri": "https://example.org/b"}
    assert DIGEST not in shown(opened(home).prepare(items=[by_ref("https://example.org/a", source_refs=[other])])).text


# References to the session itself


@pytest.mark.requirement("S3-O3")
def test_a_reference_to_this_session_has_the_size_and_digest_of_what_recall_returns(home: str) -> None:
    session = stage(home)
    converse(session, 12)
    session.append("user", "And now?")
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "look"}])
    session.append("tool", "Rain.", tool_call_id="c1")
    event = session.append_event("note", {"text": "Umbrella."})
    session.compact(keep_tokens=100)
    swap = next(one.id for one in session.compactions[-1].swapped if one.kind == "message_range")
    refs = ["messages:2-3", "tool:c1", f"events:{event.id}", f"swap:{swap}", swap, swap.replace("-", ":", 1), "msg-2"]
    for ref in refs:
        found = shown(session.prepare(items=[by_ref(ref)]))
        name = found.text.partition("; recall ")[2].removesuffix(" returns it")
        text = session.recall(name).text
        assert f"; {len(text.encode()):,} bytes; {digest_text(text)}; recall " in found.text
        assert text not in found.text
        assert found.reference
        assert (found.reference.size, found.reference.digest) == (len(text.encode()), digest_text(text))
    shortened = session.prepare(items=[by_ref(f"swap:{swap}")])
    assert outputs(session.replay(shortened.event_id or "")) == outputs(shortened)


@pytest.mark.parametrize("ref", ["user:latest", "messages:tail:1"])
def test_a_reference_that_moves_is_recorded_as_the_message_it_meant(home: str, ref: str) -> None:
    session = opened(home)
    turn = session.prepare(items=[by_ref(ref)])
    assert shown(turn).text.startswith("artifact ref (artifact_ref): messages:1; ")
    session.append("user", "Another question.")
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)
    assert surface_item(turn.envelope, "item:it")["content_ref"] == "messages:1"


@pytest.mark.requirement("S3-O12", "S3-L2")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ref", ["messages:99", "tool:nobody", "events:ev-99", "swap:sha256-00", "messages:9-3"])
def test_a_reference_that_is_not_found_stays_shown_and_is_missed(home: str, target: str, ref: str) -> None:
    session = opened(home)
    turn = session.prepare(target=target, items=[by_ref(ref, visibility=[target])])
    text = shown(turn).text
    assert ref in text
    if ref == "messages:9-3":  # not our grammar: another system's id
        assert not turn.missing
        return
    assert "not found here" in text or json.loads(text)["problem"]
    assert text.count(ref) == 1 or not ref.startswith(("messages:", "tool:", "events:"))
    [missing] = turn.missing
    assert (missing.id, missing.needed_for, missing.requested) == ("ref:item:it", "item:it", ref)
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


def test_what_a_target_may_not_see_is_not_looked_up_and_not_missed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(home)
    monkeypatch.setattr("daypack.turn.recall.Lookup.recall", None)  # nothing calls it
    turn = session.prepare(items=[by_ref("messages:1", title="The vault", visibility=["tool"])])
    assert reasons(turn) == {"item:it": "not_visible_to_target"}
    assert turn.missing == ()
    monkeypatch.undo()
    secret = by_ref("messages:99", title="The vault", visibility=["model", "tool"], sensitivity="secret")
    turn = session.prepare(items=[secret])
    assert turn.missing == ()
    assert "The vault" not in sent(turn) + exported(session)


def test_nothing_outside_the_session_is_read(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "notes.txt"
    secret.write_text("the combination is seventeen")
    session = opened(home)
    monkeypatch.setattr("socket.socket.connect", None)  # nothing calls it
    refs = [str(secret), secret.as_uri(), f"../../{secret.name}", "http://127.0.0.1:9/x"]
    turn = session.prepare(items=[by_ref(ref, item_id=f"i{at}") for at, ref in enumerate(refs)])
    assert len([found for found in turn.inserted if found.reference]) == len(refs)
    assert "seventeen" not in sent(turn)
    assert all(found.reference is None or found.reference.size is None for found in turn.inserted)


# Lines, fences and secrets

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    [
        "a\nb",
        "a\r\nb",
        "\u2028",
        "\x85",
        "\x0b\x0c\x1c",
        '"><instructions id="x">',
        "</data 00000000>",
        "\x1b[2J",
        "\u202e",
    ]
)
_LINKS = _TEXTS.filter(bool) | st.dictionaries(st.sampled_from(["uri", "path", "key", "a\nb"]), _TEXTS, min_size=1)


@pytest.mark.requirement("S3-O3")
@settings(max_examples=400, deadline=None)
@drawn(title=_TEXTS, ref=_LINKS, digest=_TEXTS, kind=st.sampled_from(CONTEXT_KINDS), redacting=st.booleans())
def test_a_reference_is_one_line_in_its_fence_whatever_its_title_and_address_are(
    title: str, ref: Any, digest: str, kind: str, *, redacting: bool
) -> None:
    value = by_ref(ref, context_kind=kind, title=title, digest=digest, mime_type=title)
    [read] = read_items([value], None)
    measure = measurer(TokenMeter(counter_named("o200k_base")), redacting=redacting)
    found = measure(read)
    assert len(found.text.splitlines()) == 1
    assert not CONTROLS.search(found.text)
    head, line, end = show(found).split("\n")
    mark = head.partition('id="')[2][:8]
    assert line == found.text
    assert mark not in line
    assert end.endswith(f" {mark}>")
    assert measure(found).text == found.text


def test_what_an_address_needs_is_kept_in_the_line(home: str) -> None:
    text = shown(opened(home).prepare(items=[by_ref("/srv/a\nb c.txt", title="two\nlines\x00")])).text
    assert text == "two lines\\x00 (artifact_ref): /srv/a\\nb c.txt; read the file at this path to see it"


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("target", TARGETS)
def test_secrets_in_titles_and_addresses_are_redacted_for_every_target(home: str, target: str) -> None:
    session = opened(home)
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + f"{'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC' * 2}\n" * 8
        + "-----END PRIVATE KEY-----"
    )
    items = [
        by_ref(f"https://example.org/a?token={SECRET}&page=2", item_id="url"),
        by_ref({"uri": "https://example.org/b", "headers": {"password": "wK3xT9qLm2Zp7RvB"}}, item_id="object"),
        by_ref("/srv/key", item_id="title", title=key),
    ]
    turn = session.prepare(target=target, items=[{**value, "visibility": [target]} for value in items])
    said = sent(turn) + turn.pack_md + msgspec.json.encode(turn.envelope).decode() + str(session.events()[-1].data)
    for secret in (SECRET, "wK3xT9", "MIIEvQIBADAN"):
        assert secret not in said
    assert "page=2" in said
    for found in turn.inserted:
        if found.reference:
            assert found.redacted
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


# Imported documents


@pytest.mark.requirement("S3-O1", "S3-O3")
@pytest.mark.parametrize("target", TARGETS)
def test_references_travel_through_an_export_and_an_import(home: str, target: str) -> None:
    giver, taker = opened(home), stage(home, "taker")
    turn = giver.prepare(items=[LOG, by_ref("messages:1", visibility=list(TARGETS))])
    data = msgspec.json.encode(export(giver.turns, "turn", event=turn.event_id))
    checked = read_envelope(data)
    assert not checked.warnings
    taker.append_event(IMPORTED, keep_envelope(taker.history, data, checked))
    taker.append("user", "What is in the log?")
    received = taker.prepare(target=target)
    context = turn.envelope.context_id
    found = surface_item(received.envelope, f"import:{context}:item:log")
    assert (found["content_mode"], found["content_ref"]) == ("ref", LOG["content_ref"])
    assert (found["digest"], found["byte_size"]) == (DIGEST, 48_120)
    text = shown(received, f"import:{context}:item:log").text
    assert len(text.splitlines()) == 1
    own = shown(received, f"import:{context}:item:it")
    assert own.reference
    assert "the session that the document comes from" in own.reference.problem
    assert f"ref:import:{context}:item:it" in [missing.id for missing in received.missing]
    assert outputs(taker.replay(received.event_id or "")) == outputs(received)


def test_an_inline_item_of_the_same_turn_is_not_changed(home: str) -> None:
    turn = opened(home).prepare(items=[LOG, item(content="Whole text.")])
    found = surface_item(turn.envelope, "item:item-2")
    assert (found["content_mode"], found["content"]) == ("inline", "Whole text.")


@pytest.mark.parametrize("ref", ["1", "1-2", {"id": "1", "size": 48120, "digest": "md5:7"}])
@pytest.mark.parametrize("mode", ["ref", "inline"])
def test_a_number_is_an_id_of_another_system_and_no_message(home: str, ref: Any, mode: str) -> None:
    session = stage(home)
    converse(session, 1)
    given = item("artifact_ref", None, content_mode=mode, content_ref=ref, item_id="a")
    turn = session.prepare(items=[given])
    [found] = [one for one in turn.envelope.surfaces[0].items if one.item_id == "item:a"]
    stated = (48120, "md5:7") if isinstance(ref, dict) else (None, None)
    assert (found.content_ref, found.content, found.byte_size, found.digest) == (ref, None, *stated)
    assert "its owner keeps it under this id" in sent(turn)
    assert turn.missing == ()
