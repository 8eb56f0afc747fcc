"""A call on the page: its items as sent, why each is there, what was left out, and the request."""

import json
from pathlib import Path

import msgspec
import pytest
from recorded_requests import ROW_TYPES, comparable, import_recording, load_recording, observed_turns
from serve.page.views.looking import OTHER, look
from serve.page.views.sessions import HERE, printed, repeating, truth, working
from turn.compacting import fill
from turn.scenes import MARKER, SECRET, converse, item, stage

import daypack
from daypack.errors import AccessDenied, BadInput, NotFound, SessionMissing, SourceMissing
from daypack.history.home import find_home
from daypack.importers.import_file import Destination, import_file
from daypack.serve.page.calls.kept import kept_of
from daypack.serve.page.views.opened import OpenedHome
from daypack.turn.dialects import NAMES
from daypack.turn.evidence.explain import explain_all, explain_item
from daypack.turn.items import Excerpt
from daypack.turn.pack.additions import interleave
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

NOTES = {"agent": "default", "session": "notes"}


# Turns of daypack


def test_items_are_in_the_order_sent(page: OpenedHome, home: str) -> None:
    _, turn = working(home)
    shown = look(page, "call", **HERE, event=turn.event_id)
    prefix = sorted(turn.parts.epoch.prefix, key=lambda found: not found.instructs)
    sent = interleave(turn.parts.messages, turn.parts.additions)
    ids = [found["id"] for found in shown["items"]]
    assert ids[: len(prefix) + 1] == ["tools", *(found.id for found in prefix)]
    assert [found["part"] for found in shown["items"]] == sorted(
        (found["part"] for found in shown["items"]), key=("prefix", "tail", "volatile").index
    )
    tail = [found for found in shown["items"] if found["part"] == "tail"]
    in_order = [text for message in sent for text in (message.text,)]
    at = 0
    for found in tail:
        while at < len(in_order) and found["text"] not in in_order[at]:
            at += 1
        assert at < len(in_order), found["id"]
    assert [found["ref"] for found in tail if found["role"]] == [f"messages:{m.seq}" for m in turn.parts.messages]


def test_each_item_has_its_source_tokens_and_readers(page: OpenedHome, home: str) -> None:
    _, turn = working(home)
    shown = look(page, "call", **HERE, event=turn.event_id)
    items = {found["id"]: found for found in shown["items"]}
    for inserted in turn.inserted:
        found = items[inserted.id]
        assert (found["tokens"], found["authority"]) == (inserted.tokens, inserted.authority)
        assert found["visible_to"] == list(inserted.visibility)
        assert (found["source"], found["score"]) == (inserted.source, inserted.score)
        assert found["text"] == inserted.text
        assert found["why"] == explain_item(turn, inserted.id).why
        if isinstance(inserted, Excerpt):
            assert (found["ref"], found["category"]) == (f"messages:{inserted.seq}", "recalled")
    assert (items["pin:rules.md"]["category"], items["pin:rules.md"]["title"]) == ("pins", "rules.md")
    assert items["context_doc"]["category"] == "summary"
    assert items["tools"]["tokens"] == turn.record.tools.tokens  # type: ignore[union-attr]
    assert "read_file" in items["tools"]["text"]
    newest = items[f"messages:{turn.record.user}"]
    assert (newest["category"], newest["authority"], newest["role"], newest["title"]) == (
        "tail",
        "user",
        "user",
        "user",
    )
    assert newest["why"] == explain_item(turn, f"messages:{turn.record.user}").why
    assert "tool" not in newest["visible_to"]
    around = turn.tokens - sum(found["tokens"] for found in shown["items"])
    assert 0 <= around < 200  # text around what is quoted
    called = [found for found in shown["items"] if found["calls"]]
    assert called[0]["calls"][0]["name"] == "read_file"


def test_stubs_are_marked(page: OpenedHome, home: str) -> None:
    _, turn = working(home)
    items = look(page, "call", **HERE, event=turn.event_id)["items"]
    stubbed = [f"messages:{m.seq}" for m in turn.parts.messages if m.seq in turn.parts.epoch.stubbed]
    assert stubbed
    assert [found["id"] for found in items if found["stub"]] == stubbed
    assert all("recall returns it" in found["text"] for found in items if found["stub"])


def test_an_output_that_repeats_another_is_marked(page: OpenedHome, home: str) -> None:
    _, turn = repeating(home)
    assert turn.parts.repeats == {6: 3}
    shown = look(page, "call", **HERE, event=turn.event_id)
    [repeated] = [found for found in shown["items"] if found["stub"]]
    assert (repeated["id"], repeated["title"]) == ("messages:6", "result of read_file")
    assert "messages:3" in repeated["why"]
    [omission] = shown["omitted"]
    assert (omission["reason"], omission["read"]) == ("duplicate", "tool:again1")
    assert look(page, "recall", **HERE, id="tool:again1")["text"].startswith("the lamp 0 of the log")


def test_what_was_left_out_is_what_explain_prints_and_can_be_read(
    page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session, turn = working(home)
    shown = look(page, "call", **HERE, event=turn.event_id)
    explained = printed(capsys, home, "explain", "work", "--event", turn.event_id or "")
    fields = {"item": "item_ref", "tokens": "token_estimate", "swap": "swap_ref"}
    names = (*fields, "reason", "note", "high_impact", "shortage")
    found = [{fields.get(name, name): row[name] for name in names if row[name]} for row in shown["omitted"]]
    assert found == [{name: value for name, value in row.items() if value} for row in explained["omitted"]]
    assert {"superseded_by_summary", "too_large"} <= {row["reason"] for row in shown["omitted"]}
    assert all(row["words"] or row["note"] for row in shown["omitted"])
    readable = [row["read"] for row in shown["omitted"] if row["read"]]
    assert readable
    for name in readable:
        assert look(page, "recall", **HERE, id=name)["text"][:2000] == session.recall(name)[:2000]
    omitted = [row.item for row in explain_all(turn) if row.state == "omitted"]
    assert omitted == [row["item"] for row in shown["omitted"]]
    assert shown["missing"] == [
        {"id": gap["id"], "question": gap["question"], "severity": gap.get("severity", "medium")}
        for gap in explained["missing"]
    ]


def test_a_call_has_its_facts_and_neighbours(page: OpenedHome, home: str) -> None:
    session, turn = working(home)
    events = [event.id for event in session.events() if event.type == "context.turn"]
    shown = look(page, "call", **HERE, event=turn.event_id)
    assert (shown["kind"], shown["content"], shown["target"]) == ("prepared", "recorded", "model")
    assert (shown["verified"], shown["problem"]) == (True, None)
    assert (shown["tokens"], shown["budget_tokens"]) == (turn.tokens, 6000)
    assert shown["reserved_tokens"] == turn.record.limits.reserved_tokens
    assert (shown["previous"], shown["next"]) == (events[-2], None)
    assert shown["cache"]["expected"] == turn.expected_cached_tokens
    assert (shown["cache"]["input"], shown["cache"]["output"]) == (4000, 5)
    assert shown["reply"] == session.messages()[-1].seq
    assert shown["headline"] == turn.explain().splitlines()[0]
    assert shown["dialects"] == list(NAMES)
    assert 0 < shown["added_tokens"] < turn.tokens
    first = look(page, "call", **HERE, event=events[0])
    assert (first["new_epoch"], first["previous"], first["next"]) == ("first turn", None, events[1])
    assert first["epoch"] == events[0]


def test_a_target_other_than_the_model_has_its_own_pack(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief.")
    session.append("system", "Only for the model.")
    session.append("user", "List the lamps")
    session.prepare()
    turn = session.prepare(target="user")
    shown = look(page, "call", **HERE, event=turn.event_id)
    assert (shown["target"], shown["verified"], shown["previous"]) == ("user", True, None)
    assert [found["role"] for found in shown["items"] if found["role"]] == ["user"]
    tool = session.prepare(target="tool", items=[item(content="for a tool", visibility=["tool"])])
    shown = look(page, "call", **HERE, event=tool.event_id)
    assert [(found["text"], found["visible_to"]) for found in shown["items"]] == [("for a tool", ["tool"])]


def test_a_long_text_is_cut_and_its_item_is_whole(page: OpenedHome, home: str) -> None:
    session = stage(home)
    text = "begin " + "x\x00\x1b[31m\u202e" * 4000 + " end"
    session.append("user", text)
    turn = session.prepare(budget=200_000)
    [found] = look(page, "call", **HERE, event=turn.event_id)["items"]
    assert (found["text"], found["chars"]) == (text[:4000], len(text))
    assert look(page, "item", **HERE, event=turn.event_id, item="messages:1") == {"id": "messages:1", "text": text}
    with pytest.raises(NotFound, match="has no item") as refused:
        look(page, "item", **HERE, event=turn.event_id, item="messages:2")
    assert refused.value.hint


@pytest.mark.parametrize("dialect", NAMES)
def test_the_request_is_what_the_turn_sends(page: OpenedHome, home: str, dialect: str) -> None:
    _, turn = working(home)
    shown = look(page, "request", **HERE, event=turn.event_id, dialect=dialect)
    assert shown["dialect"] == dialect
    assert json.loads(shown["text"]) == json.loads(msgspec.json.encode(turn.request(dialect)))
    assert "\n  " in shown["text"]


def test_secrets_are_redacted_also_of_a_turn_that_was_recorded_with_them(page: OpenedHome, home: str) -> None:
    with daypack.open_session("work", home=home, durability="os", redaction="off") as open_handed:
        open_handed.append("user", f"my token is {SECRET}")
        turn = open_handed.prepare()
    for view, more in (("call", {}), ("request", {"dialect": "openai"}), ("item", {"item": "messages:1"})):
        shown = msgspec.json.encode(look(page, view, **HERE, event=turn.event_id, **more)).decode()
        assert SECRET not in shown
        assert MARKER in shown


# What cannot be verified


def test_an_erased_turn_is_shown_and_said_to_be_unverified(page: OpenedHome, home: str) -> None:
    with daypack.open_session("work", home=home, durability="os") as session:
        session.append("user", "The launch word is periwinkle.")
        turn = session.prepare()
    assert look(page, "call", **HERE, event=turn.event_id)["verified"] is True  # and now it is kept
    apply(find_home(home), Request(literal="periwinkle", session="work"))
    shown = look(page, "call", **HERE, event=turn.event_id)
    assert shown["verified"] is False
    assert "was erased" in shown["problem"]
    assert "periwinkle" not in msgspec.json.encode(shown).decode()
    assert "[erased" in shown["items"][0]["text"]


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_damaged_message_leaves_the_others_shown_unverified(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 3)
    turn = session.prepare()
    session.close()
    _damage(Path(session.layout.messages), b"Answer 2")
    shown = look(page, "call", **HERE, event=turn.event_id)
    assert shown["verified"] is False
    assert "digest" in shown["problem"]
    assert [found["ref"] for found in shown["items"]] == [f"messages:{seq}" for seq in (1, 2, 3, 5, 6)]


def test_a_turn_whose_texts_are_gone_still_shows_its_record(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief. " * 40)
    session.append("user", "hello")
    turn = session.prepare()
    session.close()
    for path in Path(session.layout.blob).rglob("*"):
        if path.is_file():
            path.unlink()
    shown = look(page, "call", **HERE, event=turn.event_id)
    assert (shown["verified"], shown["content"], shown["items"]) == (False, "unknown", [])
    assert shown["tokens"] == turn.tokens
    assert "pin:rules.md" in shown["problem"]


def _damage(path: Path, text: bytes) -> None:
    data = path.read_bytes()
    assert text in data
    path.write_bytes(data.replace(text, text.swapcase()))


@pytest.mark.parametrize("event", ["ev-999", "ev-1", "nonsense", "msg-77"])
def test_an_unknown_event_is_refused_with_a_hint(page: OpenedHome, home: str, event: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief.")
    session.append("user", "hello")
    session.prepare()
    for view, more in (("call", {}), ("request", {"dialect": "openai"}), ("item", {"item": "tools"})):
        with pytest.raises(SourceMissing) as refused:
            look(page, view, **HERE, event=event, **more)
        assert refused.value.hint


def test_sessions_are_for_their_owner_and_must_exist(page: OpenedHome, home: str) -> None:
    stage(home).append("user", "hello")
    with pytest.raises(AccessDenied):
        look(page, "call", OTHER, **HERE, event="ev-1")
    with pytest.raises(SessionMissing):
        look(page, "call", agent="default", session="none", event="ev-1")
    with pytest.raises(BadInput, match="event is missing"):
        look(page, "call", **HERE)


# Calls of other programs


def test_a_recorded_call_shows_its_parts_with_whole_texts(page: OpenedHome, home: str) -> None:
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as session:
        turns = observed_turns(session)
    newest = turns[-1]
    shown = look(page, "call", **NOTES, event=newest.event_id)
    assert (shown["kind"], shown["content"], shown["verified"]) == ("observed", "recorded", True)
    assert (shown["previous"], shown["next"]) == (turns[-2].event_id, None)
    assert shown["dialects"] == ["anthropic"]
    assert sum(found["tokens"] for found in shown["items"]) == pytest.approx(shown["tokens"], abs=len(shown["items"]))
    assert shown["tokens"] == shown["cache"]["input"]
    assert [found["part"] for found in shown["items"]] == sorted(found["part"] for found in shown["items"])
    system = "".join(block["text"] for block in newest.shape.system)  # type: ignore[union-attr]
    assert "".join(found["text"] for found in shown["items"] if found["kind"] == "system") == system[:4000]
    said = [found for found in shown["items"] if found["ref"]]
    assert {found["category"] for found in said} <= {"tail", "summary"}
    assert {found["category"] for found in shown["items"]} >= {"prefix", "tail"}
    for found in shown["items"]:
        whole = look(page, "item", **NOTES, event=newest.event_id, item=found["id"])["text"]
        assert len(whole) == found["chars"]
        assert whole.startswith(found["text"])


def test_what_left_the_window_with_a_compaction_can_be_read(page: OpenedHome, home: str) -> None:
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as session:
        first, *_, newest = [turn.event_id for turn in observed_turns(session)]
    assert look(page, "call", **NOTES, event=first)["omitted"] == []
    shown = look(page, "call", **NOTES, event=newest)
    [gone] = shown["omitted"]
    assert gone["reason"] == "superseded_by_summary"
    start, _, stop = gone["item"].removeprefix("messages:").partition("-")
    refs = {found["ref"] for found in shown["items"]}
    assert not refs & {f"messages:{seq}" for seq in range(int(start), int(stop) + 1)}
    assert start == "1"
    text = look(page, "recall", **NOTES, id=gone["read"])["text"]
    assert text.startswith("[1 user]")


def test_a_call_of_which_only_the_reply_is_known_has_no_items(page: OpenedHome, home: str) -> None:
    import_recording(home, leave_out=ROW_TYPES)
    with daypack.open_session("notes", home=home, create=False) as session:
        replies = [message.id for message in session.messages() if (message.meta or {}).get("usage")]
    shown = look(page, "call", **NOTES, event=replies[-1])
    assert (shown["content"], shown["verified"], shown["items"], shown["omitted"]) == ("unknown", None, [], [])
    assert shown["dialects"] == []
    assert shown["cache"]["input"] == shown["tokens"] > 0
    assert f"msg-{shown['reply']}" == replies[-1]
    with pytest.raises(SourceMissing, match="cannot be rebuilt"):
        look(page, "request", **NOTES, event=replies[-1], dialect="anthropic")


def test_the_request_of_another_program_is_the_one_on_the_wire(page: OpenedHome, home: str) -> None:
    import_recording(home)
    bodies = [comparable(body) for body in load_recording().wire]
    with daypack.open_session("notes", home=home, create=False) as session:
        events = [turn.event_id for turn in observed_turns(session)]
    for event in events:
        assert json.loads(look(page, "request", **NOTES, event=event, dialect="anthropic")["text"]) in bodies
    with pytest.raises(BadInput, match="was sent as anthropic"):
        look(page, "request", **NOTES, event=events[0], dialect="openai")


# Looking


def test_looking_changes_nothing(page: OpenedHome, home: str) -> None:
    session, turn = working(home)
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as notes:
        event = observed_turns(notes)[-1].event_id
    before = truth(session), truth(notes)
    assert len(before[0]) > 3
    for place, newest in ((HERE, turn.event_id), (NOTES, event)):
        call = look(page, "call", **place, event=newest)
        look(page, "item", **place, event=newest, item=call["items"][0]["id"])
        look(page, "request", **place, event=newest, dialect=call["dialects"][-1])
        look(page, "diff", **place, after=newest)
        for budget in (100, 3000, 50_000):
            look(page, "fit", **place, budget=budget)
        look(page, "messages", **place, start=1)
        look(page, "message", **place, seq=2)
        for omission in call["omitted"]:
            if omission["read"]:
                look(page, "recall", **place, id=omission["read"])
    assert (truth(session), truth(notes)) == before
    page.close()
    assert (truth(session), truth(notes)) == before


def test_a_session_that_grows_is_followed(page: OpenedHome, home: str, tmp_path: Path) -> None:
    recording = load_recording()
    path = tmp_path / f"{recording.session}.jsonl"
    place = Destination(home, agent="default", session="notes")
    half = len(recording.lines) // 2
    path.write_bytes(b"\n".join((*recording.lines[:half], b"")))
    import_file("claude-code", str(path), place)
    with daypack.open_session("notes", home=home, create=False) as session:
        first = [turn.event_id for turn in observed_turns(session)]
    assert look(page, "call", **NOTES, event=first[-1])["next"] is None
    path.write_bytes(recording.text)
    import_file("claude-code", str(path), place)
    with daypack.open_session("notes", home=home, create=False) as session:
        events = [turn.event_id for turn in observed_turns(session)]
    assert len(events) > len(first)
    for event in events:
        grown = look(page, "call", **NOTES, event=event)
        with_a_new_page = OpenedHome(home, None, None)
        assert look(with_a_new_page, "call", **NOTES, event=event) == grown
        with_a_new_page.close()


def test_a_turn_that_is_kept_is_given_again_until_its_history_changes(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.append("user", "hello")
    turn = session.prepare()
    event = turn.event_id or ""
    with page.session("default", "work") as opened:
        kept = kept_of(opened)
        first = kept.turn(opened, event)
        session.accept("hi")
        assert kept.turn(opened, event) is first
        for _ in range(10):
            session.append("user", "more")
            kept.turn(opened, session.prepare().event_id or "")
        again = kept.turn(opened, event)
        assert again is not first
        assert again.turn.pack_json == first.turn.pack_json


def test_messages_that_were_left_out_have_the_tokens_of_the_log(page: OpenedHome, home: str) -> None:
    session = stage(home)
    fill(session, 2)
    [event] = [event.id for event in session.events() if event.type == "context.turn"][-1:]
    ranges = [row for row in look(page, "call", **HERE, event=event)["omitted"] if row["item"].startswith("messages:")]
    assert ranges
    for row in ranges:
        first, _, last = row["item"].removeprefix("messages:").partition("-")
        expected = sum(
            session.history.count_tokens(message) for message in session.messages(int(first), int(last or first))
        )
        assert (row["tokens"] or row["counted"]) == expected
