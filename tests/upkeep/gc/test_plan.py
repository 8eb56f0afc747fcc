"""Every kind of file, referenced or not, old or new, under each policy."""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from turn.scenes import close_all
from upkeep.gc.collectable import (
    DAY,
    HOUR,
    collect,
    full_session,
    layout_path,
    make_plan,
    reason_for,
    refer,
    removal_names,
    set_age,
    store_blob,
    store_chunk,
    swap_out,
    swap_out_output,
    write_temporary_file,
)

from daypack.files import blobs
from daypack.session import Session
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.types.context import ContextEnvelope
from daypack.types.records import Ref, SwapRecord
from daypack.upkeep.gc.policy import Policy
from daypack.upkeep.rebuild import rebuild

YES_NO = (False, True)


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def session(home: str) -> Session:
    return full_session(home)


# Packs


@pytest.mark.requirement("T8", "S4-GC1", "S4-GC7")
@pytest.mark.parametrize("age", [0, HOUR - 1, HOUR, DAY - 1, DAY, 31 * DAY])
def test_a_pack_is_removed_at_the_age_the_policy_sets(session: Session, age: int) -> None:
    paths = [layout_path(session, "pack"), layout_path(session, "pack_text")]
    set_age(*paths, seconds=age)
    for ttl in (0, HOUR, DAY, 30 * DAY):
        expected = {path.name for path in paths} if age >= ttl else set[str]()
        assert removal_names(make_plan(session, Policy(pack_ttl_seconds=ttl))) == expected
    collect(session)
    assert [path.exists() for path in paths] == [age < DAY] * 2


def test_a_pack_dated_in_the_future_is_kept(session: Session) -> None:
    set_age(layout_path(session, "pack"), seconds=-5)
    assert "pack.json" not in removal_names(make_plan(session, Policy(pack_ttl_seconds=0)))


@pytest.mark.requirement("S4-GC1", "S4-GC0")
def test_a_collected_pack_is_rebuilt_byte_for_byte(session: Session) -> None:
    original = layout_path(session, "pack").read_bytes(), layout_path(session, "pack_text").read_bytes()
    assert {"pack.json", "pack.md"} <= {os.path.basename(removal.path) for removal in collect(session).removed}
    rebuild(session.history, session.turns)
    assert (layout_path(session, "pack").read_bytes(), layout_path(session, "pack_text").read_bytes()) == original


# Swap


def by_refs(session: Session, name: str) -> None:
    refer(session, f"context/swap/chunk/{name}")


def by_record(session: Session, name: str) -> None:
    layout_path(session, "facts").write_text(f'{{"id":"f1","text":"as agreed","source":"swap:{name}"}}\n')


def by_prose(session: Session, name: str) -> None:
    layout_path(session, "context_doc").write_text(f"# Context\n- see {name[:19]} for the log\n")


def by_pack(session: Session, name: str) -> None:
    path = layout_path(session, "pack")
    pack = msgspec.json.decode(path.read_bytes())
    pack["items"].append({"kind": "refs", "source": "context/refs.jsonl", "tokens": 1, "hash": f"sha256:{name[7:]}"})
    path.write_bytes(msgspec.json.encode(pack))


def by_turn(session: Session, name: str) -> None:
    session.prepare(items=[{"context_kind": "manual_note", "content": f"What was there: {name}"}])


def by_turn_for_another(session: Session, name: str) -> None:
    session.prepare(target="reviewer", items=[{"context_kind": "manual_note", "content": f"What was there: {name}"}])


def by_child(session: Session, name: str) -> None:
    session.put_child("rev-2", handoff="x", refs=[Ref("r1", f"context/swap/chunk/{name}", "swap", "y")])


def by_result(session: Session, name: str) -> None:
    session.put_child("rev-2", result=f"It was in {name}.")


def by_pin(session: Session, name: str) -> None:
    session.pin("where", f"The plan is in swap:{name}")


def by_message(session: Session, name: str) -> None:
    session.append("user", f"Recall {name[:19]}, please.")


def by_import(session: Session, name: str) -> None:
    fields: dict[str, Any] = {"scope": "handoff", "lifecycle": "available", "created_at": "2026-01-01T00:00:00Z"}
    data = msgspec.json.encode(ContextEnvelope(context_id="ctx-1", artifact_refs=(f"swap:{name}",), **fields))
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))


def by_export(session: Session, name: str) -> None:
    session.append_event("context.exported", {"context_id": "ctx-2", "refs": [f"swap:{name}"]})


REFERRERS = (
    by_refs, by_record, by_prose, by_pack, by_turn, by_turn_for_another, by_child, by_result, by_pin, by_message,
    by_import, by_export,
)  # fmt: skip


@pytest.mark.requirement("T8", "X28", "S4-GC3", "S4-GC8")
@pytest.mark.parametrize(("ttl", "age"), [(30 * DAY, 30 * DAY - 1), (30 * DAY, 30 * DAY), (DAY, 2 * DAY), (0, 0)])
@pytest.mark.parametrize(("referred", "rebuildable"), list(itertools.product(YES_NO, YES_NO)))
def test_a_chunk_is_removed_when_it_is_old_rebuildable_and_unreferenced(
    session: Session, age: int, ttl: int, *, referred: bool, rebuildable: bool
) -> None:
    if rebuildable:
        path = swap_out(session, 1, 5)
    else:
        path = store_chunk(
            session, SwapRecord(id=blobs.name_of(b"x"), kind="file", source="f", summary="", tokens=1), b"x"
        )
    if referred:
        by_refs(session, path.name)
    set_age(path, seconds=age)
    collect(session, Policy(swap_ttl_seconds=ttl))
    assert path.exists() is not (age >= ttl and rebuildable and not referred)


@pytest.mark.requirement("T8", "X28", "S4-GC3")
@pytest.mark.parametrize("referrer", REFERRERS)
def test_a_chunk_is_kept_while_anything_refers_to_it(
    session: Session, referrer: Callable[[Session, str], None]
) -> None:
    kept, other = swap_out(session, 1, 5), swap_out(session, 1, 4)
    referrer(session, kept.name)
    removed = {os.path.basename(removal.path) for removal in collect(session, Policy(pack_ttl_seconds=10**9)).removed}
    assert removed == {other.name}
    assert kept.exists()
    assert "referenced by" in reason_for(make_plan(session), kept)


@pytest.mark.requirement("X28")
def test_an_output_shown_as_a_stub_in_the_window_keeps_its_chunk(session: Session) -> None:
    [seq, _] = [message.seq for message in session.messages() if message.role == "tool"]
    path = swap_out_output(session, seq)
    collect(session)
    assert path.exists()
    assert reason_for(make_plan(session), path) == f"referenced by messages:{seq}"


@pytest.mark.requirement("X28")
@pytest.mark.parametrize(
    ("original", "spoiled"),
    [
        (b"msg-5", b"msg-4"),
        (b"msg-1", b"msg-0"),
        (b"messages.jsonl", b"events.jsonl"),
        (b"}\n", b"}\n\n"),
        (b'"hash":"sha256:', b'"hash":"sha256:0'),
        (b"", b"the words themselves"),
        (b"", b"{}"),
        (b"", b"\xff\xfe"),
    ],
)
@pytest.mark.parametrize("renamed", YES_NO)
def test_a_chunk_that_history_cannot_reproduce_is_kept(
    session: Session, original: bytes, spoiled: bytes, *, renamed: bool
) -> None:
    """Even if its name matches its content: a chunk that cannot be reproduced may be the only copy."""
    chunk = swap_out(session, 1, 5)
    data = chunk.read_bytes().replace(original, spoiled) if original else spoiled
    path = chunk.with_name(blobs.name_of(data)) if renamed else chunk
    chunk.unlink()
    path.write_bytes(data)
    assert path.name not in removal_names(make_plan(session))
    collect(session)
    assert path.read_bytes() == data


@pytest.mark.requirement("X28")
def test_a_collected_chunk_can_be_made_again_from_its_line_in_the_index(session: Session) -> None:
    path = swap_out(session, 2, 7)
    data = path.read_bytes()
    assert path.name in {os.path.basename(removal.path) for removal in collect(session).removed}
    assert make_plan(session).missing == ()  # referenced and absent, but reproducible
    path.unlink(missing_ok=True)
    assert swap_out(session, 2, 7).read_bytes() == data


def test_files_that_are_neither_chunks_nor_blobs_are_not_touched(session: Session) -> None:
    store_blob(session, "x", None)
    odd = [swap_out(session, 1, 2).with_name("notes"), layout_path(session, "dedup", "blob", "sha256-abc")]
    for path in odd:
        path.write_text("mine")
    collect(session, Policy(swap_ttl_seconds=0, dedup_min_refs=9))
    assert all(path.read_text() == "mine" for path in odd)


# Dedup


@pytest.mark.requirement("T8", "X30", "S4-GC2", "S4-GC9")
@pytest.mark.parametrize("occurrences", [0, 1, 2])
@pytest.mark.parametrize("named", YES_NO)
@pytest.mark.parametrize("claims", [None, (), ("messages:1-3", "tool:call-9", "swap:old", "child:x", "nonsense")])
@pytest.mark.parametrize("old", YES_NO)
def test_a_blob_is_kept_while_it_has_enough_references_whatever_the_index_claims(
    session: Session, occurrences: int, claims: tuple[str, ...] | None, *, named: bool, old: bool
) -> None:
    text = "Another output, repeated as often as the case requires. " * 60
    for number in range(occurrences):
        call = {"id": f"again-{number}", "name": "bash", "arguments": "{}"}
        session.append_many(
            [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "content": text, "tool_call_id": call["id"]},
            ]
        )
    path = store_blob(session, text.rstrip("\n"), claims)
    if claims is None:  # as if the index had not been written yet
        index = layout_path(session, "dedup", "index.jsonl")
        lines = index.read_text().splitlines(keepends=True)
        index.write_text("".join(line for line in lines if path.name not in line))
    if named:
        refer(session, "out.txt", hash=f"sha256:{path.name[7:]}")
    if not old:
        set_age(path)
    just_written = claims is None and not old
    for least in range(5):
        kept = occurrences + named >= least or just_written
        assert (path.name not in removal_names(make_plan(session, Policy(dedup_min_refs=least)))) is kept
    collect(session, Policy(dedup_min_refs=2))
    assert path.exists() is (occurrences + named >= 2 or just_written)
    listed = path.name in layout_path(session, "dedup", "index.jsonl").read_text()
    assert listed is (path.exists() and claims is not None)


@pytest.mark.requirement("X30")
def test_references_are_counted_even_if_the_index_lists_none(session: Session) -> None:
    [path] = layout_path(session, "dedup", "blob").iterdir()
    index = layout_path(session, "dedup", "index.jsonl")
    index.write_bytes(index.read_bytes().replace(b'"refs":["tool:call-1","tool:call-2"]', b'"refs":[]'))
    assert b'"refs":[]' in index.read_bytes()
    collect(session, Policy(dedup_min_refs=2))
    assert path.exists()
    collect(session, Policy(dedup_min_refs=3))
    assert not path.exists()


def test_a_mention_in_an_event_or_a_chunk_is_a_reference(session: Session) -> None:
    previous, cited = store_blob(session, "# Memory, before the rewrite", None), store_blob(session, "cited", None)
    session.append_event("memory.rewritten", {"previous": previous.name})
    folder = layout_path(session, "swap", "chunk")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "by-hand").write_text(f"see sha256:{cited.name[7:]}")
    assert not {previous.name, cited.name} & removal_names(make_plan(session))
    assert {previous.name, cited.name} <= removal_names(make_plan(session, Policy(dedup_min_refs=2)))


def test_unreadable_lines_of_the_index_are_kept(session: Session) -> None:
    path = store_blob(session, "unreferenced text", ())
    index = layout_path(session, "dedup", "index.jsonl")
    with index.open("ab") as file:
        file.write(b"not json\n")
    before = index.read_bytes().splitlines(keepends=True)
    collect(session)
    assert not path.exists()
    assert index.read_bytes() == b"".join(line for line in before if path.name.encode() not in line)


# Temporary files


@pytest.mark.requirement("T8")
@pytest.mark.parametrize(
    "place", [".", "blob", "context", "context/pinned", "context/swap/chunk", "context/child/rev-1"]
)
@pytest.mark.parametrize("age", [60, DAY - 1, DAY, 400 * DAY])
def test_a_temporary_file_of_a_crashed_writer_is_removed_after_a_day(session: Session, place: str, age: int) -> None:
    path = write_temporary_file(session.path / place)
    set_age(path, seconds=age)
    collect(session)
    assert path.exists() is (age < DAY)


@pytest.mark.parametrize("age", [60, 2 * DAY])
def test_a_temporary_folder_of_a_crashed_rebuild_is_removed_after_a_day(session: Session, age: int) -> None:
    folder = session.path / "context" / "pinned.tmp-4711.140"
    write_temporary_file(folder / "deep")
    set_age(folder, seconds=age)
    collect(session)
    assert folder.exists() is (age < DAY)


@pytest.mark.parametrize("name", [".tmp-notes", "a.tmp-1.2.md", ".tmp-x.1", ".hidden"])
def test_a_file_that_only_looks_temporary_is_kept(session: Session, name: str) -> None:
    for place in (session.path, session.path / "context" / "pinned"):
        (place / name).write_text("mine")
    collect(session)
    assert all((place / name).exists() for place in (session.path, session.path / "context" / "pinned"))
