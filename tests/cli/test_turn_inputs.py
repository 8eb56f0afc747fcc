"""`--items` and `--ids` of pack, prepare and export: the same shapes everywhere, and what export writes is one."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.cli.main import run
from daypack.session import Session
from daypack.types.kinds import TARGETS

Command = Callable[..., subprocess.CompletedProcess[str]]
NOTE = {"context_kind": "manual_note", "item_id": "note", "content": "The tide turns at noon.", "policy_refs": ["p-1"]}
LINK = {
    "context_kind": "tool_result",
    "item_id": "log",
    "title": "Build log",
    "content_mode": "ref",
    "content_ref": "https://ci.example/17/log",
    "byte_size": 48_120,
}
LINE = "Build log (tool_result): https://ci.example/17/log; 48,120 bytes; open the URL to see it"
IDS = {"task_id": "t-1", "native_ids": {"a2a": "c-1"}}


def write(name: str, text: str | bytes) -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def shapes() -> dict[str, str]:
    """The two items in every shape of a file."""
    return {
        "array": json.dumps([NOTE, LINK]),
        "indented": json.dumps([NOTE, LINK], indent=2),
        "lines": f"{json.dumps(NOTE)}\n\n{json.dumps(LINK)}\n",
    }


def refs(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [found["item_ref"] for found in json.loads(done.stdout)["items"] if found["item_ref"].startswith("item:")]


@pytest.mark.requirement("S3-O1", "S3-O3")
@pytest.mark.parametrize("shape", ["array", "indented", "lines"])
@pytest.mark.parametrize("door", ["pack", "prepare"])
def test_items_are_read_from_a_file_and_from_standard_input(
    command: Command, talk: Session, shape: str, door: str
) -> None:
    talk.close()
    text = shapes()[shape]
    assert refs(command(door, "talk", "--json", "--items", write("items", text))) == ["item:note", "item:log"]
    assert refs(command(door, "talk", "--json", "--items", "-", stdin=text.encode())) == ["item:note", "item:log"]
    request = command(door, "talk", "--dialect", "openai", "--items", "items").stdout
    assert LINE in request
    assert "The tide turns at noon." in request


@pytest.mark.requirement("S3-O1", "S3-O4")
def test_what_export_writes_is_a_file_of_items(command: Command, talk: Session) -> None:
    talk.close()
    write("items", json.dumps([NOTE, LINK]))
    assert command("prepare", "talk", "--items", "items", "--ids", json.dumps(IDS)).returncode == 0
    assert command("export", "talk", "--event", "latest", "--out", "envelope.json").returncode == 0
    first = json.loads(Path("envelope.json").read_text())
    assert command("append", "other", "Hello").returncode == 0
    done = command("export", "other", "--items", "envelope.json", "--ids", json.dumps(IDS))
    assert done.returncode == 0, done.stderr
    second = json.loads(done.stdout)
    before, after = (
        {found["item_id"]: found for found in document["surfaces"][0]["items"]} for document in (first, second)
    )
    for name in ("item:note", "item:log"):
        fields = ("item_id", "context_kind", "content_mode", "content", "content_ref", "policy_refs", "source_refs")
        assert [after[name].get(field) for field in fields] == [before[name].get(field) for field in fields]
    assert second["metadata"]["ids"] == first["metadata"]["ids"] == IDS
    read = refs(command("pack", "talk", "--json", "--items", "-", stdin=done.stdout.encode()))
    assert {"item:note", "item:log"} <= set(read)


def test_a_single_item_and_an_empty_file_are_files_of_items(command: Command, talk: Session) -> None:
    talk.close()
    assert refs(command("pack", "talk", "--json", "--items", write("one", json.dumps(NOTE)))) == ["item:note"]
    assert refs(command("pack", "talk", "--json", "--items", write("none", "\n"))) == []
    assert refs(command("pack", "talk", "--json", "--items", write("array", "[]"))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", ["not JSON"]),
        ("nonsense", ["not JSON"]),
        ("[1]", ["items, item 1", "must be an object, not int"]),
        ('"text"', ["items, item 1", "must be an object, not str"]),
        (b"\xff", ["not UTF-8: byte 0"]),
        (f"{json.dumps(NOTE)}\n{{\n", ["items, line 2", "not JSON"]),
        (f"{json.dumps(NOTE)}\n[]\n", ["items, line 2", "must be an object, not list"]),
        (json.dumps([NOTE, {"content": "x"}]), ["items, item 2", "context_kind"]),
        (json.dumps([NOTE, {**NOTE, "item_id": "b", "priority": "high"}]), ["items, item 2", "priority"]),
        (json.dumps([NOTE, {**NOTE, "item_id": "b", "visibility": []}]), ["items, item 2", "visibility"]),
        (json.dumps([NOTE, NOTE]), ["items, item 2", "'note' is used twice"]),
        (json.dumps({"context_id": 5, "surfaces": []}), ["context_id"]),
    ],
)
@pytest.mark.parametrize("door", ["pack", "prepare", "export"])
def test_a_bad_file_is_refused_with_the_item_and_the_field(
    command: Command, talk: Session, door: str, text: Any, said: list[str]
) -> None:
    talk.close()
    events = Path(talk.layout.events).read_bytes()
    done = command(door, "talk", "--items", write("items", text))
    assert done.returncode == 2
    assert done.stdout == ""
    for words in said:
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert Path(talk.layout.events).read_bytes() == events


def test_a_file_that_is_missing_and_a_changed_envelope_are_refused(command: Command, talk: Session) -> None:
    talk.close()
    assert "No such file" in command("pack", "talk", "--items", "nowhere").stderr
    command("export", "talk", "--out", "envelope.json")
    write("envelope.json", Path("envelope.json").read_text().replace("List the files", "Delete the files"))
    done = command("pack", "talk", "--items", "envelope.json")
    assert done.returncode == 2
    assert "content does not match its digest" in done.stderr


@pytest.mark.requirement("S3-O13")
def test_ids_are_an_argument_a_file_or_standard_input(command: Command, talk: Session) -> None:
    talk.close()
    text = json.dumps(IDS)
    for given in (("--ids", text), ("--ids", write("ids.json", text)), ("--ids", "-")):
        done = command("prepare", "talk", "--json", *given, stdin=text.encode())
        assert json.loads(done.stdout)["ids"] == IDS
        assert json.loads(command("export", "talk", "--event", "latest").stdout)["events"][0]["task_id"] == "t-1"
    assert "ids" not in json.loads(command("pack", "talk", "--json").stdout)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ('{"taskid": "t"}', "did you mean task_id?"),
        ('{"task_id": 5}', "ids.task_id"),
        ("{", "not JSON"),
        ("nowhere.json", "No such file"),
    ],
)
@pytest.mark.parametrize("door", ["pack", "prepare", "export"])
def test_bad_ids_are_refused(command: Command, talk: Session, door: str, ids: str, said: str) -> None:
    talk.close()
    done = command(door, "talk", "--ids", ids)
    assert done.returncode == 2
    assert said in done.stderr


def test_ids_that_are_no_object_are_refused(command: Command, talk: Session) -> None:
    talk.close()
    done = command("pack", "talk", "--ids", write("ids.json", '["task_id"]'))
    assert "ids.json" in done.stderr
    assert "must be an object, not list" in done.stderr


def test_standard_input_is_read_by_one_option(command: Command, talk: Session) -> None:
    talk.close()
    for door in ("pack", "prepare", "export"):
        done = command(door, "talk", "--items", "-", "--ids", "-", stdin=b"[]")
        assert done.returncode == 2
        assert "--items and --ids both read standard input" in done.stderr
    assert "--tools and --items" in command("pack", "talk", "--items", "-", "--tools", "-").stderr


def test_a_recorded_turn_is_exported_with_its_own_items(command: Command, talk: Session) -> None:
    talk.close()
    command("prepare", "talk")
    done = command("export", "talk", "--event", "latest", "--items", write("items", "[]"))
    assert done.returncode == 2
    assert "--event names a recorded one" in done.stderr


def test_a_recorded_export_names_the_ids(command: Command, talk: Session) -> None:
    command("export", "talk", "--ids", json.dumps(IDS), "--record")
    assert talk.events()[-1].data["ids"] == IDS


@pytest.mark.parametrize("target", TARGETS)
def test_exports_with_references_and_ids_conform_to_the_envelope_model(
    command: Command, talk: Session, target: str
) -> None:
    talk.close()
    gone = {**LINK, "item_id": "gone", "content_ref": "messages:99"}
    secret = {**LINK, "item_id": "secret", "content_ref": f"https://ci.example/?token={'ghp_' + 'a1B2c3D4e5F6' * 3}"}
    items = [{**value, "visibility": [target]} for value in (NOTE, LINK, gone, secret)]
    ids = json.dumps({**IDS, "policy_refs": ["p-1"], "actor_refs": [{"actor": "a"}]})
    done = command("export", "talk", "--target", target, "--items", write("items", json.dumps(items)), "--ids", ids)
    assert done.returncode == 0, done.stderr
    assert run(["conform", write("envelope.json", done.stdout)]) == 0
