"""The hybrid protocol: parse a reply of 4 kB, at once and as a stream of small chunks."""

import json
from typing import Any

from bench.histories import Histories
from bench.measure import alternate, repeat, say
from bench.table import Limit, Row, Section, compare
from daypack.protocol import SEPARATOR, Splitter, parse

ROUNDS, OPERATIONS = 40, 50
CHUNK = 4
_PARSE_LIMIT = 5.0
_STREAM_LIMIT = 1.0  # microseconds of CPU for each byte
_TIERS = {"core": (4, 0.1, 0.9), "working": (6, 0.4, 0.8), "ephemeral": (4, 0.6, 0.6)}
_STAMP: dict[str, Any] = {
    "version": 2.3,
    "runtime": {
        "round": 7,
        "workspace": "/work/",
        "datetime": "2026-02-25T10:00:00.000Z",
        "startup_at": 1_700_000_000_000,
    },
}


def measure(_: Histories) -> Section:
    """Compare with `json.loads` of the JSON alone, and count what each byte of a stream costs."""
    document = json.dumps(_snapshot(), ensure_ascii=False)
    text = "The belt was loose. I tightened it by 4 mm and the motor turns. "
    text *= max(1, (4_000 - len(document.encode())) // len(text))
    reply = f"{text}\n{SEPARATOR}\n{document}"
    size = len(reply.encode())
    parsed = parse(reply, expected=_STAMP)
    if parsed.violations or parsed.snapshot != _snapshot():
        raise SystemExit(f"the reply is not taken apart as it should be: {parsed.violations}")
    chunks = [reply[at : at + CHUNK] for at in range(0, len(reply), CHUNK)]
    say(f"a reply of {size:,} bytes: {ROUNDS} rounds of {OPERATIONS}")
    series = alternate(
        {
            "loads": repeat(lambda: json.loads(document)),
            "parse": repeat(lambda: parse(reply, expected=_STAMP)),
            "stream": repeat(lambda: _feed(chunks)),
            "join": repeat(lambda: _join(chunks)),
        },
        rounds=ROUNDS,
        operations=OPERATIONS,
    )
    byte = (series["stream"].middle("cpu") - series["join"].middle("cpu")) / size / 1e3
    rows = (
        compare("parse, beside json.loads of its JSON", series["parse"], series["loads"], Limit(_PARSE_LIMIT, "cpu")),
        compare(f"feed in chunks of {CHUNK}, beside keeping them", series["stream"], series["join"]),
        Row(
            "  what the splitter adds to a byte",
            ours=f"{byte:.3f} µs",
            target=f"≤ {_STREAM_LIMIT:g} µs",
            met=byte <= _STREAM_LIMIT,
        ),
    )
    blocks = sum(count for count, *_ in _TIERS.values())
    notes = (
        f"one reply of {size:,} bytes, {len(document.encode()):,} of them JSON with {blocks} blocks, every",
        "rule kept; the splitter's time includes the parse at the end",
    )
    return Section("Hybrid protocol", rows, notes)


def _snapshot() -> dict[str, Any]:
    memory = {
        tier: [_block(tier, number, decay + number / 1000, confidence) for number in range(count)]
        for tier, (count, decay, confidence) in _TIERS.items()
    }
    capabilities = [{"name": "memory", "scope": "write_once"}]
    return {**_STAMP, "memory": memory, "capabilities": capabilities, "active_task": "Mend the belt. 修理皮带"}


def _block(tier: str, number: int, decay: float, confidence: float) -> dict[str, Any]:
    return {
        "id": f"{tier}-{number:03}",
        "type": "task",
        "decay": round(decay, 3),
        "confidence": confidence,
        "round": 7,
        "tags": ["belt", "motor"],
        "content": f"Belt {number} slips when it is wet; tighten it by {number} mm and look at the motor again.",
    }


def _feed(chunks: list[str]) -> None:
    splitter = Splitter(expected=_STAMP)
    for chunk in chunks:
        splitter.feed(chunk)
    splitter.close()


def _join(chunks: list[str]) -> str:
    kept: list[str] = []
    for chunk in chunks:
        kept.append(chunk)  # noqa: PERF402 — as a plain client does it, chunk by chunk
    return "".join(kept)
