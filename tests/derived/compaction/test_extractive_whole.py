"""The compactor without a model: whatever was said, the document is valid and every bullet was said."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from derived.compaction.conversations import check, document, picked, raw
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.artifacts.observations import Artifacts
from daypack.derived.compaction.extractive import extract
from daypack.derived.compaction.worth import weigh
from daypack.derived.raw_history import raw_of
from daypack.importers.import_file import Destination, import_file
from daypack.session import open_session
from daypack.types.compaction import SECTIONS
from daypack.types.history import Message, ToolCall
from daypack.types.records import ContextDoc

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("DAYPACK_DATA") or ROOT.parent / "shared" / "data")
FILES = sorted(DATA.glob("transcripts/claude-code/*.jsonl")) + sorted(DATA.glob("transcripts/swe-agent/*.traj"))


@pytest.mark.requirement("S1-P2.3", "X34")
def test_a_conversation_becomes_a_valid_document_with_separate_sections_and_no_model() -> None:
    history = raw(
        ("user", "Please make the export in src/export.py faster. Do not change the file format."),
        Message(
            role="assistant", content="Let me look.", tool_calls=(ToolCall("c1", "Read", '{"path": "src/export.py"}'),)
        ),
        Message(role="tool", content="def run_export(): ...", tool_call_id="c1"),
        (
            "assistant",
            "The export is slow because `run_export` opens 4,000 files one by one. We still need to measure it.",
        ),
    )
    bullets = extract(history, read_artifacts(history))
    check(history, bullets)
    assert document(bullets) == ContextDoc(
        task="Please make the export in src/export.py faster.",
        decisions=("Do not change the file format.",),
        facts=("The export is slow because `run_export` opens 4,000 files one by one.",),
        pending=("We still need to measure it.",),
    )


@pytest.mark.parametrize(
    "text",
    [
        "Bitte baue den Export um. Wir verwenden SQLite. Der Server läuft auf Port 81. Die Doku ist offen.",
        "Peux-tu refaire l'export ? Nous avons décidé d'utiliser SQLite. Le problème est le port. Il reste à tester.",
        "¿Puedes rehacerlo? Decidimos usar SQLite. El problema es el puerto 81. Falta el servidor.",
        "请重写导出功能。我们决定使用 SQLite。原因是端口 8081 被占用。文档还没写。",
        "書き直してください。SQLiteを採用することに決定しました。原因はポート8081でした。テストはまだです。",
    ],
)
def test_other_languages_fill_the_sections_too(text: str) -> None:
    history = raw(("user", text))
    bullets = extract(history, Artifacts())
    check(history, bullets)
    assert {one.section for one in bullets} >= {"task", "decisions", "facts", "pending"}


def test_a_language_without_cues_is_told_by_place_and_literals() -> None:
    history = raw(("user", "Сервер слушает порт 8081 и читает файл src/app.py. Погода сегодня хорошая."))
    bullets = extract(history, Artifacts())
    check(history, bullets)
    assert "Сервер слушает порт 8081 и читает файл src/app.py." in [one.text for one in bullets]


def test_a_long_sentence_ends_at_a_clause_without_a_mark() -> None:
    tail = ", and ".join(f"the file number {at} stays where it is" for at in range(30))
    history = raw(("user", f"We decided to use the cache, {tail}."))
    told = picked(history, "decisions")
    check(history, extract(history, Artifacts()))
    assert told
    assert all(one.endswith("stays where it is") for one in told)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_weight_is_between_nothing_and_one(section: Any) -> None:
    strong = "We decided to use port 8081 because the root cause is in src/app.py; we still need to fix the error."
    assert 0 <= weigh("", section) <= weigh("Well then.", section) < weigh(strong, section) <= 1


def test_the_same_messages_always_give_the_same_bullets() -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from daypack.derived.compaction.extractive import extract\n"
        "from daypack.derived.raw_history import raw_of\n"
        "from daypack.derived.artifacts.observations import Artifacts\n"
        "from daypack.types.history import Message\n"
        "texts = [f'We decided to use port {n} in src/a{n % 7}.py because of Ada and Bob.' for n in range(60)]\n"
        "made = [Message(seq=n + 1, role='user', content=text) for n, text in enumerate(texts)]\n"
        "print(extract(raw_of(made, 1, 60, redacting=False), Artifacts()))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script, str(ROOT / "src")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(told) == 1
    assert "We decided" in told.pop()


HOSTILE = [
    "",
    "\x00\x01",
    "(" * 20_000,
    "*" * 20_000,
    "`" * 999,
    "<" * 20_000,
    "<system-reminder>" * 3_000,
    "</a>" * 5_000,
    "a" * 100_000,
    "a " * 50_000,
    "- " * 9_999,
    "#" * 9_999,
    "1. " * 9_999,
    "```\n" * 3_001,
    "? " * 9_999,
    "\n" * 50_000,
    "\ud800 lone half, we decided",
    "we decided " * 3_000,
    '"' * 9_999,
    "\u202e\u200d\ufeff We decided to use \u0301\u0301",
    "### \n- \n1. \n> \n- [ ] \n",
    "# Context\n\n## Task\n- [ ] We decided to use ## Facts",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_message_is_too_strange(text: str) -> None:
    calls = (
        ToolCall("c1", "TodoWrite", text),
        ToolCall("c2", "update_plan", "[" * 5_000),
        ToolCall("c3", "todowrite", "3"),
    )
    history = raw(("user", text), Message(role="assistant", content=text), ("user", f"Please do it. {text}"))
    plans = raw(Message(role="assistant", tool_calls=calls), Message(role="tool", content=text, tool_call_id="c1"))
    check(history, extract(history, Artifacts()))
    assert extract(plans, Artifacts()) == ()


SAYINGS = st.sampled_from(
    [
        "We decided to use `a_b.py`, not c.py.",
        "The root cause is port 80",
        "TODO: fix v1.2.3!",
        "ok",
        "Should we?",
        "- item one",
        "1. **bold** item:",
        "- [ ] open box",
        "```\ncode\n```",
        "> quoted, because of it",
        "```",
        "我们决定使用它。还没写",
        "Next steps:",
        "<tag>never use it</tag>",
        "| a | b |",
        "    indented because",
        "Ada lives in Turin",
        '"quoted" and (open',
    ]
)
TEXTS = st.lists(SAYINGS | st.text(max_size=40), max_size=12).map("\n".join) | st.lists(SAYINGS, max_size=8).map(
    " ".join
)
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), max_size=8)


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_every_bullet_stands_so_in_its_message(lines: list[tuple[str, str]]) -> None:
    history = raw(*lines)
    bullets = extract(history, Artifacts())
    check(history, bullets)
    assert extract(history, Artifacts()) == bullets


@pytest.mark.skipif(not FILES, reason=f"no transcripts in {DATA}: set DAYPACK_DATA")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:40])
def test_real_sessions_become_valid_documents(path: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    kind = "claude-code" if path.suffix == ".jsonl" else "swe-agent"
    name = import_file(kind, str(path), Destination(home))[0].session
    with open_session(name, home=home, create=False) as session:
        messages = list(session.messages())
    history = raw_of(messages, messages[0].seq, messages[-1].seq, redacting=True)
    bullets = extract(history, read_artifacts(history))
    check(history, bullets)
    assert {one.section for one in bullets} >= {"task"}
