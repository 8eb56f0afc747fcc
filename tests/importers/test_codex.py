"""Transcripts of Codex: rollout files, old and new, and the log of its screen."""

import base64
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pytest

from daypack.derived.children import read_children
from daypack.errors import BadInput, ExtraMissing
from daypack.importers.formats import find_files
from daypack.importers.import_file import Destination, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.authority import writer_of
from daypack.types.history import Image, Other, Text, Thinking

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
ID = "0199a213-81c0-7800-8aa1-bbab2a035a53"
FILE = f"rollout-2026-02-11T20-36-45-{ID}.jsonl"


def row(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-02-11T20:36:45.618Z", "type": kind, "payload": payload}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return row("response_item", type=kind, **fields)


def said(role: str, *words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": one} for one in words])


META = row("session_meta", id=ID, cwd="/work/project", cli_version="0.166.0")
CONTEXT = row("turn_context", model="gpt-5-codex", cwd="/work/project")


def kept_in(session: Session) -> list[Any]:
    return [event.data["row"] for event in session.events() if event.type == "import.row"]


def test_what_the_model_did_in_one_go_is_one_message(write: Write, bring: Bring, opened: Opened) -> None:
    thought = item(
        "reasoning",
        id="rs_1",
        summary=[{"type": "summary_text", "text": "Plan"}],
        content=None,
        encrypted_content="enc",
    )
    shell = item(
        "local_shell_call", id="ls", call_id="c3", status="completed", action={"type": "exec", "command": ["ls"]}
    )
    told = row("event_msg", type="token_count", info={})
    path = write(
        FILE,
        [
            META,
            said("developer", "Be brief."),
            CONTEXT,
            said("user", "List"),
            thought,
            told,
            said("assistant", "I look."),
            item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1", id="fc_1"),
            item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2", status="completed"),
            shell,
            item("function_call_output", call_id="c1", output='{"output":"a.py"}'),
            item("custom_tool_call_output", call_id="c2", output="ok"),
            item("function_call_output", call_id="c3", output={"content": "b.py", "success": True}),
            said("assistant", "Done."),
        ],
    )
    report = bring("codex", path)
    session = opened(ID)
    system, asked, did, one, two, three, last = session.messages()
    assert (system.role, system.content, (system.meta or {})["role"]) == ("system", "Be brief.", "developer")
    assert (asked.role, asked.content, asked.ts) == ("user", "List", "2026-02-11T20:36:45.618Z")
    assert did.content == (Thinking("Plan", "enc", {"id": "rs_1"}), Text("I look."))
    assert [(each.id, each.name, each.arguments) for each in did.tool_calls] == [
        ("c1", "shell", '{"command": ["ls"]}'),
        ("c2", "apply_patch", "*** Begin"),
        ("c3", "local_shell", '{"type":"exec","command":["ls"]}'),
    ]
    assert did.tool_calls[1].meta == {"status": "completed", "type": "custom"}
    assert (did.meta or {})["model"] == "gpt-5-codex"
    assert [(each.tool_call_id, each.content) for each in (one, two, three)] == [
        ("c1", '{"output":"a.py"}'),
        ("c2", "ok"),
        ("c3", "b.py"),
    ]
    assert last.content == "Done."
    assert kept_in(session) == [META, CONTEXT, told]
    assert (report.session, report.messages, report.tool_calls, report.rows) == (ID, 7, 3, 3)
    assert (session.path / "cwd").read_text() == "/work/project\n"
    assert bring("codex", path).new == 0


@pytest.mark.parametrize("cut", range(2, 8))
def test_a_file_that_grew_adds_exactly_the_rest(write: Write, bring: Bring, opened: Opened, cut: int) -> None:
    calls = [item("function_call", name="f", arguments="{}", call_id=f"c{number}") for number in range(2)]
    results = [item("function_call_output", call_id=f"c{number}", output=f"r{number}") for number in range(2)]
    rows = [META, said("user", "Go"), said("assistant", "Yes"), *calls, *results, said("assistant", "End")]
    bring("codex", write(FILE, rows[:cut]))
    bring("codex", write(FILE, rows))
    stored = list(opened(ID).messages())
    assert [one.text for one in stored if one.text] == ["Go", "Yes", "r0", "r1", "End"]
    assert [call.id for one in stored for call in one.tool_calls] == ["c0", "c1"]


def test_a_compaction_is_an_event_and_everything_before_it_stays(write: Write, bring: Bring, opened: Opened) -> None:
    compacted = row("compacted", message="Summary", replacement_history=[{"type": "message", "role": "user"}])
    bring(
        "codex",
        write(FILE, [META, said("user", "One"), said("assistant", "Two"), compacted, said("assistant", "Three")]),
    )
    session = opened(ID)
    assert [message.text for message in session.messages()] == ["One", "Two", "Three"]
    assert kept_in(session) == [META, compacted]


def test_the_summary_of_a_compaction_is_a_message_of_its_own_and_marked(
    write: Write, bring: Bring, opened: Opened
) -> None:
    compacted = row("compacted", message="Another model wrote this:\nPorts were moved.", replacement_history=[])
    thought = item("reasoning", summary=[], content=[{"type": "text", "text": "Plan"}], encrypted_content="enc")
    rows = [META, said("user", "One"), said("assistant", "Two"), thought, said("assistant", "Ports were moved.")]
    bring("codex", write(FILE, [*rows, compacted, said("assistant", "Ports were moved.")]))
    stored = [(message.text, writer_of(message)) for message in opened(ID).messages()]
    summary, later = ("Ports were moved.", "summary"), ("Ports were moved.", None)
    assert stored == [("One", None), ("Two", None), summary, later]


def rolled_back(session: Session) -> list[tuple[int, str]]:
    events = [event.data for event in session.events() if event.type == "import.rolled_back"]
    return [(event["turns"], event["messages"]) for event in events]


def test_turns_that_were_rolled_back_stay_and_an_event_names_them(write: Write, bring: Bring, opened: Opened) -> None:
    back = row("event_msg", type="thread_rolled_back", num_turns=1)
    rows = [
        META,
        said("user", "<environment_context>here</environment_context>"),
        said("user", "One"),
        said("assistant", "1"),
        said("user", "Two"),
        said("assistant", "2"),
        back,
        said("user", "Two again"),
        said("user", "<environment_context>there</environment_context>"),
        said("assistant", "2 again"),
        back,
        back,
        row("event_msg", type="thread_rolled_back", num_turns=9),
        said("user", "Three"),
    ]
    path = write(FILE, rows)
    bring("codex", path)
    session = opened(ID)
    assert len(session.messages()) == 9
    assert rolled_back(session) == [(1, "messages:4-5"), (1, "messages:6-8"), (1, "messages:2-8")]
    bring("codex", path)
    assert len(rolled_back(opened(ID))) == 3


def test_a_rollback_at_the_end_is_honoured(write: Write, bring: Bring, opened: Opened) -> None:
    talk = [said(role, words) for words in ("One", "Two") for role in ("user", "assistant")]
    bring("codex", write(FILE, [META, *talk, row("event_msg", type="thread_rolled_back", num_turns=1)]))
    assert rolled_back(opened(ID)) == [(1, "messages:3-4")]


def test_a_rollback_that_comes_with_a_later_import_is_honoured(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [META, said("user", "One"), said("assistant", "1")]
    bring("codex", write(FILE, rows))
    bring("codex", write(FILE, [*rows, row("event_msg", type="thread_rolled_back", num_turns=1), said("user", "Two")]))
    assert rolled_back(opened(ID)) == [(1, "messages:1-2")]


def test_a_turn_began_before_the_group_that_rolls_it_back_repeated_after_a_crash(
    write: Write, bring: Bring, opened: Opened
) -> None:
    rows = [META, said("user", "One"), said("assistant", "1")]
    bring("codex", write(FILE, rows))
    session = opened(ID)
    events = (session.path / "events.jsonl").read_bytes()
    rows += [row("event_msg", type="thread_rolled_back", num_turns=1), said("user", "Two"), said("assistant", "2")]
    bring("codex", write(FILE, rows))
    (session.path / "events.jsonl").write_bytes(events)  # the messages are there, their group's events are not
    assert bring("codex", write(FILE, rows)).new == 0
    assert rolled_back(opened(ID)) == [(1, "messages:1-2")]


def test_items_of_hosted_tools_and_pictures_stay_in_their_messages(write: Write, bring: Bring, opened: Opened) -> None:
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
    picture = base64.b64encode(b"\x89PNG" + b"p" * 100).decode()
    shown = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"},
    ]
    unknown = item("ghost_snapshot", ghost_commit={"id": "x"})
    rows = [
        META,
        item("message", role="user", content=shown),
        row("response_item", **search),
        said("assistant", "It is"),
    ]
    bring("codex", write(FILE, [*rows, unknown]))
    session = opened(ID)
    asked, did = session.messages()
    assert isinstance(asked.content, tuple)
    assert asked.content[0] == Text("See")
    assert isinstance(asked.content[1], Image)
    assert (session.path / "blob" / asked.content[1].source).read_bytes().startswith(b"\x89PNG")
    assert did.content == (Other(search), Text("It is"))
    assert kept_in(session)[-1] == unknown
    assert picture not in (session.path / "messages.jsonl").read_text()


def test_files_of_2025_with_bare_items_are_read(write: Write, bring: Bring, opened: Opened) -> None:
    head = {"id": ID, "timestamp": "2025-06-01T10:00:00Z", "instructions": None}
    state = {"record_type": "state"}
    rows = [head, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, state]
    rows.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]})
    bring("codex", write(FILE, rows))
    session = opened(ID)
    assert [message.text for message in session.messages()] == ["Hi", "Hello"]
    assert kept_in(session) == [head, state]


def screen(kind: str, **msg: Any) -> dict[str, Any]:
    payload = {"id": "1", "msg": {"type": kind, **msg}}
    return {"ts": "2025-08-10T03:12:26.500Z", "dir": "to_tui", "kind": "codex_event", "payload": payload}


def test_the_log_of_the_screen_is_read_for_what_is_there(write: Write, bring: Bring, opened: Opened) -> None:
    start = {"ts": "2025-08-10T03:12:26Z", "dir": "meta", "kind": "session_start", "cwd": "/x", "model": "gpt-oss:20b"}
    redraw = {"ts": "2025-08-10T03:12:26.500Z", "dir": "to_tui", "kind": "app_event", "variant": "Redraw"}
    asked = {"type": "user_input", "items": [{"type": "text", "text": "hello"}]}
    path = write(
        "screen.jsonl",
        [
            start,
            screen("session_configured", session_id=ID),
            redraw,
            {"ts": "2025-08-10T03:12:27Z", "dir": "from_tui", "kind": "op", "payload": asked},
            screen("agent_reasoning_raw_content_delta", delta="The user "),
            screen("agent_reasoning_raw_content_delta", delta="greets."),
            screen("exec_command_begin", call_id="e1", command=["ls"], cwd="/x"),
            screen("exec_command_end", call_id="e1", stdout="a", stderr="b", exit_code=0),
            screen("agent_message", message="Hello!"),
            redraw,
        ],
    )
    report = bring("codex", path)
    session = opened(ID)
    words, called, answered, said_last = session.messages()
    assert (words.role, words.text) == ("user", "hello")
    assert called.tool_calls[0].arguments == '{"command":["ls"],"cwd":"/x"}'
    assert (answered.tool_call_id, answered.text, (answered.meta or {})["event"]["exit_code"]) == ("e1", "ab", 0)
    assert said_last.content == (Thinking("The user greets."), Text("Hello!"))
    assert (report.messages, report.rows) == (4, 6)
    assert kept_in(session)[0] == start
    assert kept_in(session).count(redraw) == 2
    assert bring("codex", path).new_rows == 0


def test_the_two_files_of_one_session_are_not_mixed(write: Write, bring: Bring) -> None:
    bring("codex", write(FILE, [META, said("user", "Hi")]))
    path = write(
        "screen.jsonl", [screen("session_configured", session_id=ID), screen("agent_message", message="Hello")]
    )
    with pytest.raises(BadInput, match="holds other messages"):
        bring("codex", path)


def test_a_compressed_file_says_what_it_needs(write: Write, bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression.zstd", "backports.zstd", "zstandard", "pyzstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExtraMissing, match="compressed") as refused:
        bring("codex", write(f"{FILE}.zst", b"\x28\xb5\x2f\xfd"))
    assert "daypack[zstd]" in refused.value.hint
    assert "zstd -d" in refused.value.hint


def test_a_compressed_file_is_read_where_a_module_can(
    write: Write, bring: Bring, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = write("plain.jsonl", [META, said("user", "Hi")])

    def unpack(_: str, mode: str) -> IO[Any]:
        return open(plain, mode)

    module = ModuleType("zstandard")
    vars(module)["open"] = unpack
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", module)
    bring("codex", write(f"{FILE}.zst", b"\x28\xb5\x2f\xfd"))
    assert [message.text for message in opened(ID).messages()] == ["Hi"]


RECORDED = Path(__file__).parent / "recorded"
MAIN = "01a1ec69-6358-7c01-b518-b5b523a473a9"
AGENT = "01a1ec69-645b-7f12-99f7-a72c38b8f745"


def rollout(thread: str, day: str = "2026/11/18") -> str:
    return f"sessions/{day}/rollout-{day.replace('/', '-')}T02-08-12-{thread}.jsonl"


@pytest.mark.parametrize("given", ["session", "sub-agent"])
@pytest.mark.parametrize("day", ["2026/11/18", "2026/11/20"])
def test_sub_agents_become_children(write: Write, home: str, opened: Opened, given: str, day: str) -> None:
    main = write(rollout(MAIN), (RECORDED / "codex-agents.jsonl").read_bytes())
    agent = write(rollout(AGENT, day), (RECORDED / "codex-sub-agent.jsonl").read_bytes())
    other = {"type": "session_meta", "payload": {"id": "0f" + MAIN[2:], "session_id": "0f" + MAIN[2:]}}
    write(rollout("0f" + MAIN[2:]), [other])
    resumed = time.mktime(time.strptime(f"{day} 12", "%Y/%m/%d %H"))
    os.utime(main, (resumed, resumed))
    reports = take_in(main if given == "session" else agent, Destination(home))
    assert [(report.session, report.parent) for report in reports] == [(MAIN, ""), (f"{MAIN}--{AGENT}", MAIN)]
    (child,) = read_children(opened(MAIN).history)
    assert (child.name, child.handoff, child.result) == (AGENT, "Say hello as codex child.", "Hello from the child.")
    asked = [message for message in opened(f"{MAIN}--{AGENT}").messages() if message.role == "user"]
    assert [writer_of(message) for message in asked] == ["harness", "agent", "harness"]
    assert [report.session for report in take_in(main, Destination(home))] == [MAIN]


def test_a_sub_agent_without_the_file_of_its_session_is_linked_later(write: Write, home: str, opened: Opened) -> None:
    agent = write(rollout(AGENT), (RECORDED / "codex-sub-agent.jsonl").read_bytes())
    assert [report.session for report in take_in(agent, Destination(home))] == [f"{MAIN}--{AGENT}"]
    take_in(write(rollout(MAIN), (RECORDED / "codex-agents.jsonl").read_bytes()), Destination(home))
    assert [child.name for child in read_children(opened(MAIN).history)] == [AGENT]


def test_a_folder_with_sub_agents_lists_only_the_sessions(write: Write, tmp_path: Path) -> None:
    main = write(rollout(MAIN), (RECORDED / "codex-agents.jsonl").read_bytes())
    write(rollout(AGENT), (RECORDED / "codex-sub-agent.jsonl").read_bytes())
    assert find_files("codex", str(tmp_path / "from")) == [main]


def compressed(path: str) -> str:
    """Replace a file by a compressed one, as Codex does, and return its path."""
    from backports import zstd

    plain = Path(path)
    Path(f"{path}.zst").write_bytes(zstd.compress(plain.read_bytes()))
    plain.unlink()
    return f"{path}.zst"


@pytest.mark.parametrize("given", ["session", "sub-agent"])
def test_compressed_files_of_a_session_and_its_sub_agents_belong_together(
    write: Write, home: str, opened: Opened, given: str
) -> None:
    main = compressed(write(rollout(MAIN), (RECORDED / "codex-agents.jsonl").read_bytes()))
    agent = compressed(write(rollout(AGENT), (RECORDED / "codex-sub-agent.jsonl").read_bytes()))
    reports = take_in(main if given == "session" else agent, Destination(home))
    assert [(report.session, report.parent) for report in reports] == [(MAIN, ""), (f"{MAIN}--{AGENT}", MAIN)]
    assert [child.name for child in read_children(opened(MAIN).history)] == [AGENT]


def test_a_file_that_was_compressed_after_its_import_adds_nothing(write: Write, bring: Bring, opened: Opened) -> None:
    path = write(FILE, [META, said("user", "Hi"), said("assistant", "Hello")])
    bring("codex", path)
    report = bring("codex", compressed(path))
    assert (report.new, report.new_rows, report.problems) == (0, 0, [])
    assert [message.text for message in opened(ID).messages()] == ["Hi", "Hello"]


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_a_damaged_compressed_file_is_refused_with_its_path(write: Write, bring: Bring, keep: float) -> None:
    path = compressed(write(FILE, [META, *[said("user", f"Hi {number}") for number in range(500)]]))
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: int(len(data) * keep)][:-4] + b"\xff\xff\xff\xff")
    with pytest.raises(BadInput) as refused:
        bring("codex", path)
    assert refused.value.place == path


def migrated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as `codex migrate-rollouts` writes them: numbered, with rows about items between them."""
    found = [{**rows[0], "payload": {**rows[0]["payload"], "history_mode": "paginated"}}]
    for each in rows[1:]:
        found += [each, row("event_msg", type="item_completed", item={"type": "agentMessage"})]
    return [{**each, "ordinal": number} for number, each in enumerate(found)]


def test_a_migrated_file_continues_its_session(write: Write, bring: Bring, opened: Opened) -> None:
    call = item("function_call", name="f", arguments="{}", call_id="c1")
    rows = [META, said("user", "Hi"), said("assistant", "I look."), call]
    rows += [item("function_call_output", call_id="c1", output="done"), said("assistant", "Hello")]
    path = write(FILE, rows)
    bring("codex", path)
    write(FILE, migrated(rows))
    report = bring("codex", path)
    assert (report.new, report.messages, report.problems) == (0, 4, [])
    events = len(opened(ID).events())
    assert bring("codex", path).new_rows == 0
    assert len(opened(ID).events()) == events  # it is known now
    write(FILE, migrated([*rows, said("user", "More?")]))
    assert bring("codex", path).new == 1
    texts = [message.text for message in opened(ID).messages()]
    assert texts == ["Hi", "I look.", "done", "Hello", "More?"]


def test_a_rewritten_file_with_other_messages_is_refused(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [META, said("user", "Hi"), said("assistant", "Hello"), said("user", "More?")]
    path = write(FILE, rows)
    bring("codex", path)
    for changed in (
        [META, said("user", "Hi"), said("assistant", "Another answer"), said("user", "More?")],
        [META, said("user", "Hi"), said("assistant", "Hello")],
        [META, said("assistant", "Hello"), said("user", "Hi"), said("user", "More?")],
    ):
        write(FILE, migrated(changed))
        with pytest.raises(BadInput, match="changed since the last import"):
            bring("codex", path)
    assert [message.text for message in opened(ID).messages()] == ["Hi", "Hello", "More?"]
