"""Artifacts: files, commands, tests, addresses and errors, as calls and results show them."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daypack.derived.artifacts.artifacts import Artifacts, FileTouch, join_refs, merge, read_artifacts, refs_of
from daypack.derived.raw_history import raw_of
from daypack.importers.import_file import Destination, import_file
from daypack.session import open_session
from daypack.types.history import Image, Message, Text, ToolCall
from daypack.types.records import Ref

CLAUDE = {"format": "claude-code"}
FAILED = {"format": "claude-code", "result": {"is_error": True}}
ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("DAYPACK_DATA") or ROOT.parent / "shared" / "data") / "transcripts"


class Talk:
    """Writes the messages of a session: a call and its result each."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def say(self, role: Any, content: Any, **rest: Any) -> "Talk":
        self.messages.append(Message(seq=len(self.messages) + 1, role=role, content=content, **rest))
        return self

    def call(self, name: str, arguments: Any, result: str | None = "", meta: dict[str, Any] | None = CLAUDE) -> "Talk":
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        number = len(self.messages)
        self.say("assistant", "", tool_calls=(ToolCall(f"c{number}", name, text),))
        return self if result is None else self.say("tool", result, tool_call_id=f"c{number}", meta=meta)

    def bash(self, command: str, result: str = "", code: int = 0) -> "Talk":
        words = f"Exit code {code}\n{result}" if code else result
        return self.call("Bash", {"command": command}, words, FAILED if code else CLAUDE)

    def read(self) -> Artifacts:
        return artifacts_of(self.messages)


def artifacts_of(messages: list[Message]) -> Artifacts:
    return read_artifacts(raw_of(messages, 1, max(len(messages), 1), redacting=False))


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def test_files_are_known_with_their_messages_lines_and_digests() -> None:
    talk = Talk().call("Read", {"file_path": "/w/a.py"}, numbered("x = 1\ny = 2\n"))
    talk.call("Edit", {"file_path": "/w/a.py", "old_string": "x = 1", "new_string": "x = 3"}, "updated")
    talk.call("Write", {"file_path": "/w/b.py", "content": "new\n"}, "File created successfully at: /w/b.py")
    talk.call("Read", {"file_path": "/w/c.py", "offset": 10, "limit": 3}, "    10→a\n    11→b\n    12→c")
    talk.bash("rm /w/b.py")
    assert talk.read().files == (
        FileTouch("/w/a.py", read=(2,), written=(3,), digest=digest("x = 3\ny = 2\n"), lines=((1, 3),)),
        FileTouch("/w/b.py", created=(5,), deleted=(9,)),
        FileTouch("/w/c.py", read=(8,), lines=((10, 12),)),
    )


def test_a_digest_is_given_only_when_the_whole_text_is_known() -> None:
    talk = Talk().call("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "updated")
    talk.call("Write", {"file_path": "b", "content": "x"}).bash("sed -i s/x/y/ b")
    talk.call("Write", {"file_path": "c", "content": "key = [redacted:github-token]"})
    talk.call("Read", {"file_path": "d"}, "     1→" + "x" * 2000)
    talk.call("Read", {"file_path": "e"}, numbered("x\n" * 2001))
    talk.call("Write", {"file_path": "f", "content": "f"}).call("Edit", {"file_path": "f", "old_string": "g"}, "ok")
    talk.call("MultiEdit", {"file_path": "b2", "edits": [{"old_string": "a", "new_string": "b"}]}, "ok")
    assert [(one.path, one.digest) for one in talk.read().files] == [
        (name, None) for name in ["a", "b", "c", "d", "e", "f", "b2"]
    ]


def test_texts_are_known_from_patches_here_documents_and_several_edits() -> None:
    patch = "*** Begin Patch\n*** Add File: p.md\n+one\n+two\n*** End Patch"
    talk = Talk().call("apply_patch", {"input": patch}, "Success. Updated the following files:\nA p.md", None)
    talk.bash("cat > h.sh <<'EOF'\necho $HOME\nEOF")
    talk.call("mcp__fs__read_text_file", {"path": "m.txt"}, "the text", None)
    talk.call("Write", {"file_path": "w", "content": "a a b"})
    edits = [{"old_string": "a", "new_string": "c", "replace_all": True}, {"old_string": "b", "new_string": "d"}]
    talk.call("MultiEdit", {"file_path": "w", "edits": edits})
    found = {one.path: one.digest for one in talk.read().files}
    texts = {"p.md": "one\ntwo\n", "h.sh": "echo $HOME\n", "m.txt": "the text", "w": "c c d"}
    assert found == {path: digest(text) for path, text in texts.items()}


def test_a_call_that_failed_touches_nothing_and_is_still_named() -> None:
    talk = Talk().call("Read", {"file_path": "gone"}, "<tool_use_error>File does not exist.</tool_use_error>", FAILED)
    talk.call(
        "Write", {"file_path": "x", "content": "1"}, "The user doesn't want to proceed with this tool use.", FAILED
    )
    found = talk.read()
    assert found.files == (FileTouch("gone", failed=(1,)), FileTouch("x", failed=(3,)))
    assert [(one.text, one.seq, one.command) for one in found.errors] == [("File does not exist.", 2, "gone")]


def test_commands_have_their_exit_codes() -> None:
    talk = Talk().bash("make build", "ok").bash("make lint", "a.py: bad", 2)
    talk.call("shell", {"command": ["bash", "-lc", "cargo check"]}, '{"output":"x","metadata":{"exit_code":101}}', None)
    talk.call("Bash", {"command": "sleep 9 &"}, "Command running in background with ID: b1").bash("grep x y", "", 1)
    found = [(one.command, one.seq, one.result, one.exit, one.failed) for one in talk.read().commands]
    assert found == [
        ("make build", 1, 2, 0, False),
        ("make lint", 3, 4, 2, True),
        ("cargo check", 5, 6, 101, True),
        ("sleep 9 &", 7, 8, None, False),
        ("grep x y", 9, 10, 1, False),
    ]


def test_tests_have_their_outcome_and_numbers() -> None:
    talk = Talk().bash("pytest -q tests/a.py", "FAILED tests/a.py::t - x\n1 failed, 4 passed in 1s", 1)
    talk.bash("mix test 2>&1 | tail -3", "14 doctests, 68 tests, 2 failures").bash("npm test", "")
    talk.bash("cargo test | head -1", "running 3 tests")
    found = [(one.runner, one.outcome, one.passed, one.failed, one.targets) for one in talk.read().tests]
    assert found == [
        ("pytest", "failed", 4, 1, ("tests/a.py",)),
        ("mix test", "failed", 66, 2, ()),
        ("npm test", "passed", None, None, ()),
        ("cargo test", "unknown", None, None, ()),
    ]


@pytest.mark.parametrize(
    ("first", "second", "resolved"),
    [
        (("git push", "fatal: no upstream", 128), ("git add . && git push -u origin x", "ok", 0), True),
        (("git push", "fatal: no upstream", 128), ("git push -f", "fatal: no", 128), False),
        (("python a.py", "ValueError: x", 1), ("python b.py", "ok", 0), False),
        (("cd w && python a.py", "ValueError: x", 1), ("python a.py", "ok", 0), True),
        (("pytest tests/a.py", "1 failed in 1s", 1), ("pytest tests/a.py", "3 passed in 1s", 0), True),
        (("pytest tests/a.py", "1 failed in 1s", 1), ("pytest -q", "30 passed in 1s", 0), True),
        (("pytest tests/a.py", "1 failed in 1s", 1), ("pytest tests/b.py", "3 passed in 1s", 0), False),
        (("pytest", "1 failed in 1s", 1), ("pytest tests/b.py", "3 passed in 1s", 0), False),
        (("pytest a b", "1 failed in 1s", 1), ("pytest a b | tail -1", "3 passed in 1s", 0), True),
        (("pytest a.py | tail -1", "1 failed in 1s", 0), ("pytest a.py | tail -1", "1 passed in 1s", 0), True),
    ],
)
def test_an_error_is_resolved_when_the_same_thing_succeeds_later(
    first: tuple[str, str, int], second: tuple[str, str, int], *, resolved: bool
) -> None:
    error = Talk().bash(*first).bash(*second).read().errors[0]
    assert error.seq == 2
    assert error.resolved_by == (4 if resolved else None)
    assert (error.resolution is not None) is resolved


def test_errors_of_file_tools_are_resolved_by_the_same_kind_of_step() -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    talk = Talk().call("Edit", edit, "<tool_use_error>String to replace not found</tool_use_error>", FAILED)
    talk.call("Read", {"file_path": "a.py"}, numbered("z"))
    assert [one.resolved_by for one in talk.read().errors] == [None]
    talk.call("Edit", edit, "updated")
    assert [(one.resolved_by, one.resolution) for one in talk.read().errors] == [(5, "a.py was written")]


def test_errors_of_other_tools_are_resolved_by_their_next_success() -> None:
    talk = (
        Talk()
        .call("WebFetch", {"url": "https://a.org"}, "Error: 503", None)
        .call("query", {"sql": "x"}, "Error: syntax", None)
    )
    talk.call("WebFetch", {"url": "https://b.org"}, "page").call("query", {"sql": "y"}, "1 row")
    talk.call("WebFetch", {"url": "https://a.org"}, "page")
    assert [(one.tool, one.resolved_by) for one in talk.read().errors] == [("WebFetch", 9), ("query", 8)]


def test_an_agent_without_exit_codes_shows_its_errors_in_the_output() -> None:
    talk = Talk()
    for output in ("Traceback (most recent call last):\n  File x\nKeyError: 'a'\n", "345\n"):
        talk.say("assistant", "run it", meta={"format": "swe-agent", "action": "python r.py\n"})
        talk.say("user", f"{output}(Open file: n/a)\n(Current directory: /w)\nbash-$")
    assert [(one.text, one.seq, one.resolved_by) for one in talk.read().errors] == [("KeyError: 'a'", 2, 4)]


def test_an_editor_that_remembers_its_file_is_followed() -> None:
    talk = Talk()

    def act(action: str, output: str, opened: str) -> None:
        talk.say("assistant", "", meta={"action": action})
        talk.say("user", f"{output}\n(Open file: {opened})\n(Current directory: /w)\nbash-$")

    act("open src/a.py 3", "[File: /w/src/a.py (9 lines total)]\n1:x\n2:y", "/w/src/a.py")
    act("edit 1:1\nz\nend_of_edit", "[File: /w/src/a.py (9 lines total)]\n1:z\nFile updated.", "/w/src/a.py")
    act("scroll_down", "[File: /w/src/a.py (9 lines total)]\n3:c\n4:d", "/w/src/a.py")
    assert talk.read().files == (FileTouch("src/a.py", read=(2, 6), written=(3,), lines=((1, 4),)),)


def test_addresses_are_fetched_found_or_named() -> None:
    talk = (
        Talk()
        .say("user", "look at https://a.org/x.")
        .call("WebFetch", {"url": "https://a.org/x"}, "page https://no.org")
    )
    talk.call("WebSearch", {"query": "q"}, 'Links: [{"url":"https://b.org"}]').bash(
        "curl -s https://c.org", "https://no.org"
    )
    assert [(one.url, one.fetched, one.named) for one in talk.read().urls] == [
        ("https://a.org/x", (2,), (1,)),
        ("https://b.org", (), (5,)),
        ("https://c.org", (6,), ()),
    ]


def test_a_call_without_a_result_counts_as_made() -> None:
    talk = Talk().call("Write", {"file_path": "a", "content": "x"}, None).call("Bash", {"command": "make"}, None)
    found = talk.read()
    assert found.files == (FileTouch("a", written=(1,), digest=digest("x")),)
    assert [(one.command, one.result, one.exit) for one in found.commands] == [("make", 0, None)]


def test_calls_that_share_an_id_are_told_apart() -> None:
    talk = Talk()
    for path in ("a", "b"):
        talk.say("assistant", "", tool_calls=(ToolCall("same", "Read", json.dumps({"path": path})),))
        talk.say("tool", "text", tool_call_id="same")
    assert [(one.path, one.read) for one in talk.read().files] == [("a", (2,)), ("b", (4,))]


def test_refs_name_each_path_once_with_what_was_done_to_it() -> None:
    talk = Talk().call("Read", {"file_path": "/w/a.py"}, numbered("x"))
    talk.call("Edit", {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"})
    talk.call("Edit", {"file_path": "/w/a.py", "old_string": "y", "new_string": "z"})
    talk.call("WebFetch", {"url": "https://a.org"}, "page").bash("mv b c && ls d", "x").call(
        "Read", {"path": "no"}, "Error: no", None
    )
    refs = refs_of(talk.read())
    assert refs == (
        Ref("", "/w/a.py", "file", "written 2x, read; last messages:5", "messages:2-5", digest("z")),
        Ref("", "https://a.org", "artifact", "fetched; last messages:7", "messages:7"),
        Ref("", "b", "file", "deleted; last messages:9", "messages:9"),
        Ref("", "c", "file", "created; last messages:9", "messages:9"),
        Ref("", "d", "file", "listed; last messages:9", "messages:9"),
        Ref("", "no", "file", "failed; last messages:11", "messages:11"),
    )
    lines = [msgspec.json.encode(ref) for ref in refs]
    assert tuple(msgspec.json.decode(line, type=Ref) for line in lines) == refs


def test_the_ref_of_a_file_that_was_read_names_the_message_with_its_text() -> None:
    talk = Talk().call("Read", {"file_path": "a"}, "x").bash("cat b", "y").call("Read", {"file_path": "c"}, None)
    assert [(one.path, one.summary, one.source) for one in refs_of(talk.read())] == [
        ("a", "read; last messages:2", "messages:2"),
        ("b", "read; last messages:4", "messages:4"),
        ("c", "read; last messages:5", "messages:5"),
    ]


def test_refs_of_two_ranges_are_joined() -> None:
    first = Ref("r7", "a", "file", "created, read 2x; last messages:9", "messages:3-9", "sha256:1")
    second = Ref("", "a", "file", "written 3x, read; last messages:20", "messages:12-20")
    joined = join_refs(first, second)
    assert (joined.summary, joined.source) == ("created, written 3x, read 3x; last messages:20", "messages:3-20")
    assert joined.hash is None
    only_read = Ref("", "a", "file", "read; last messages:20", "messages:20")
    assert join_refs(first, only_read).hash == "sha256:1"


# Steps with their result, of which any history can be made.
STEPS: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("Read", {"file_path": "a.py"}, numbered("x\ny"), CLAUDE),
    ("Read", {"file_path": "b.py", "offset": 4, "limit": 2}, "     4→p\n     5→q", CLAUDE),
    ("Write", {"file_path": "a.py", "content": "new"}, "updated", CLAUDE),
    ("Edit", {"file_path": "a.py", "old_string": "e", "new_string": "a"}, "updated", CLAUDE),
    (
        "Edit",
        {"file_path": "a.py", "old_string": "e", "new_string": "a"},
        "<tool_use_error>String to replace not found",
        FAILED,
    ),
    ("Read", {"file_path": "c.py"}, "<tool_use_error>File does not exist.", FAILED),
    ("Bash", {"command": "pytest t.py"}, "Exit code 1\nE   assert 0\n1 failed in 1s", FAILED),
    ("Bash", {"command": "pytest t.py"}, "3 passed in 1s", CLAUDE),
    ("Bash", {"command": "pytest"}, "9 passed in 1s", CLAUDE),
    ("Bash", {"command": "git push"}, "Exit code 128\nfatal: no", FAILED),
    ("Bash", {"command": "git commit -m x && git push"}, "ok", CLAUDE),
    ("Bash", {"command": "rm c.py"}, "", CLAUDE),
    ("WebFetch", {"url": "https://a.org"}, "Error: 404", FAILED),
    ("WebFetch", {"url": "https://a.org"}, "page", CLAUDE),
    ("mcp__x__ask", {"q": 1}, "Error: no", FAILED),
    ("mcp__x__ask", {"q": 2}, "yes", CLAUDE),
]


def without_digests(artifacts: Artifacts) -> Artifacts:
    return replace(artifacts, files=tuple(replace(one, digest=None) for one in artifacts.files))


@given(st.lists(st.sampled_from(STEPS), max_size=24), st.data())
def test_ranges_can_be_read_one_by_one_and_added_up(steps: list[Any], data: st.DataObject) -> None:
    talk = Talk()
    for step in steps:
        talk.call(*step)
    cut = 2 * data.draw(st.integers(0, len(steps)))
    whole, parts = talk.read(), merge(artifacts_of(talk.messages[:cut]), artifacts_of(talk.messages[cut:]))
    assert without_digests(parts) == without_digests(whole)
    for one, other in zip(parts.files, whole.files, strict=True):
        assert one.digest in (other.digest, None)


@given(st.lists(st.sampled_from(STEPS), max_size=12))
def test_artifacts_are_the_same_every_time_and_fit_into_a_line(steps: list[Any]) -> None:
    talk = Talk()
    for step in steps:
        talk.call(*step)
    found = talk.read()
    assert talk.read() == found
    assert msgspec.json.decode(msgspec.json.encode(found), type=Artifacts) == found
    assert {ref.path for ref in refs_of(found)} == {one.path for one in found.files} | {one.url for one in found.urls}


ODD = st.text(st.characters(), max_size=60)
ARGUMENTS = ODD | st.dictionaries(st.sampled_from(["path", "command", "input", "url", "edits"]), ODD).map(json.dumps)
MESSAGES = st.builds(
    Message,
    seq=st.integers(0, 50),
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=ODD | st.builds(Text, ODD).map(lambda part: (part, Image("x.png"))),
    tool_calls=st.lists(
        st.builds(
            ToolCall, st.sampled_from("ab"), st.sampled_from(["Read", "Bash", "apply_patch", "edit", "?"]), ARGUMENTS
        ),
        max_size=2,
    ).map(tuple),
    tool_call_id=st.none() | st.sampled_from("ab"),
    meta=st.none() | st.fixed_dictionaries({}, optional={"action": ODD | st.none(), "result": ODD | st.none()}),
)


@given(st.lists(MESSAGES, max_size=8))
def test_no_history_is_too_odd_to_be_read(messages: list[Message]) -> None:
    found = artifacts_of(messages)
    msgspec.json.encode(found)
    refs_of(found)
    merge(found, found)


@pytest.mark.parametrize(
    "text",
    [
        "[File: " * 3000,
        "(Open file: " * 3000,
        '"path":"' * 5000,
        "a.b/" * 20_000,
        "\n" * 50_000,
        "1→" * 30_000,
        "9" * 30_000,
    ],
)
def test_long_hostile_texts_are_read(text: str) -> None:
    talk = Talk().call("Read", {"path": "a"}, text).call("Read", text, text).call("Bash", {"command": text}, text)
    talk.say("assistant", text, meta={"action": f"edit 1:2\n{text}"}).say("user", text)
    assert "a" in {one.path for one in talk.read().files}


def named_paths(messages: list[Message]) -> Iterator[str]:
    for call in (call for message in messages for call in message.tool_calls):
        fields = json.loads(call.arguments)
        yield from (fields[name] for name in ("file_path", "path", "filename", "notebook_path") if name in fields)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no transcripts in {DATA}: set DAYPACK_DATA")
def test_every_path_of_real_sessions_has_a_ref(home: str) -> None:
    files = [("claude-code", path) for path in sorted(DATA.glob("claude-code/*.jsonl"))]
    files += [("swe-agent", path) for path in sorted(DATA.glob("swe-agent/*.traj"))]
    seen = 0
    for form, path in files:
        for report in import_file(form, str(path), Destination(home)):
            with open_session(report.session, home=home) as session:
                messages = list(session.messages())
            found = artifacts_of(messages)
            named = set(named_paths(messages))
            assert named <= {ref.path for ref in refs_of(found)}
            assert {one.result for one in found.commands} <= {0, *(one.seq for one in messages)}
            seen += len(named)
    assert seen > 70
