"""A short session in which the model keeps a memory of its own: every reply carries a snapshot with three tiers."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from daypack.protocol import SEPARATOR
from daypack.serve.sample.play import Place, Play
from daypack.turn.turn import Turn
from daypack.types.canonical import canonical

PRINT_JOB = "sample-print-job"
_BEGAN = datetime(2026, 4, 23, 9, 30, tzinfo=UTC).timestamp()
_BUDGET_TOKENS = 6_000
_Block = tuple[str, str, str, float, float]  # id, type, content, decay, confidence
_Tiers = tuple[tuple[_Block, ...], tuple[_Block, ...], tuple[_Block, ...]]

_PAPER: _Block = ("core-001", "fact", "The posters are printed on 135 g matt paper.", 0.05, 0.95)
_DATA: _Block = ("core-002", "rule", "The printer takes data until 24 April, 12:00.", 0.1, 0.95)
_DATA_LATER: _Block = ("core-002", "rule", "The printer takes data until 24 April, 15:00.", 0.1, 0.95)
_UPLOAD: _Block = ("work-001", "task", "Upload nine files and wait for the proof.", 0.3, 0.85)
_PROOF: _Block = ("work-001", "task", "Compare the proof with build 1191.", 0.3, 0.85)
_LORRY: _Block = ("work-002", "task", "Find out when the lorry comes to the quay.", 0.4, 0.8)
_LINE: _Block = ("temp-001", "hint", "Chen is on the train until noon.", 0.7, 0.6)
_BUSY: _Block = ("temp-002", "hint", "The line of the printer is busy.", 0.8, 0.6)
_GATE: _Block = ("temp-003", "hint", "The gate of the quay opens at seven.", 0.6, 0.7)

# What the user says, what the model answers, and its blocks by tier.
_ROUNDS: tuple[tuple[str, str, _Tiers], ...] = (
    (
        "Build 1191 is the one to print, on the matt paper. Data until tomorrow at noon.",
        "I upload the nine files of build 1191 now; the data is due on 24 April at 12:00.",
        ((_PAPER, _DATA), (_UPLOAD,), (_LINE,)),
    ),
    (
        "Did they get all of them?",
        "Yes, nine files with 212 MB; the proof comes within two hours.",
        ((_PAPER, _DATA), (_UPLOAD, _LORRY), (_LINE, _BUSY)),
    ),
    (
        "The proof is there. Please compare it.",
        "The colours agree with build 1191; the fold of A6 is 0.4 mm too far right, within their tolerance.",
        ((_PAPER, _DATA), (_PROOF, _LORRY), (_BUSY,)),
    ),
    (
        "They give us three hours more, should we need them.",
        "Good: data until 15:00. We will not need it.",
        ((_PAPER, _DATA_LATER), (_PROOF, _LORRY), ()),
    ),
    (
        "When does the lorry come?",
        "On 29 April between seven and nine; the gate of the quay opens at seven.",
        ((_PAPER, _DATA_LATER), (_LORRY,), (_GATE,)),
    ),
    ("Then release the print.", "Released: 40 A1, 800 A3 and 3,000 A6.", ((_PAPER, _DATA_LATER), (), (_GATE,))),
)


def play_print_job(place: Place) -> None:
    """Play the session, or the rest of an interrupted one."""
    with place.open(PRINT_JOB) as session:
        play = Play(session, _BEGAN)
        if not play.wanted:
            return
        session.set_budget(_BUDGET_TOKENS)
        session.switch("protocol", on=True)
        for number, (says, answers, tiers) in enumerate(_ROUNDS):
            play.say(f"sample-{number}", says)
            play.reply(f"sample-{number}-0", partial(_reply, answers, tiers))
        play.finish()


def _reply(words: str, tiers: _Tiers, turn: Turn) -> dict[str, Any]:
    """Return the words and a snapshot with the fields that the turn asks for."""
    expected = turn.expected or {}
    names, now = ("core", "working", "ephemeral"), expected["runtime"]["round"]
    memory = {
        name: [
            {"id": at, "type": kind, "tags": [kind], "content": text, "decay": decay, "confidence": sure, "round": now}
            for at, kind, text, decay, sure in blocks
        ]
        for name, blocks in zip(names, tiers, strict=True)
    }
    about = {"capabilities": [{"name": "memory", "scope": "write_once"}], "active_task": "Print the posters."}
    snapshot = canonical({**expected, "memory": memory, **about}).decode()
    return {"content": f"{words}\n{SEPARATOR}\n{snapshot}"}
