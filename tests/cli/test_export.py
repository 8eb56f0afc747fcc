"""`daypack export` and what its documents hold for whom."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

import daypack
from daypack.session import Session
from daypack.types.context import ContextEnvelope

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with a tool call, thinking and a pin."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.append("user", "List the files")
    session.append(
        "assistant",
        [{"type": "thinking", "text": "I should look."}],
        tool_calls=[{"id": "call-1", "name": "ls", "arguments": "{}"}],
    )
    session.append("tool", "a.py", tool_call_id="call-1", name="ls")
    session.append("assistant", "There is a.py.")
    session.append("user", "What is in it?")
    return session


def read(done: subprocess.CompletedProcess[str]) -> ContextEnvelope:
    """Return the envelope a command printed; one that does not have the model's shape fails."""
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=ContextEnvelope)


def words(envelope: ContextEnvelope) -> dict[str, str]:
    return {item.item_id: item.text for item in envelope.surfaces[0].items}


def offer(path: Path, *items: dict[str, Any]) -> str:
    """Write an envelope of another system and return its path."""
    document = {
        "context_id": "ctx-elsewhere",
        "scope": "handoff",
        "lifecycle": "exported",
        "created_at": "2026-01-01T00:00:00Z",
        "surfaces": [
            {
                "surface_id": "s",
                "scope": "handoff",
                "created_at": "2026-01-01T00:00:00Z",
                "items": [
                    {"context_kind": "manual_note", "content_mode": "inline", "visibility": ["model"], **item}
                    for item in items
                ],
            }
        ],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return os.fspath(path)


@pytest.mark.requirement("S3-O1")
@pytest.mark.parametrize(
    ("scope", "target"),
    [
        ("turn", "evidence_export"),
        ("task", "evidence_export"),
        ("session", "evidence_export"),
        ("tool_invocation", "evidence_export"),
        ("review", "reviewer"),
        ("handoff", "peer_agent"),
    ],
)
def test_each_scope_is_one_document_for_its_target(command: Command, talk: Session, scope: str, target: str) -> None:
    more = ("--call", "call-1") if scope == "tool_invocation" else ()
    envelope = read(command("export", "talk", "--scope", scope, "--record", *more))
    assert (envelope.scope, envelope.selections[0].target) == (scope, target)
    event = talk.events()[-1]
    assert event.type == "context.exported"
    assert (event.data["context_id"], event.data["scope"], event.data["target"]) == (envelope.context_id, scope, target)


def test_a_task_begins_with_the_newest_question(command: Command, talk: Session) -> None:
    shown = words(read(command("export", talk.name, "--scope", "task")))
    assert [name for name in shown if name.startswith("messages:")] == ["messages:5"]


def test_a_tool_call_goes_with_its_result_and_nothing_else(command: Command, talk: Session) -> None:
    done = command("export", talk.name, "--scope", "tool_call", "--call", "call-1")
    envelope = read(done)
    assert envelope.scope == "tool_invocation"
    assert list(words(envelope)) == ["messages:2", "messages:3"]
    missing = command("export", talk.name, "--scope", "tool_call")
    assert missing.returncode == 1
    assert "call-1" in missing.stderr


def test_a_handoff_has_neither_instructions_nor_thinking(command: Command, talk: Session) -> None:
    done = command("export", talk.name, "--scope", "handoff")
    assert "What is in it?" in done.stdout
    assert "Be brief." not in done.stdout
    assert "I should look." not in done.stdout
    assert "I should look." in command("export", talk.name, "--scope", "review").stdout


def test_a_recorded_turn_is_exported_as_it_was(command: Command, talk: Session) -> None:
    recorded = talk.prepare()
    talk.pin("rules", "Be long.")
    talk.append("user", "Later.")
    envelope = read(command("export", "talk", "--event", "latest"))
    assert envelope.context_id == recorded.record.context_id
    assert words(envelope)["pin:rules.md"] == "Be brief."
    assert "messages:6" not in words(envelope)


def test_a_file_is_written_once_unless_forced_and_its_digest_recorded(command: Command, talk: Session) -> None:
    done = command("export", "talk", "--out", "e.json", "--record")
    data = Path("e.json").read_bytes()
    digest = f"sha256:{sha256(data).hexdigest()}"
    items = len(msgspec.json.decode(data, type=ContextEnvelope).item_refs)
    assert done.stdout == f"e.json: {items} items for evidence_export, {len(data):,} bytes, {digest}\n"
    assert talk.events()[-1].data["digest"] == digest
    count = len(talk.events())
    again = command("export", "talk", "--out", "e.json")
    assert again.returncode == 2
    assert "the file already exists" in again.stderr
    assert (len(talk.events()), Path("e.json").read_bytes()) == (count, data)
    printed = json.loads(command("export", "talk", "--out", "e.json", "--force", "--record", "--json").stdout)
    assert printed["digest"] == f"sha256:{sha256(Path('e.json').read_bytes()).hexdigest()}" != digest
    assert (printed["file"], printed["event_id"]) == ("e.json", talk.events()[-1].id)
    assert os.listdir() == ["e.json"]


@pytest.mark.requirement("X43")
def test_an_export_is_recorded_only_on_request(command: Command, talk: Session) -> None:
    before = (talk.path / "events.jsonl").read_bytes()
    done = command("export", "talk")
    assert done.returncode == 0
    assert (talk.path / "events.jsonl").read_bytes() == before


def test_what_is_printed_has_the_digest_that_is_recorded(command: Command, talk: Session) -> None:
    talk.append("user", "\u202e turned \x7f")
    done = command("export", "talk", "--record")
    assert talk.events()[-1].data["digest"] == f"sha256:{sha256(done.stdout.encode()).hexdigest()}"


@pytest.mark.requirement("T9")
def test_an_item_for_tools_only_is_neither_in_the_model_pack_nor_in_the_user_export(
    command: Command, talk: Session, tmp_path: Path
) -> None:
    tool = {"item_id": "key", "content": "the sesame of the tool", "visibility": ["tool"]}
    shared = {"item_id": "note", "content": "the note for all", "visibility": ["tool", "model", "user"]}
    document = offer(tmp_path / "in.json", tool, shared)
    assert command("import-envelope", document, "--session", "talk").returncode == 0
    packed = command("prepare", "talk", "--json").stdout
    (left,) = [one for one in json.loads(packed)["omitted"] if one["item_ref"].endswith(":key")]
    assert left["reason"] == "not_visible_to_target"
    model = [(talk.path / "context" / name).read_text(encoding="utf-8") for name in ("pack.json", "pack.md")]
    model += [command("replay", "talk", "--dialect", name).stdout for name in ("openai", "responses", "anthropic")]
    assert not any("sesame" in text for text in [packed, *model])
    assert all("the note for all" in text for text in model[1:])
    for scope in ("turn", "session", "task"):
        user = command("export", "talk", "--target", "user", "--scope", scope).stdout
        assert "sesame" not in user
        assert "the note for all" in user
    assert "sesame" in command("export", "talk", "--target", "tool").stdout


@pytest.mark.requirement("T10")
def test_two_of_five_candidates_that_do_not_fit_are_left_out_with_a_reason(
    command: Command, talk: Session, tmp_path: Path
) -> None:
    items = [{"item_id": f"note-{number}", "content": f"Note number {number}."} for number in range(1, 6)]
    command("import-envelope", offer(tmp_path / "in.json", *items), "--session", "talk")
    command("switch", "talk", "identity", "on")
    # Identity, pin, five messages and the time take eight places of eleven.
    command("prepare", "talk", "--budget", '{"items": 11}')
    selection = read(command("export", "talk", "--event", "latest", "--target", "model")).selections[0]
    names = [f"import:ctx-elsewhere:note-{number}" for number in range(1, 6)]
    assert [name for name in selection.selected_item_refs if name in names] == names[:1:-1]  # the newest
    left = {one.item_ref: one.reason for one in selection.omitted_item_refs}
    assert left == dict.fromkeys(names[:2], "budget_limit")
    assert set(names) <= set(selection.candidate_item_refs)


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("--scope", "session", "--event", "latest"), 2, "--event requires --scope turn"),
        (("--call", "call-1"), 2, "--call requires --scope tool_invocation"),
        (("--force",), 2, "--force requires --out"),
        (("--scope", "everything"), 2, "invalid choice"),
        (("--target", "nobody"), 2, "invalid choice"),
        (("--event", "latest"), 1, "no turn for model is recorded yet"),
        (("--scope", "tool_call", "--call", "call-9"), 1, "no call 'call-9'"),
        (("--out", "nowhere/e.json"), 1, "No such file"),
    ],
)
def test_wrong_use_is_told_and_nothing_recorded(
    command: Command, talk: Session, args: tuple[str, ...], code: int, text: str
) -> None:
    done = command("export", "talk", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert [event.type for event in talk.events()] == ["pin.set", "tool.called", "tool.returned"]


def test_html_writes_the_page_about_a_session_as_one_new_file(command: Command, talk: Session) -> None:
    talk.prepare()
    done = command("export", "tal", "--html")
    assert done.returncode == 0, done.stderr
    page = Path("talk.html")
    data = page.read_text(encoding="utf-8")
    assert data.startswith("<!doctype html>")
    assert f"{page}: 1 of 1 call, 5 of 5 messages, 0 longer texts, {len(data.encode()):,} bytes" in done.stdout
    assert "contains the conversation" in done.stderr
    assert page.stat().st_mode & 0o077 == 0
    again = command("export", "talk", "--html")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert command("export", "talk", "--html", "--force").returncode == 0


def test_html_is_described_for_programs_and_says_when_redaction_is_off(
    command: Command, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_REDACTION", "off")
    with daypack.open_session("open", home=home, durability="os") as session:
        session.append("user", "hello")
    done = command("export", "open", "--html", "--out", "page.html", "--calls", "3", "--json")
    told = json.loads(done.stdout)
    assert (told["file"], told["calls"], told["messages"], told["redacted"]) == ("page.html", 0, 1, False)
    assert told["bytes"] == Path("page.html").stat().st_size
    assert "redaction is off" in command("export", "open", "--html").stderr


@pytest.mark.parametrize(
    "option",
    [["--scope", "turn"], ["--target", "model"], ["--event", "latest"], ["--call", "c"], ["--ids", "{}"], ["--record"]],
)
def test_html_takes_no_option_of_a_document(command: Command, talk: Session, option: list[str]) -> None:
    refused = command("export", "talk", "--html", *option)
    assert refused.returncode == 2
    assert f"--html cannot be combined with {option[0]}" in refused.stderr
    assert not Path("talk.html").exists()


@pytest.mark.parametrize(
    ("out", "problem"),
    [
        ("missing/page.html", "no such folder [missing]\n  → create it: mkdir -p missing"),
        ("folder", "the path is a folder [folder]\n  → name a file in it: --out folder/page.html"),
        ("-", "--html cannot write to standard output [arguments]\n  → name a file: --out FILE"),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_html_names_what_is_wrong_with_a_file(
    command: Command, talk: Session, out: str, problem: str, force: list[str]
) -> None:
    Path("folder").mkdir(exist_ok=True)
    before = sorted(Path().rglob("*"))
    refused = command("export", "talk", "--html", "--out", out, *force)
    assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
    assert sorted(Path().rglob("*")) == before


def test_calls_are_chosen_for_html_only(command: Command, talk: Session) -> None:
    refused = command("export", "talk", "--calls", "3")
    assert (refused.returncode, "--calls requires --html" in refused.stderr) == (2, True)


def test_html_needs_nothing_but_the_core(talk: Session, home: str) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('starlette', 'uvicorn', 'anyio', 'mcp')))\n"
        f"from daypack.cli.main import run; sys.exit(run(['export', 'talk', '--html', '--home', {home!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=home)
    assert done.returncode == 0, done.stderr
    assert Path(home, "talk.html").exists()
