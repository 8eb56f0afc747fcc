"""Images in a turn: they take what their provider charges for their size."""

import base64
import struct
from typing import Any

import pytest

import daypack
from daypack.errors import BudgetTooSmall
from daypack.session import Session
from daypack.turn.dialects import NAMES


def picture(width: int, height: int) -> dict[str, str]:
    header = struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\2\0\0\0" + b"1234"
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + header).decode()
    return {"type": "image", "source": f"data:image/png;base64,{data}"}


def test_one_pixel_fits_a_small_budget(session: Session) -> None:
    session.append("user", ["What is this?", picture(1, 1)])
    turn = session.prepare(budget=1000)
    assert turn.tokens < 300
    for name in NAMES:
        assert "image" in str(turn.messages(name))


def test_the_model_of_the_call_decides_what_an_image_takes(session: Session) -> None:
    words = session.append("user", "What is this?")
    plain = session.prepare(budget=9000, model="gpt-4o", dry_run=True).tokens
    session.append("user", [words.text, picture(1024, 1024)])
    sizes = {
        model: session.prepare(budget=9000, model=model, dry_run=True).tokens - 2 * plain
        for model in ("gpt-4o", "gpt-5", "gpt-4.1-mini")
    }
    assert sizes["gpt-4o"] - sizes["gpt-5"] == 765 - 630
    assert sizes["gpt-4.1-mini"] - sizes["gpt-4o"] == 1659 - 765
    assert 0 < sizes["gpt-4o"] - 765 < 16
    first = session.prepare(budget=9000, model="gpt-4o")
    second = session.prepare(budget=9000, model="gpt-5")
    assert (second.new_epoch, first.tokens - second.tokens) == ("", 765 - 630)  # the same bytes, counted differently
    assert first.event_id
    assert session.replay(first.event_id).items == first.items


def test_the_model_of_a_session_decides_when_the_call_names_none(home: str) -> None:
    with daypack.open_session("claude", home=home, model="claude-opus-4-6") as session:
        session.append("user", [picture(1000, 1000)])
        assert 1296 <= session.prepare(budget=9000, dry_run=True).tokens < 1320


def test_an_image_behind_an_address_takes_the_maximum(session: Session) -> None:
    session.append("user", [{"type": "image_url", "image_url": {"url": "https://example.org/plan.png"}}])
    assert 1445 <= session.prepare(budget=9000, model="gpt-4o", dry_run=True).tokens < 1470
    assert 4784 <= session.prepare(budget=9000, dry_run=True).tokens < 4810
    with pytest.raises(BudgetTooSmall, match=r"needs 4,7\d\d tokens"):
        session.prepare(budget=4000)


def test_a_stored_count_of_an_older_version_is_not_used(session: Session) -> None:
    session.append("user", [picture(1, 1)])
    before = session.prepare(budget=9000, dry_run=True).tokens
    meter = session.turns.inputs.meter(None)
    entry = session.turns.inputs.messages(meter).measure(session.tail(1)[0], 5000)
    assert entry.cost.tokens == before


@pytest.mark.parametrize("detail", ["low", "high", "original"])
def test_every_dialect_of_openai_is_told_how_closely_to_look(home: str, detail: str) -> None:
    url = "https://example.org/boat.jpg"
    shapes: tuple[dict[str, Any], ...] = (
        {"type": "image_url", "image_url": {"url": url, "detail": detail}},
        {"type": "input_image", "image_url": url, "detail": detail},
        {"type": "image", "source": url, "detail": detail},
    )
    for number, part in enumerate(shapes):
        with daypack.open_session(f"work-{number}", home=home) as session:
            session.append("user", [part])
            turn = session.prepare()
            assert turn.request("openai")["messages"][0]["content"][0]["image_url"] == {"url": url, "detail": detail}
            assert turn.request("responses")["input"][0]["content"][0]["detail"] == detail


def test_a_detail_that_no_api_knows_is_left_out(home: str) -> None:
    url = "https://example.org/boat.jpg"
    shapes: tuple[dict[str, Any], ...] = (
        {"type": "image_url", "image_url": {"url": url, "detail": "sharp"}},
        {"type": "input_image", "image_url": url, "detail": 3},
        {"type": "image", "source": url, "detail": "sharp"},
    )
    for number, part in enumerate(shapes):
        with daypack.open_session(f"work-{number}", home=home) as session:
            session.append("user", [part])
            turn = session.prepare()
            assert turn.request("openai")["messages"][0]["content"][0]["image_url"] == {"url": url}
            assert turn.request("responses")["input"][0]["content"][0]["detail"] == "auto"
