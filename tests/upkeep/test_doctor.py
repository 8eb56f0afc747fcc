"""The doctor names what is wrong, where, and what to do, and touches nothing."""

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
def talk(home: str) -> Session:
    """A session with everything in it, closed."""
    with daypack.open_session("work", home=home) as session:
        for number in range(5):
            session.append("assistant", f"text {number}", client_key=f"k{number}")
        session.append_event("custom", {"x": 1})
        session.pin("long", "x" * 10_000)
    return session


def findings(session: Session) -> list[Finding]:
    return list(examine_session(session.history.layout))


def files(session: Session) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session.path.rglob("*") if path.is_file()}


def test_a_sound_session_has_no_findings_and_is_not_touched(talk: Session) -> None:
    before = files(talk)
    assert findings(talk) == []
    assert files(talk) == before


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


def shorten_sidecar(path: Path) -> None:
    sidecar = path / "context" / "offsets" / "messages.idx"
    sidecar.write_bytes(sidecar.read_bytes() + bytes(28))


CASES: list[tuple[str, Callable[[Path], object], str, str, str]] = [
    ("changed line", spoil_log, "damage", "messages.jsonl", "checksum does not match"),
    (
        "torn tail",
        lambda path: append(path / "messages.jsonl", b'{"seq":'),
        "warning",
        "messages.jsonl",
        "a torn line, 7 bytes",
    ),
    (
        "torn events",
        lambda path: append(path / "events.jsonl", b"\0\0"),
        "warning",
        "events.jsonl",
        "a torn line, 2 bytes",
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
        "'asleep' is not a state",
    ),
    ("changed blob", spoil_blob, "damage", "sha256-", "do not match the name"),
    ("missing blob", remove_blob, "damage", "sha256-", "ev-2 (pin.set) refers to it"),
    ("wide open", widen, "note", "messages.jsonl", "others may access it (mode 644)"),
    ("link", link, "damage", "link", "symbolic link"),
    ("left over", lambda path: (path / ".tmp-x").write_bytes(b""), "note", ".tmp-x", "did not finish"),
    ("torn file", lambda path: (path / "messages.jsonl.torn-1").write_bytes(b"x"), "note", "torn-1", "moved aside"),
    ("long sidecar", shorten_sidecar, "warning", "messages.idx", "more lines than the 5"),
]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize(
    ("spoil", "severity", "place", "problem"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_wrong_is_named_with_its_place_and_a_way_out(
    talk: Session, spoil: Callable[[Path], object], severity: str, place: str, problem: str
) -> None:
    old = os.umask(0o077)
    try:
        spoil(talk.path)
    finally:
        os.umask(old)
    found = [one for one in findings(talk) if one.severity == severity and place in one.path and problem in one.problem]
    assert len(found) == 1, findings(talk)
    assert found[0].advice


def test_a_damaged_line_is_placed_by_line_and_offset(talk: Session) -> None:
    start = (talk.path / "messages.jsonl").read_bytes().index(b'{"seq":3')
    spoil_log(talk.path)
    found = [one for one in findings(talk) if one.severity == "damage"]
    assert [(one.line, one.offset) for one in found] == [(3, start)]


def test_a_line_resealed_by_somebody_is_noticed_through_the_sidecar(talk: Session) -> None:
    from daypack.files.jsonl import seal

    log = talk.path / "messages.jsonl"
    lines = log.read_bytes().split(b"\n")
    record = json.loads(lines[2])
    del record["crc"]
    record["content"] = "TEXT 2"
    lines[2] = seal(json.dumps(record, separators=(",", ":")).encode())[0][:-1]
    log.write_bytes(b"\n".join(lines))
    assert [one.problem for one in findings(talk)] == ["does not agree with its log from line 3 on"]


def test_a_missing_text_of_a_turn_or_a_child_is_damage(session: Session) -> None:
    session.put_child("scout", result="Found it. " * 1000)
    session.append("user", "Hi")
    session.prepare(items=[{"context_kind": "manual_note", "content": "Mind the step."}])
    assert [one for one in findings(session) if one.severity == "damage"] == []
    folder = Path(session.history.layout.blob)
    blobs = sorted(folder.iterdir())
    assert len(blobs) >= 3
    for blob in blobs:
        blob.unlink()
    lost = {one.path for one in findings(session) if one.severity == "damage"}
    assert lost == {str(blob) for blob in blobs}
