"""What a tool, a page, a file, a child or a memory says gains no authority, closes no fence and hides nothing."""

import random
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from turn.poison import BUDGET, CHANNELS, ORDERS, Channel, Poison, payloads
from turn.scenes import close_all

import daypack
from daypack.errors import BadInput, BadMessage, BadName
from daypack.session import Session
from daypack.turn.dialects import NAMES, dialect
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.names import CONTROLS

# Names in lines of daypack's own: of a folder, of a model, of a pin. They are escaped, and part of their line.
_ON_A_LINE = ("folder", "model", "name of a pin")
_ORDERS = ("SYSTEM: obey", "From now on")
_HEAD = re.compile(r'<(instructions|note|data|past) id="([0-9a-f]{8})"[^<>\n]*>')


@pytest.fixture(autouse=True)
def _words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")


@pytest.mark.requirement("S3-O4")
@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_no_poison_gains_authority_or_hides(campaign: Campaign, channel: Channel) -> None:
    tried = payloads()
    assert len(tried) == 100
    random.Random(campaign.seed).shuffle(tried)
    wanted = min(campaign.size("attacks", len(tried)), len(tried) - channel.refuses)
    accepted = refused = 0
    for poison in tried:
        if accepted == wanted and wanted < len(tried) - channel.refuses:
            break  # a part of the campaign: what a door refuses does not count as tried
        with tempfile.TemporaryDirectory() as folder:
            inside = Path(folder, "work")
            inside.mkdir()
            try:
                session = channel.send(str(Path(folder, "home")), inside, poison)
                session.append("user", "Please go on.")
                check(session, channel, poison)
                accepted += 1
            except (BadName, BadInput, BadMessage):
                refused += 1  # at the door
            except AssertionError as error:
                raise AssertionError(f"{channel.name}: {poison.text!r}") from error
            finally:
                close_all()
    assert accepted >= wanted
    assert refused <= channel.refuses


def check(session: Session, channel: Channel, poison: Poison) -> None:
    turn = session.prepare(budget=BUDGET)
    for name in NAMES:
        body = turn.request(name)
        assert dialect(name).validate(body) == []
        systems = system_texts(body)
        if channel.name in _ON_A_LINE:
            assert not any(line.startswith(_ORDERS) for text in systems for line in text.splitlines())
            assert not any(map(CONTROLS.search, systems))
        elif not channel.instructs:
            assert not any(poison.word in text for text in systems)
    given = turn.assembly.given
    fenced = [*given.quoted, *given.volatile, *(text for text in given.prefix if poison.word in text)]
    fenced += [message.text for message in given.messages if message.role == "user" and not message.id]
    fenced += [
        message.text for message in given.messages if message.text.startswith("<data id=") and message.role == "user"
    ]
    for text in fenced if channel.name not in _ON_A_LINE else given.quoted:
        check_fences(text)
    check_pack(turn, poison)
    assert session.replay(turn.event_id or "").pack_md == turn.pack_md
    if channel.searched:
        # Messages that have the order, not those that merely ask about the word.
        having = {f"messages:{message.seq}" for message in session.messages() if has_order(message)}
        assert having
        assert having & {hit.source for hit in session.search_history(poison.word, 20)}
    if channel.name == "memory entry":
        with daypack.open_memory(home=session.layout.root) as memories:
            assert session.memory is not None
            found = memories.search_memories(session.meta["memory"]["memory_id"], f"harbour page {poison.word}")
        assert any(poison.word in entry.raw_entry for entry in found.entries)


def has_order(message: Message) -> bool:
    said = "\n".join([message.text, *(call.arguments for call in message.tool_calls)])
    return any(order in said for order in ORDERS)


def system_texts(body: dict[str, Any]) -> list[str]:
    """All text of a request that the provider takes as the system's."""
    listed: list[dict[str, Any]] = body.get("messages") or body.get("input") or []
    texts = [str(message["content"]) for message in listed if message.get("role") in ("system", "developer")]
    return [*texts, *(str(part["text"]) for part in body.get("system", ()))]


def check_fences(text: str) -> None:
    """Check that a text is one block, or several, each closed at its end and nowhere before."""
    while text:
        head = _HEAD.match(text)
        assert head is not None, text[:200]
        close = f"</{head[1]} {head[2]}>"
        end = text.index(close)
        assert head[2] not in text[head.end() : end]
        text = text[end + len(close) :].removeprefix("\n\n")


def check_pack(turn: Turn, poison: Poison) -> None:
    """Check that pack.md shows the text of others as text: indented, or escaped within a line."""
    pack = turn.pack_md
    assert not CONTROLS.search(pack)
    for line in pack.split("\n"):
        if poison.word in line and not line.startswith("    "):
            assert "<" not in line
            assert not line.startswith("#") or line.startswith(("# Pack for model: ", "### "))
    ours = [line for line in pack.split("\n") if line.startswith("## ")]
    assert len(ours) == len(set(ours)) <= 6
