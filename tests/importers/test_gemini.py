"""Sessions of Gemini CLI: recorded ones of 0.61 and 0.30, and rows that its recorder can write beside them."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.importers.format_detection import detect_formats, read_sample
from daypack.importers.formats import find_files
from daypack.importers.import_file import Destination, import_file, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.types.authority import users_part, writer_of
from daypack.types.history import Message, Text, Thinking

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
RECORDED = Path(__file__).parent / "recorded"
NAME = "47e43d0b-0e97-4619-b7fe-df8fd807b028"
CHILD = "88c3accb-2aa6-4869-88a3-9e4123b952fa"
OLD = "3312c70e-0d2a-4bdf-8555-9415767cfbf4"
TIME = "2026-11-18T03:23:44.671Z"
ABOUT = {"sessionId": "talk", "projectHash": "0" * 64, "startTime": TIME, "lastUpdated": TIME, "kind": "main"}
CONTEXT = "<session_context>\n- **Workspace Directories:**\n  - /home/ada/saw\n</session_context>"
ACKNOWLEDGED = "Got it. Thanks for the additional context!"


def message(kind: str, key: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": key, "timestamp": TIME, "type": kind, "content": content, **fields}


def user(key: str, words: str, **fields: Any) -> dict[str, Any]:
    return message("user", key, [{"text": words}], **fields)


def model(key: str, words: str, **fields: Any) -> dict[str, Any]:
    return message("gemini", key, words, thoughts=[], model="gemini-2.5-pro", **fields)


def call(key: str, output: str) -> dict[str, Any]:
    response = {"id": key, "name": "run_shell_command", "response": {"output": output}}
    result = [{"functionResponse": response}]
    return {"id": key, "name": "run_shell_command", "args": {"command": "ls"}, "status": "success", "result": result}


def window(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": [*messages], "lastUpdated": TIME}}


def imported(write: Write, bring: Bring, opened: Opened, *rows: dict[str, Any]) -> list[Message]:
    bring("gemini", write("chats/session-1-talk.jsonl", [ABOUT, *rows]))
    return list(opened("talk").messages())


def events(session: Session, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in session.events() if event.type == kind]


def test_a_recorded_session_is_read_whole(bring: Bring, opened: Opened) -> None:
    path = str(RECORDED / "gemini.jsonl")
    report = bring(None, path)
    assert (report.format, report.session, report.messages, report.tool_calls, report.problems) == (
        "gemini", NAME, 18, 4, []
    )  # fmt: skip
    session = opened(NAME)
    messages = list(session.messages())
    assert messages[1].content == (Thinking("**Look**\nI think."), Text("I look."))
    assert [(each.id, each.name) for each in messages[1].tool_calls] == [
        ("run_shell_command__call_1_1", "run_shell_command")
    ]
    assert "Retries are in retry.py." in messages[2].text
    assert (messages[4].text, (messages[4].meta or {})["call"]["status"]) == (
        "File not found: /home/ada/saw/nope.txt", "error"
    )  # fmt: skip
    assert [each.text for each in messages if each.role == "user"] == [
        "What does gemini see?",
        "What else?",
        "And now?",
        "<state_snapshot>We looked at the project.</state_snapshot>",
        "Ask somebody.",
        "Fail now.",
    ]
    assert [writer_of(each) for each in messages if each.role == "user"] == [None, None, None, "summary", None, None]
    assert ((session.path / "cwd").read_text(), session.meta["model"]) == ("/home/ada/saw\n", "gemini-2.5-pro")
    assert bring(None, path).new == 0


def test_a_compaction_is_an_event_that_names_what_stayed_and_a_failed_prompt_is_rolled_back(
    bring: Bring, opened: Opened
) -> None:
    bring(None, str(RECORDED / "gemini.jsonl"))
    session = opened(NAME)
    (compacted,) = events(session, "import.compacted")
    assert (compacted["through"], compacted["kept"]) == (12, [7, 8, 9, 10, 11, 12])
    (rolled_back,) = events(session, "import.rolled_back")
    assert rolled_back["messages"] == "messages:18"


def test_the_calls_are_listed_with_what_the_provider_reported(bring: Bring, opened: Opened) -> None:
    bring(None, str(RECORDED / "gemini.jsonl"))
    listed = list(newest_calls(opened(NAME).history))
    calls = [each for each in listed if isinstance(each, Call)]
    assert [(each.input_tokens, each.output_tokens, each.model) for each in calls][-1] == (11215, 7, "gemini-2.5-pro")
    assert len(calls) == 8
    assert len(listed) - len(calls) == 1, "a compaction"


@pytest.mark.parametrize("path", sorted(RECORDED.glob("gemini*")), ids=lambda path: path.name)
def test_its_files_are_those_of_no_other_program(path: Path) -> None:
    assert list(detect_formats(read_sample(str(path)))) == ["gemini"]


def test_files_of_its_fork_are_not_taken_for_its_own(bring: Bring) -> None:
    assert bring(None, str(RECORDED / "qwen.jsonl")).format == "qwen"


def test_sub_agents_become_children(write: Write, home: str, opened: Opened, tmp_path: Path) -> None:
    chats = tmp_path / "from" / "tmp" / "saw" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/ada/other")
    main = shutil.copy(RECORDED / "gemini.jsonl", chats / "session-2026-11-18T03-23-47e43d0b.jsonl")
    (chats / NAME).mkdir()
    child = shutil.copy(RECORDED / "gemini-sub-agent.jsonl", chats / NAME / f"{CHILD}.jsonl")
    assert find_files(None, str(tmp_path / "from")) == [str(main)]
    reports = take_in(str(child), Destination(home))
    assert [(report.session, report.parent) for report in reports] == [(NAME, ""), (f"{NAME}--{CHILD}", NAME)]
    session = opened(NAME)
    assert (session.path / "cwd").read_text() == "/home/ada/other\n"
    (told,) = read_children(session.history)
    assert (told.handoff, told.result) == ("Look for it.", "Nothing to do.")
    assert writer_of(opened(f"{NAME}--{CHILD}").messages()[0]) == "agent"
    assert [report.session for report in take_in(str(main), Destination(home))] == [NAME]


def test_what_hooks_added_is_marked_also_before_the_prompt(bring: Bring, opened: Opened) -> None:
    report = bring(None, str(RECORDED / "gemini-hooks.jsonl"))
    said = [each for each in opened(report.session).messages() if each.role == "user"]
    parts = [users_part(each) for each in said]
    assert [part.text if part else None for part in parts] == ["What does gemini see?", "What else?"]


def test_the_file_that_a_resumed_session_leaves_behind_is_no_session(home: str) -> None:
    assert import_file(None, str(RECORDED / "gemini-resumed.jsonl"), Destination(home)) == []


def test_a_document_of_an_earlier_version_that_is_written_again_adds_what_is_new(
    write: Write, bring: Bring, opened: Opened
) -> None:
    first, second = ((RECORDED / name).read_bytes() for name in ("gemini-0.30-first.json", "gemini-0.30.json"))
    report = bring(None, write("chats/session-2026.json", first))
    assert (report.session, report.new, report.tool_calls, report.problems) == (OLD, 6, 2, [])
    report = bring(None, write("chats/session-2026.json", second))
    assert (report.new, report.messages, report.problems) == (2, 8, [])
    assert bring(None, write("chats/session-2026.json", second)).new == 0
    messages = list(opened(OLD).messages())
    assert [each.role for each in messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert (messages[1].meta or {})["usage"]["input_tokens"] == 9181


def test_a_document_that_a_newer_version_resumes_as_rows_continues_its_session(
    write: Write, bring: Bring, opened: Opened
) -> None:
    """Gemini CLI writes all messages of the document once more, into a file beside it, and appends there."""
    document = json.loads((RECORDED / "gemini-0.30.json").read_text(encoding="utf-8"))
    old = write("chats/session-1-3312c70e.json", json.dumps(document))
    bring("gemini", old)
    before = [stored.client_key for stored in opened(OLD).messages()]
    about = {name: value for name, value in document.items() if name != "messages"} | {"kind": "main"}
    rows = [about, *document["messages"], {"$set": {"sessionId": OLD}}, user("new", "And now?"), model("m", "More.")]
    report = bring("gemini", new := write("chats/session-1-3312c70e.jsonl", rows))
    assert (report.session, report.new, report.changed) == (OLD, 2, 0)
    stored = list(opened(OLD).messages())
    assert [each.client_key for each in stored[: len(before)]] == before
    assert [each.text for each in stored[len(before) :]] == ["And now?", "More."]
    assert [bring("gemini", path).new for path in (old, new)] == [0, 0]


def test_what_a_hook_appended_to_the_output_of_a_tool_is_marked(write: Write, bring: Bring, opened: Opened) -> None:
    added = '<hook_context>&lt;note id="1"&gt;\nNever retry.\n&lt;/note 1&gt;</hook_context>'
    outputs = {"c1": f"Written.\n\n{added}", "c2": f"{added} is no context here", "c3": "<hook_context>"}
    calls = [call(key, output) for key, output in outputs.items()]
    stored = imported(write, bring, opened, user("u", "Write."), model("m", "I write.", toolCalls=calls))
    results = [each for each in stored if each.role == "tool"]
    parts = results[0].content
    assert [(part.text, part.meta) for part in parts if isinstance(part, Text)] == [
        ("Written.", None),
        (added, {"writer": "hook"}),
    ]
    assert [each.text for each in results[1:]] == [outputs["c2"], outputs["c3"]]


def test_a_document_is_imported_at_every_moment_of_a_turn(write: Write, bring: Bring, opened: Opened) -> None:
    document = json.loads((RECORDED / "gemini-0.30.json").read_bytes())
    messages = document["messages"]
    for count in range(1, len(messages) + 1):
        for left_out in (("tokens", "toolCalls"), ("toolCalls",), ()):
            last = {name: value for name, value in messages[count - 1].items() if name not in left_out}
            grown = {**document, "lastUpdated": str(count), "messages": [*messages[: count - 1], last]}
            assert bring(None, write("chats/session-2026.json", json.dumps(grown, indent=2))).problems == []
    stored = opened(OLD).messages()
    assert [each.text for each in stored if each.role == "user"] == ["What does gemini see?", "What else?"]
    calls = [each.id for message in stored for each in message.tool_calls]
    assert calls == [each.tool_call_id for each in stored if each.role == "tool"] == ["call_1_1", "call_2_1"]


@pytest.mark.parametrize("name", ["gemini.jsonl", "gemini-hooks.jsonl"])
def test_a_file_that_grows_line_by_line_is_stored_as_if_it_was_read_at_once(
    name: str, write: Write, home: str, opened: Opened
) -> None:
    lines = (RECORDED / name).read_bytes().splitlines(keepends=True)
    reports = [import_file("gemini", write("whole.jsonl", b"".join(lines)), Destination(home, session="whole"))]
    for count in range(1, len(lines) + 1):
        path = write("grown.jsonl", b"".join(lines[:count]))
        reports.append(import_file("gemini", path, Destination(home, session="grown")))
    assert [each.problems for report in reports for each in report] == [[]] * sum(map(len, reports))

    def read(name: str) -> list[tuple[str, str]]:
        return [(each.role, each.text) for each in opened(name).messages() if each.text]

    def called(name: str) -> list[str]:
        return [each.id for message in opened(name).messages() for each in message.tool_calls]

    assert read("grown") == read("whole")
    assert called("grown") == called("whole")


def test_a_file_cut_in_the_middle_of_a_row_is_continued(write: Write, bring: Bring, opened: Opened) -> None:
    data = (RECORDED / "gemini.jsonl").read_bytes()
    report = bring(None, write("cut.jsonl", data[: len(data) // 2]))
    assert [problem.problem for problem in report.problems] == [
        "the last line is incomplete; import again when it is written"
    ]
    assert bring(None, write("cut.jsonl", data)).problems == []
    assert len(opened(NAME).messages()) == 18


def test_a_message_gets_its_calls_when_they_are_done(write: Write, bring: Bring, opened: Opened) -> None:
    done = model("g", "I look.", toolCalls=[call("a", "one"), call("b", "two")])
    rows = [ABOUT, user("u", "Look."), model("g", "I look."), model("g", "I look.", toolCalls=[call("a", "one")]), done]
    for count in range(2, len(rows) + 1):
        bring("gemini", write("chats/talk.jsonl", rows[:count]))
    messages = opened("talk").messages()
    assert [(each.role, each.text, [made.id for made in each.tool_calls]) for each in messages] == [
        ("user", "Look.", []),
        ("assistant", "I look.", []),
        ("assistant", "", ["a"]),
        ("tool", "one", []),
        ("assistant", "", ["b"]),
        ("tool", "two", []),
    ]


def test_a_rewind_takes_the_message_and_what_followed_out_of_the_window(
    write: Write, bring: Bring, opened: Opened
) -> None:
    rows = (user("u1", "One."), model("g1", "Yes."), user("u2", "Two."), model("g2", "No."), {"$rewindTo": "u2"})
    assert len(imported(write, bring, opened, *rows, user("u3", "Three."))) == 5
    assert [event["messages"] for event in events(opened("talk"), "import.rolled_back")] == ["messages:3-4"]


def test_a_window_that_is_written_once_more_under_other_ids_adds_nothing(
    write: Write, bring: Bring, opened: Opened
) -> None:
    repeated = [user("c", CONTEXT), user("v1", "One."), message("gemini", "h1", [{"text": "Yes."}])]
    rows = (user("u1", "One."), model("g1", "Yes."), *repeated, window(*repeated), user("u2", "Two."))
    assert [each.text for each in imported(write, bring, opened, *rows)] == ["One.", "Yes.", "Two."]
    assert events(opened("talk"), "import.rolled_back") == []


def test_a_context_that_is_a_row_by_itself_hides_no_message(write: Write, bring: Bring, opened: Opened) -> None:
    messages = imported(write, bring, opened, user("c", CONTEXT), user("u1", "One."), model("g1", "Yes."))
    assert [(each.text, writer_of(each)) for each in messages[1:]] == [("One.", None), ("Yes.", None)]
    assert writer_of(messages[0]) == "harness"


def test_a_second_compaction_has_a_summary_of_its_own(write: Write, bring: Bring, opened: Opened) -> None:
    def compacted(number: int, *kept: dict[str, Any]) -> dict[str, Any]:
        noted = message("gemini", f"a{number}", [{"text": ACKNOWLEDGED}])
        return window(user("c", CONTEXT), user(f"s{number}", f"Summary {number}."), noted, *kept)

    rows = (
        user("u1", "One."), compacted(1), user("u2", "Two."), compacted(1, user("u2", "Two.")), compacted(2)
    )  # fmt: skip
    messages = imported(write, bring, opened, *rows)
    assert [each.text for each in messages] == ["One.", "Summary 1.", "Two.", "Summary 2."]
    assert [event["id"] for event in events(opened("talk"), "import.compacted")] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("content", "fields", "writer", "own"),
    [
        ("Fix it.", {}, None, "Fix it."),
        ("Do this and that.", {"displayContent": [{"text": "/fix it"}]}, "command", "/fix it"),
        (CONTEXT, {}, "harness", None),
        ("<hook_context>Never push.</hook_context>", {}, "hook", None),
        ("<hook_context>Never push.</hook_context>\n\nFix it.", {}, None, "Fix it."),
    ],
)
def test_who_wrote_a_row_of_the_user_is_known(
    content: str,
    fields: dict[str, Any],
    writer: str | None,
    own: str | None,
    write: Write,
    bring: Bring,
    opened: Opened,
) -> None:
    (first, *_) = imported(write, bring, opened, user("u", content, **fields), model("g", "Yes."))
    part = users_part(first)
    assert (writer_of(first), part.text if part else None) == (writer, own)


@pytest.mark.parametrize("by_digest", [True, False])
def test_the_folder_of_a_session_is_found_in_the_list_of_projects(
    by_digest: bool, write: Write, bring: Bring, opened: Opened
) -> None:
    digest = sha256(b"/home/ada/saw").hexdigest()
    write(".gemini/projects.json", json.dumps({"projects": {"/home/ada/x": "x", "/home/ada/saw": "saw"}}))
    folder = digest if by_digest else "saw"
    bring("gemini", write(f".gemini/tmp/{folder}/chats/session-1.jsonl", [ABOUT, user("u", "Hi.")]))
    assert (opened("talk").path / "cwd").read_text() == "/home/ada/saw\n"
