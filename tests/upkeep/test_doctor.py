"""The doctor reports each problem with its place and a remedy, and changes nothing."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.session import Session
from daypack.upkeep.doctor import Finding, examine_session


@pytest.fixture
def closed(home: str) -> Session:
    """A closed session with messages, an event and a captured pin."""
    with daypack.open_session("work", home=home) as session:
        for number in range(5):
            session.append("assistant", f"text {number}", client_key=f"k{number}")
        session.append_event("custom", {"x": 1})
        session.pin("long", "x" * 10_000)
    return session


def findings(session: Session) -> list[Finding]:
    return list(examine_session(session.layout))


def files(session: Session) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session.path.rglob("*") if path.is_file()}


def test_a_sound_session_has_no_findings_and_is_not_touched(closed: Session) -> None:
    before = files(closed)
    assert findings(closed) == []
    assert files(closed) == before


def spoil_log(path: Path) -> None:
    log = path / "messages.jsonl"
    log.write_bytes(log.read_bytes().replace(b"text 2", b"text 9"))


def spoil_blob(path: Path) -> None:
    next((path / "blob").iterdir()).write_bytes(b"other")


def remove_blob(path: Path) -> None:
    shutil.rmtree(path / "blob")


def widen(path: Path) -> None:
    (path / "messages.jsonl").chmod(0o644)


def link(path: Path) -> None:
    (path / "context" / "link").symlink_to("/etc/hostname")


def lengthen_sidecar(path: Path) -> None:
    sidecar = path / "context" / "offsets" / "messages.idx"
    sidecar.write_bytes(sidecar.read_bytes() + bytes(28))


CASES: list[tuple[str, Callable[[Path], object], str, str, str]] = [
    ("changed line", spoil_log, "damage", "messages.jsonl", "checksum does not match"),
    (
        "torn tail",
        lambda path: append(path / "messages.jsonl", b'{"seq":'),
        "warning",
        "messages.jsonl",
        "incomplete line at the end, 7 bytes",
    ),
    (
        "torn events",
        lambda path: append(path / "events.jsonl", b"\0\0"),
        "warning",
        "events.jsonl",
        "incomplete line at the end, 2 bytes",
    ),
    (
        "unsealed",
        lambda path: append(path / "messages.jsonl", b'{"role":"user"}\n'),
        "note",
        "messages.jsonl",
        "without a checksum",
    ),
    ("no meta", lambda path: (path / "meta.json").unlink(), "warning", "meta.json", "is missing"),
    ("bad meta", lambda path: (path / "meta.json").write_bytes(b"{"), "damage", "meta.json", "not JSON"),
    ("list meta", lambda path: (path / "meta.json").write_bytes(b"[]"), "damage", "meta.json", "not an object"),
    (
        "unknown format",
        lambda path: (path / "meta.json").write_bytes(b'{"protocols":{"history":"2"}}'),
        "damage",
        "meta.json",
        "history format '2'",
    ),
    ("odd tokenizer", lambda path: (path / "meta.json").write_bytes(b'{"tokenizer":5}'), "damage", "meta.json", "'5'"),
    (
        "odd setting",
        lambda path: (path / "meta.json").write_bytes(b'{"durability":5}'),
        "damage",
        "meta.json",
        "durability",
    ),
    ("no messages", lambda path: (path / "messages.jsonl").unlink(), "damage", "messages.jsonl", "is missing"),
    ("no events", lambda path: (path / "events.jsonl").unlink(), "damage", "events.jsonl", "is missing"),
    (
        "wrong state",
        lambda path: (path / "state").write_bytes(b"asleep"),
        "warning",
        "state",
        "unknown state 'asleep'",
    ),
    ("changed blob", spoil_blob, "damage", "sha256-", "does not match its digest"),
    ("missing blob", remove_blob, "damage", "sha256-", "referenced by ev-2 (pin.set)"),
    ("wide permissions", widen, "note", "messages.jsonl", "accessible to other users (mode 644)"),
    ("link", link, "damage", "link", "symbolic link"),
    ("temporary file", lambda path: (path / ".tmp-x").write_bytes(b""), "note", ".tmp-x", "interrupted write"),
    (
        "torn file",
        lambda path: (path / "messages.jsonl.torn-1").write_bytes(b"x"),
        "note",
        "torn-1",
        "interrupted append",
    ),
    ("long sidecar", lengthen_sidecar, "warning", "messages.idx", "more entries than its log has lines (5)"),
]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize(
    ("spoil", "severity", "place", "problem"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_problem_is_reported_with_its_place_and_a_remedy(
    closed: Session, spoil: Callable[[Path], object], severity: str, place: str, problem: str
) -> None:
    old = os.umask(0o077)
    try:
        spoil(closed.path)
    finally:
        os.umask(old)
    matching = [
        finding
        for finding in findings(closed)
        if finding.severity == severity and place in finding.path and problem in finding.problem
    ]
    assert len(matching) == 1, findings(closed)
    assert matching[0].advice


def test_a_damaged_line_is_placed_by_line_and_offset(closed: Session) -> None:
    start = (closed.path / "messages.jsonl").read_bytes().index(b'{"seq":3')
    spoil_log(closed.path)
    damage = [finding for finding in findings(closed) if finding.severity == "damage"]
    assert [(finding.line, finding.offset) for finding in damage] == [(3, start)]


def test_a_changed_line_with_a_new_checksum_is_detected_by_the_index(closed: Session) -> None:
    from daypack.files.jsonl import seal

    log = closed.path / "messages.jsonl"
    lines = log.read_bytes().split(b"\n")
    record = json.loads(lines[2])
    del record["crc"]
    record["content"] = "TEXT 2"
    lines[2] = seal(json.dumps(record, separators=(",", ":")).encode())[0][:-1]
    log.write_bytes(b"\n".join(lines))
    assert [finding.problem for finding in findings(closed)] == ["differs from its log, starting at line 3"]


def test_a_missing_text_of_a_turn_or_a_child_is_damage(session: Session) -> None:
    session.put_child("scout", result="Found it. " * 1000)
    session.append("user", "Hi")
    session.prepare(items=[{"context_kind": "manual_note", "content": "Mind the step."}])
    assert [finding for finding in findings(session) if finding.severity == "damage"] == []
    folder = Path(session.layout.blob)
    blobs = sorted(folder.iterdir())
    assert len(blobs) >= 3
    for blob in blobs:
        blob.unlink()
    lost = {finding.path for finding in findings(session) if finding.severity == "damage"}
    assert lost == {str(blob) for blob in blobs}
