"""Sessions that the views of calls are shown for, and what must not change while they are looked at."""

import json
from pathlib import Path
from typing import Any

import pytest
from turn.compacting import fill, step
from turn.scenes import stage

from daypack.cli.main import run
from daypack.session import Session
from daypack.turn.turn import Turn

HERE = {"agent": "default", "session": "work"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "read_file", "description": "Read a file", "parameters": {}}}
]


def working(home: str) -> tuple[Session, Turn]:
    """A session with a pin, tools, compactions, stubs and excerpts, and its newest turn."""
    session = stage(home)
    session.pin("rules", "Be brief. Always name the file.")
    fill(session, 2)
    for number in range(98, 102):
        step(session, number, lines=120)
    session.append("user", "Which lamp did we keep in src/harbour_0.py?")
    turn = session.prepare(budget=6000, tools=TOOLS)
    session.accept("The harbour lamp.", usage={"prompt_tokens": 4000, "completion_tokens": 5})
    return session, turn


def repeating(home: str) -> tuple[Session, Turn]:
    """A session in which a tool printed the same large output twice, and its newest turn."""
    session = stage(home)
    output = "".join(f"the lamp {at} of the log burns\n" for at in range(150))
    for number in range(2):
        call = {"id": f"again{number}", "name": "read_file", "arguments": '{"path": "lamp.log"}'}
        session.append("user", f"Read the lamp log, time {number}.")
        session.append("assistant", "", tool_calls=[call])
        session.append("tool", output, tool_call_id=call["id"])
    session.append("user", "Is it burning?")
    return session, session.prepare(budget=20_000)


def truth(session: Session) -> dict[str, bytes]:
    """The bytes of everything in a session that is not derived."""
    folder = Path(session.layout.folder)
    files = [folder / "messages.jsonl", folder / "events.jsonl", folder / "meta.json", *(folder / "blob").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}


def printed(capsys: pytest.CaptureFixture[str], home: str, *command: str) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    run([*command, "--json", "--home", home])
    return json.loads(capsys.readouterr().out)
