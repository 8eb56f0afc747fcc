"""A session of the sample that another program recorded: a transcript of Claude Code with its requests, imported.

The transcript is generated here, row by row, in the form that Claude Code writes (see importers/readers), and goes
through the importer as any other file does.
"""

import json
import os
import tempfile
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from daypack.errors import SessionMissing
from daypack.importers.import_file import Destination, import_file
from daypack.serve.sample.outputs import build_log, listing, printer_offer, suite_log, text_file
from daypack.serve.sample.play import FOLDER
from daypack.session import open_session
from daypack.turn.evidence.observed.digests import message_bytes
from daypack.types.canonical import digest_json
from daypack.types.digest import digest_bytes

RECORDED = "sample-claude-code"
AGENT = "claude-code"
_ID = "5a3b1e00-0000-4000-8000-000000000013"
_MODEL = "claude-sonnet-4-5"
_BEGAN = datetime(2026, 4, 27, 15, 2, tzinfo=UTC)
_SYSTEM = [
    {"type": "text", "text": "You are a coding agent. You read, change and run the files of one project for its user."},
    {"type": "text", "text": "Answer briefly. Run the tests after a change."},
]
_REMINDER = (
    "<system-reminder>\nCodebase and user instructions are shown below. Be sure to adhere to these instructions.\n\n"
    f"Contents of {FOLDER}/CLAUDE.md (project instructions, checked into the codebase):\n\n"
    "Fonts live in posters/fonts. Run the tests before layout.toml is changed.\n</system-reminder>\n"
)
_SUMMARY = (
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation.\n\nSummary:\nThe user wants a page for the web from the texts of the "
    "poster. web/build.py writes web/index.html from texts/en.md and texts/de.md. The tests pass. Open: Chinese."
)


class _Turn(NamedTuple):
    """What the user says, the calls with their outputs, and the answer; `gap` is the wait before it, in seconds."""

    says: str
    calls: tuple[tuple[str, dict[str, str], str], ...]
    answers: str
    gap: int = 60
    tools: tuple[str, ...] = ("Read", "Edit", "Bash")
    compacted: bool = False


_TURNS = (
    _Turn(
        "Make a page for the web from the texts of the poster.",
        (
            ("Bash", {"command": "ls -R"}, listing("web/README.md")),
            ("Read", {"file_path": "texts/en.md"}, text_file("en")),
            ("Edit", {"file_path": "web/build.py", "new_string": "def build(): ..."}, "The file was created."),
            ("Bash", {"command": "pytest -v"}, suite_log()),
        ),
        "web/build.py writes web/index.html from texts/en.md, and all tests pass.",
    ),
    _Turn(
        "The German text too, please.",
        (
            ("Read", {"file_path": "texts/de.md"}, text_file("de")),
            ("Edit", {"file_path": "web/build.py", "new_string": 'LANGUAGES = ("en", "de")'}, "The file was changed."),
        ),
        "The page has both languages now, with a link between them.",
        gap=900,
    ),
    _Turn(
        "Look up how much the printer asks for flyers with the address of that page.",
        (("mcp__mail__read", {"name": "offer"}, printer_offer()),),
        "3,000 A6 cost 180.00 euros; 5,000 cost 250.00 euros.",
        tools=("Read", "Edit", "Bash", "mcp__mail__read"),
    ),
    _Turn(
        "And now the Chinese page.",
        (
            ("Read", {"file_path": "texts/zh.md"}, text_file("zh")),
            ("Bash", {"command": "make web"}, build_log(7)),
        ),
        "The page has three languages; the Chinese text uses Noto Sans SC.",
        tools=("Read", "Edit", "Bash", "mcp__mail__read"),
        compacted=True,
    ),
)


def import_recorded(home: str | None, uid: str | None) -> None:
    """Import the transcript once."""
    try:
        open_session(RECORDED, agent=AGENT, home=home, uid=uid, create=False).close()
    except SessionMissing:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{_ID}.jsonl")
            with open(path, "wb") as file:
                file.write(_Transcript().text)
            import_file("claude-code", path, Destination(home, AGENT, uid, RECORDED))


class _Transcript:
    """The rows of the transcript while they are generated, and the messages of the next request."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._now = _BEGAN
        self._sent: list[dict[str, Any]] = []
        self._request: tuple[str, list[str]] = ("", [])
        self._shapes: set[str] = set()
        self._input = 0
        for turn in _TURNS:
            self._play(turn)

    @property
    def text(self) -> bytes:
        """The bytes of the file."""
        return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in self._rows)

    def _play(self, turn: _Turn) -> None:
        self._now += timedelta(seconds=turn.gap)
        if turn.compacted:
            self._compact()
        said = {"role": "user", "content": turn.says}
        self._add("user", message=said)
        if turn.compacted:  # rows of one side that follow each other are one message of a request
            self._sent = [
                {"role": "user", "content": [{"type": "text", "text": text} for text in (_SUMMARY, turn.says)]}
            ]
        elif self._sent:
            self._sent.append(said)
        else:
            files = [{"path": f"{FOLDER}/CLAUDE.md", "type": "Project"}]
            about = {"attachment": {"type": "instructions", "files": files}, "rendered": [{"content": _REMINDER}]}
            self._add("attachment", **about)
            parts = [{"type": "text", "text": text} for text in (_REMINDER, turn.says)]
            self._sent.append({"role": "user", "content": parts})
            self._add("api-request-blob", hash=_hash(self._sent[0]), message=self._sent[0])
        for number, (name, arguments, output) in enumerate(turn.calls):
            call_id = f"toolu_{len(self._rows):04}"
            words = [{"type": "text", "text": "I look at it."}] if not number else []
            use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            self._ask(turn, [*words, use], missed=turn.gap > 300 and not number)
            result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
            self._add("user", message={"role": "user", "content": [result]})
            self._sent.append({"role": "user", "content": [result]})
        self._ask(turn, [{"type": "text", "text": turn.answers}])

    def _ask(self, turn: _Turn, content: list[dict[str, Any]], *, missed: bool = False) -> None:
        """Add a request with all messages so far, and the reply to it."""
        shape = {"system": _SYSTEM, "tools": [_tool(name) for name in turn.tools]}
        shape_hash = _plain(digest_json(shape))
        changed = shape_hash not in self._shapes
        if changed:
            self._shapes.add(shape_hash)
            self._add("api-request-shape", shapeHash=shape_hash, shape=shape)
        before, names = self._request
        hashes = [_hash(message) for message in self._sent]
        keep = len(names) if hashes[: len(names)] == names else 0
        request_id = f"req-{len(self._rows):04}"
        params = {"model": _MODEL, "max_tokens": 32_000}
        messages = [json.loads(message_bytes(message)) for message in self._sent]
        about = {"base": before} if keep else {}
        self._add(
            "api-request",
            id=request_id,
            querySource="sdk",
            shapeHash=shape_hash,
            params=params,
            keep=keep,
            tail=hashes[keep:],
            requestDigest=_plain(digest_json({**params, **shape, "messages": messages})),
            **about,
        )
        self._request = request_id, hashes
        self._now += timedelta(seconds=9)
        reply = {"id": f"msg_{len(self._rows):04}", "type": "message", "role": "assistant", "model": _MODEL}
        stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        usage = self._usage(messages, shape, lost=changed or missed or not keep)
        self._add(
            "assistant",
            requestRef=request_id,
            message={**reply, "content": content, "stop_reason": stop, "usage": usage},
        )
        self._sent.append({"role": "assistant", "content": content})

    def _usage(self, messages: list[Any], shape: dict[str, Any], *, lost: bool) -> dict[str, int]:
        whole = len(json.dumps([messages, shape], ensure_ascii=False)) // 4
        cached = 0 if lost else self._input
        self._input = whole - 3
        return {
            "input_tokens": 3,
            "cache_creation_input_tokens": whole - 3 - cached,
            "cache_read_input_tokens": cached,
            "output_tokens": 40,
        }

    def _compact(self) -> None:
        tokens = {"trigger": "auto", "preTokens": self._input, "postTokens": len(_SUMMARY) // 4}
        self._add("system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=tokens)
        summary = {"role": "user", "content": _SUMMARY}
        self._add("user", message=summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def _add(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 — JSON values
        self._now += timedelta(seconds=2)
        place = {"cwd": FOLDER, "gitBranch": "main", "version": "2.1.325", "isSidechain": False}
        about = (
            {"uuid": f"{_ID[:24]}{len(self._rows):012}"}
            if kind in ("user", "assistant", "system", "attachment")
            else {}
        )
        stamp = self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._rows.append({"type": kind, "sessionId": _ID, "timestamp": stamp, **place, **about, **fields})


def _tool(name: str) -> dict[str, Any]:
    about = {"Read": "Return the text of a file.", "Edit": "Change a file.", "Bash": "Run a command."}
    text = about.get(name, "Return a mail by its name.")
    return {"name": name, "description": text, "input_schema": {"type": "object", "properties": {}}}


def _hash(message: dict[str, Any]) -> str:
    return _plain(digest_bytes(message_bytes(message)))


def _plain(digest: str) -> str:
    return digest.removeprefix("sha256:")
