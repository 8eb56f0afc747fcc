"""Nothing is forgotten: what was said at the start of a long session is in the pack or found by one search."""

import os

import pytest
from small_model import find_small_model
from turn.scenes import given_out, stage

from daypack.derived.template import problems
from daypack.session import Session
from daypack.turn.turn import Turn

BUDGET = 16_000
# A sentence with a place for its value, and the value: paths, numbers, names and decisions.
PLANTED = [
    ("The deployment key lives in {}.", "/srv/keys/deploy_7f3.pem"),
    ("Our staging database listens on port {}.", "54329"),
    ("The customer's accountant is called {}.", "Marguerite Oyelaran"),
    ("We decided to store invoices with {}.", "parquet-mr 1.13"),
    ("The nightly export writes to {}.", "s3://exports-eu/nightly/v4"),
    ("The rate limiter allows {} requests a minute.", "1437"),
    ("Translations are reviewed by {} before release.", "Dr. Hisham Qadri"),
    ("The migration that broke login is {}.", "0047_split_accounts.sql"),
    ("We agreed that retries stop after {} attempts.", "eleven"),
    ("The incident was filed as {}.", "INC-20931"),
    ("Thumbnails are cached below {}.", "var/cache/thumbs_q81"),
    ("The warehouse scanner speaks protocol version {}.", "3.8.14-rc2"),
    ("Our penetration tester is {}.", "Ludovica Brandt"),
    ("We chose {} as the queue for outgoing mail.", "NATS JetStream"),
    ("The feature flag for the new basket is named {}.", "basket_v9_enabled"),
    ("The session cookie expires after {} seconds.", "93600"),
    ("The legacy importer is started by {}.", "scripts/import_legacy.sh"),
    ("The SLA for refunds is {} business days.", "seventeen"),
    ("Backups are encrypted for the recipient {}.", "age1q8zz0kd4mx"),
    ("The office printer has the address {}.", "10.44.7.219"),
    ("The contract with the carrier ends on {}.", "2027-03-31"),
    ("Heap dumps of the worker go to {}.", "/mnt/scratch/heap-w12"),
    ("The colour of the warning banner is {}.", "#e4a11b"),
    ("We decided against {} because it leaks handles.", "libfoo-async"),
    ("The commit that introduced the memory leak is {}.", "9c1f0ab27d"),
    ("Geocoding is done by {}.", "photon.komoot.example"),
    ("The maximum upload size is {} megabytes.", "768"),
    ("The pager rotation is led by {}.", "Tomasz Wielgosz"),
    ("The checksum of the firmware is {}.", "b3:77aa10ff"),
    ("The mobile client pins certificate {}.", "CN=edge-04.example"),
    ("Search synonyms are kept in {}.", "conf/synonyms.de.txt"),
    ("The loyalty programme rounds points {}.", "half to even"),
    ("The sandbox merchant identifier is {}.", "MID-88213-X"),
    ("We postponed the rewrite of {} to autumn.", "ledger_core.rs"),
    ("The VAT rate for books is {} percent.", "5.5"),
    ("The telemetry endpoint is {}.", "https://t.example.org/v2/ingest"),
    ("Orders above {} euros need a second signature.", "12500"),
    ("The owner of the pricing service is {}.", "Nkechi Adeyemi"),
    ("The cron expression of the cleanup is {}.", "17 4 * * 2"),
    ("The archive bucket keeps files for {} years.", "thirteen"),
    ("The debug build is signed with profile {}.", "DevTeam-QX4"),
    ("The parser chokes on the character {}.", "U+2066"),
    ("Our fallback font is {}.", "Noto Sans Devanagari"),
    ("The GPU node is reserved under the label {}.", "gpu-a30-night"),
    ("The consent text was approved as revision {}.", "rev. 26b"),
    ("The benchmark baseline is {} milliseconds.", "41.7"),
    ("The webhook secret rotates every {} hours.", "36"),
    ("The old wiki was exported to {}.", "docs/wiki-dump.tar.zst"),
    ("We named the release branch {}.", "release/kestrel-24"),
    ("The analytics opt-out header is {}.", "X-No-Measure"),
]
TOOLS = ("read_file", "bash", "grep", "list_files", "write_file")


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def plant(session: Session) -> None:
    """Say all values at the start: by the user and the agent, one or two to a message."""
    said = [sentence.format(value) for sentence, value in PLANTED]
    for at in range(0, len(said), 4):
        session.append("user", " ".join(said[at : at + 2]) + " Please keep that in mind.")
        session.append("assistant", "Noted. " + " ".join(said[at + 2 : at + 4]))


def work(session: Session, number: int, every: int = 1) -> Turn | None:
    """One turn of a tool-heavy session about other things that use some of the same words."""
    call = {
        "id": f"w{number}",
        "name": TOOLS[number % 5],
        "arguments": f'{{"path": "app/part_{number % 37}/view_{number}.py"}}',
    }
    session.append("user", f"Now look at view {number}: the port, the path and the limit of the page are wrong.")
    session.append("assistant", f"I open view {number} and its tests.", tool_calls=[call])
    rows = (
        f"{number}:{at}: def handler_{at}(request): return render(page_{number * 7 % 101}, {at})" for at in range(14)
    )
    session.append("tool", "\n".join(rows), tool_call_id=call["id"])
    session.append(
        "assistant", f"View {number} was decided on: the service writes its cache again, and test {number} passes."
    )
    session.append("user", f"Go on after view {number}.")
    turn = session.prepare(budget=BUDGET) if number % every == 0 else None
    session.accept(f"I go on after view {number}.")
    return turn


def check_nothing_is_forgotten(session: Session, turn: Turn) -> None:
    pack = given_out(turn)
    forgotten: list[str] = []
    for sentence, value in PLANTED:
        if value in pack:
            continue
        hits = session.search_history(sentence.replace("{}", "").replace("  ", " "), k=5)
        if not any(value in hit.text for hit in hits):
            forgotten.append(sentence)
    assert forgotten == []


@pytest.mark.requirement("S4-SR4")
def test_fifty_values_survive_ten_compactions_of_three_hundred_turns_without_a_model(home: str) -> None:
    session = stage(home)
    plant(session)
    for number in range(300):
        work(session, number)
        if number % 30 == 29:
            session.compact(keep_tokens=1200)
            assert problems((session.path / "context" / "CONTEXT.md").read_text()) == []
    assert len(session.compactions) >= 10
    assert {one.model for one in session.compactions} == {"none"}
    session.append("user", "What is next?")
    check_nothing_is_forgotten(session, session.prepare(budget=BUDGET))
    for sentence, value in PLANTED:  # and by the value itself
        assert any(value in hit.text for hit in session.search_history(value, k=5)), sentence


@pytest.mark.requirement("S4-SR4")
def test_fifty_values_survive_when_a_small_model_compacts(home: str) -> None:
    path = find_small_model()
    session = stage(home)
    plant(session)
    session.append("user", "Now to other things.")
    by_model = session.compact(model=f"llama:{path}", keep_tokens=20)
    assert by_model.model.startswith("llama:")
    assert by_model.coverage["read_by_model"] > 20
    for number in range(300):
        work(session, number, every=4)
        if number % 33 == 32:
            session.compact(model="none", keep_tokens=400)
            assert problems((session.path / "context" / "CONTEXT.md").read_text()) == []
    assert len(session.compactions) >= 10
    assert session.compactions[0].output
    session.append("user", "What is next?")
    check_nothing_is_forgotten(session, session.prepare(budget=BUDGET))
