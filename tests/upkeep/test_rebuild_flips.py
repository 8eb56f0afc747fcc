"""Bytes of a session are flipped, cut or repeated: `rebuild` and `rebuild --verify` answer or refuse, never break."""

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from campaigns import Campaign
from turn.scenes import close_all, item
from upkeep.test_rebuild import full_session

from daypack.cli.main import EXIT_DAMAGE, run

ODD = (b"null", b"[]", b"{}", b'"\\ud800"', b"1e999", b"-1", b"[" * 3_000, b"\xff\xfe", b"\x00" * 40, b"true")


def damage(folder: Path, chance: random.Random) -> str:
    """Damage a file of a session; return what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    logs = [path for path in files if path.suffix == ".jsonl" and path.parent == folder]
    path = chance.choice(logs if chance.random() < 0.5 else files)
    data = bytearray(path.read_bytes())
    at, size = chance.randrange(len(data)), chance.choice((1, 1, 16, 600))
    how = chance.choice(("flip", "flip", "flip", "cut", "repeat", "odd", "digit", "remove"))
    if how == "flip":
        for offset in range(at, min(at + size, len(data))):
            data[offset] ^= chance.randrange(1, 256)
    elif how == "cut":
        del data[at : at + size]
    elif how == "repeat":
        data[at:at] = data[at : at + size]
    elif how == "odd":
        data[at : at + size] = chance.choice(ODD)
    elif how == "digit":  # another number, or a word of the format
        places = [place for place, byte in enumerate(data) if chr(byte).isdigit()] or [at]
        data[chance.choice(places)] = chance.choice(b"0123456789-")
    path.unlink()
    if how != "remove":
        path.write_bytes(data)
    return f"{how} {path.name} at {at}, {size} bytes"


@pytest.mark.requirement("T1")
def test_a_damaged_session_is_verified_and_rebuilt_or_refused(
    home: str, tmp_path: Path, campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    session = full_session(home, tmp_path / "workspace")
    session.prepare(items=[item("tool_result", "Wind: five knots.")])
    name, relative = session.name, session.path.relative_to(home)
    close_all()
    chance = random.Random(campaign.seed)
    codes = Counter[int]()
    for number in range(campaign.size("faults", 300)):
        copy = str(tmp_path / f"flip-{number}")
        shutil.copytree(home, copy)
        done = [damage(Path(copy) / relative, chance) for _ in range(chance.choice((1, 1, 3)))]
        before = {path: path.read_bytes() for path in Path(copy, relative).rglob("*") if path.is_file()}
        for command in (["rebuild", name, "--verify"], ["rebuild", name, "--verify", "--json"], ["rebuild", name]):
            print(command, done)  # shown if it fails
            code = run([*command, "--home", copy])
            codes[code] += 1
            assert code in (0, 1, 2, EXIT_DAMAGE), done
            if "--verify" in command:
                now = {path: path.read_bytes() for path in before if os.path.exists(path)}
                assert now == before, done
        assert "Traceback" not in capsys.readouterr().err
        shutil.rmtree(copy)
    assert codes[0]
    assert codes[EXIT_DAMAGE]
