"""Digests that stay must not confirm a guess: none of them may depend on what was erased."""

import json
import os
import re
from hashlib import sha256
from pathlib import Path

from upkeep.erase.secrets import leaky, more_than_fits, place

import daypack
from daypack.turn.items import Excerpt
from daypack.turn.pack.fence import excerpts_text
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

_DIGEST = re.compile(rb"[0-9a-f]{12,64}")


def digests(root: Path) -> set[bytes]:
    """Return everything below a folder that may be a digest, shortened ones included.

    Decimal digits alone are times: two sessions that are made in the same second share some.
    """
    found: set[bytes] = set()
    for path in root.rglob("*"):
        if path.is_file() and path.name != "erase.key":
            found.update(_DIGEST.findall(os.fsencode(path.name) + b"\n" + path.read_bytes()))
    return {digest for digest in found if not digest.isdigit()}


def everywhere(root: Path, secret: str) -> Path:
    """Make a session whose every digest of a text, an id or a range depends on the secret."""
    with leaky(str(root), secret=secret) as session:
        session.add_question(f"Is {secret} still valid?", needed_for="the gauge")
        session.resolve_question(session.add_question(f"And {secret} for two?"), answer=f"Yes, {secret}.")
        for call in ("call-8", "call-9"):
            arguments = json.dumps({"cmd": f"echo {secret}"})
            session.append("assistant", "", tool_calls=[{"id": call, "name": "run", "arguments": arguments}])
            session.append("tool", f"the word {secret}\n" + "a line of output\n" * 500, tool_call_id=call)
        tool = {"name": "look", "description": f"uses {secret}", "parameters": {"type": "object"}}
        session.prepare(budget=16000, protocol=True, tools=[{"type": "function", "function": tool}])
        session.accept(f"Done with {secret}.\n\n<<<CONTEXT>>>\n" + json.dumps({"task": secret}))
        more_than_fits(session)
        session.append("user", "What was the word?")
        session.prepare(budget=6000)
    return root


def test_no_digest_depends_on_an_erased_literal(tmp_path: Path) -> None:
    erased, same, other = (
        everywhere(tmp_path / name, pin) for name, pin in (("a", "4711"), ("b", "4711"), ("c", "9362"))
    )
    before = digests(erased)
    apply(place(str(erased)), Request(literal="4711", session="work", force=True))
    # What two sessions with the same secret share, and one with another secret lacks, was made from the secret.
    made_from_it = (before & digests(same)) - digests(other)
    assert len(made_from_it) > 20
    assert digests(erased) & made_from_it == set()


def test_the_digest_of_excerpts_with_an_erased_word_is_hidden(home: str) -> None:
    with daypack.open_session("past", home=home, durability="os", workspace="") as session:
        session.append("user", "The harbour code of the north gate is peach-stone.")
        more_than_fits(session)
        session.append("user", "What is the harbour code of the north gate?")
        turn = session.prepare(budget=6000)
        [shown] = [addition for addition in turn.record.added if addition.excerpts]
        text = excerpts_text([item for item in turn.inserted if isinstance(item, Excerpt)])
        assert "peach-stone" in text
        assert shown.past == sha256(text.encode()).hexdigest()[: len(shown.past)]
        apply(place(home), Request(literal="peach-stone", session="past"))
        assert shown.past not in (session.path / "events.jsonl").read_text()
        data = [event.data for event in session.events() if event.type == "context.turn"][-1]
        [hidden] = [addition["past"] for addition in data["added"] if addition.get("past")]
        assert re.fullmatch("[0-9a-f]{16}", hidden)


def test_the_arguments_of_an_erased_message_have_no_digest_however_short(home: str) -> None:
    with daypack.open_session("pin", home=home, durability="os", workspace="") as session:
        session.append("user", "Unlock it.")
        call = {"id": "c" * 250, "name": "unlock", "arguments": '{"pin":4711}'}
        session.append("assistant", "", tool_calls=[call])
        session.append("tool", "ok", tool_call_id="c" * 250)
        digest = sha256(b'{"pin":4711}').hexdigest()
        assert digest in (session.path / "events.jsonl").read_text()
        apply(place(home), Request(message=2, session="pin"))
        assert digest not in (session.path / "events.jsonl").read_text()
        [called] = [event.data for event in session.events() if event.type == "tool.called"]
        arguments = session.messages()[1].tool_calls[0].arguments
        assert called["calls"][0]["arguments"] == f"sha256:{sha256(arguments.encode()).hexdigest()}"


def test_an_event_that_only_looks_like_a_turn_is_no_obstacle(home: str) -> None:
    with daypack.open_session("odd", home=home, durability="os", workspace="") as session:
        session.append("user", "The word is peach-stone.")
        for opening in ("peach-stone", {"skipped": ["peach-stone"]}):
            line = {"type": "context.turn", "data": {"last": 1, "opening": opening, "sha256": [1]}}
            with open(session.path / "events.jsonl", "ab") as log:
                log.write(json.dumps(line).encode() + b"\n")
        session.append_event("mine", {})
        apply(place(home), Request(literal="peach-stone", session="odd"))
        assert "peach-stone" not in (session.path / "events.jsonl").read_text()
