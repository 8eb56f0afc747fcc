"""The newest messages: the same entries, whichever way they were read, and whatever happened to the log meanwhile."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from turn.histories import Drafts, messages_of, wild_histories
from turn.scenes import release
from turn.windows import TALK, answer, bytes_of, call, open_work, say, tokens_of, user

import daypack
from daypack.errors import SyncFailed
from daypack.session import Session
from daypack.text.redact.redact import redact_message
from daypack.text.tokens import count_message, counter_for, counter_named
from daypack.turn.budget import Limits
from daypack.turn.dialects import NAMES, Given, dialect
from daypack.turn.items import Cost, Entry, TokenMeter, total
from daypack.turn.pack.tail import settle
from daypack.turn.survey.message_cost import CALL_TOKENS, MESSAGE_TOKENS, message_cost, size_of
from daypack.turn.survey.messages import RecentMessages
from daypack.types.history import Message, Text, Thinking

ALL = Limits().room
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def recent(session: Session, model: str | None = None, *, redacting: bool = True) -> RecentMessages:
    counter = counter_for(model) if model else counter_named(session.history.tokenizer)
    return RecentMessages(session.history, TokenMeter(counter), redacting=redacting)


def every(session: Session, model: str | None = None) -> list[Entry]:
    """All entries, read anew by somebody who knows nothing yet."""
    with daypack.open_session(session.name, home=str(session.path.parents[5]), create=False) as other:
        found, complete = recent(other, model).newest(ALL)
    assert complete
    return found


def numbers(entries: list[Entry]) -> list[int]:
    return [entry.message.seq for entry in entries]


def fill(session: Session, count: int, start: int = 0) -> None:
    session.append_many(
        [user(f"Question {n}, 请 🚀?") if n % 3 else say("word " * n) for n in range(start, start + count)]
    )


@pytest.fixture
def work(home: str) -> Iterator[Session]:
    with open_work(home) as session:
        yield session


def test_forwards_backwards_and_in_pieces_give_the_same_entries(work: Session) -> None:
    fill(work, 700)
    whole = every(work)
    assert numbers(whole) == list(range(1, 701))
    assert recent(work).since(1) == whole
    pieces = recent(work)
    for seq in (690, 695, 500, 501, 300, 2, 1, 700):
        assert pieces.since(seq) == whole[seq - 1 :]
    assert pieces.newest(ALL) == (whole, True)
    assert recent(work).since(701) == []


def test_the_newest_are_read_until_one_does_not_fit(work: Session) -> None:
    fill(work, 600)
    whole = every(work)
    for room in (Cost(0, 0, 0), Cost(40, 10**9, 99), Cost(9_000, 10**9, 10**9), Cost(10**9, 900, 10**9), ALL):
        for kept in (recent(work), _after(work, lambda one: one.since(580)), _after(work, lambda one: one.since(1))):
            entries, complete = kept.newest(room)
            assert entries == whole[len(whole) - len(entries) :]
            assert complete == (len(entries) == 600)
            used = Cost()
            for entry in whole[len(whole) - len(entries) - (not complete) :]:
                used = used.plus(entry.cost)
            assert used.fits(room) == complete


def _after(session: Session, step: Callable[[RecentMessages], object]) -> RecentMessages:
    made = recent(session)
    step(made)
    return made


def test_what_is_appended_by_this_and_by_another_process_is_seen(work: Session, home: str) -> None:
    fill(work, 300)
    kept = recent(work)
    kept.since(250)
    fill(work, 5, 300)
    script = (
        f"import daypack\nwith daypack.open_session('work', home={home!r}) as s:\n s.append('user', 'from elsewhere')"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert kept.since(250) == every(work)[249:]
    assert kept.newest_user() == every(work)[-1]
    fill(work, 400, 400)  # more than is read at once
    fresh = recent(work)
    assert fresh.tokens_since(1) > 0
    assert fresh.since(640) == every(work)[639:]
    assert kept.newest(ALL) == (every(work), True)


def test_the_newest_question_is_found_however_far_back_it_is(work: Session) -> None:
    work.append("user", "The only one.")
    work.append_many([say(f"Step {n}.") for n in range(900)])
    found = recent(work).newest_user()
    assert found
    assert found.message.seq == 1
    assert recent(work).user_before(900) == found
    assert recent(work).user_before(1) is None
    work.append("user", "Another.")
    kept = recent(work)
    assert kept.newest_user() == every(work)[-1]
    assert kept.user_before(902) == found
    assert numbers(kept.newest(Cost(30, 999, 9))[0])[0] > 890, "what was passed over is not kept"


def test_nobody_asked_anything(work: Session) -> None:
    assert recent(work).newest_user() is None
    assert recent(work).newest(ALL) == ([], True)
    work.append("assistant", "Hello?")
    assert recent(work).newest_user() is None


def test_about_how_much_there_is_is_known_without_reading_it(work: Session) -> None:
    fill(work, 600)
    exact = sum(entry.cost.tokens for entry in every(work)[299:])
    fresh = recent(work)
    assert exact - 300 * 30 <= fresh.tokens_since(300) <= exact
    fresh.since(1)
    assert fresh.tokens_since(300) == exact


def test_what_no_turn_asks_for_any_more_is_let_go_of_and_can_be_had_again(work: Session) -> None:
    fill(work, 2100)
    whole = every(work)
    kept = recent(work)
    assert kept.since(1) == whole
    kept.forget_before(2000)
    assert kept.since(2000) == whole[1999:]
    fill(work, 3, 2100)
    assert kept.since(1999) == every(work)[1998:]
    assert kept.since(1) == every(work)


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_damaged_lines_in_between_are_passed_over_the_same_way(work: Session, home: str) -> None:
    fill(work, 400)
    kept = recent(work)
    kept.since(390)
    path = work.history.layout.messages
    work.close()
    lines = Path(path).read_bytes().splitlines(keepends=True)
    for at in (5, 200, 201, 398):
        lines[at] = lines[at].replace(b'"role"', b'"r\x00le"')
    with open(path, "wb") as file:
        file.write(b"".join(lines))
    with open_work(home) as session:
        whole = every(session)
        assert set(range(1, 401)) - set(numbers(whole)) == {6, 201, 202, 399}
        pieces = recent(session)
        for seq in (399, 398, 202, 201, 100, 6, 1):
            assert pieces.since(seq) == [entry for entry in whole if entry.message.seq >= seq]
        assert pieces.newest(ALL) == (whole, True)
        session.append("user", "Go on.")
        assert pieces.since(1) == every(session)
        # Who read line 399 while it was whole still has it.
        assert set(range(1, 402)) - set(numbers(kept.newest(ALL)[0])) == {6, 201, 202}


def test_lines_written_by_hand_are_weighed_as_well(work: Session) -> None:
    fill(work, 5)
    kept = recent(work)
    kept.since(1)
    release(work)
    with open(work.history.layout.messages, "ab") as file:
        file.write(b'{"role":"user","content":"By hand."}\n')
    found = kept.since(6)
    assert [(entry.message.seq, entry.message.content) for entry in found] == [(6, "By hand.")]
    counter = counter_named(work.history.tokenizer)
    assert found[0].cost == message_cost(found[0].message, counter)
    assert kept.newest(ALL) == (every(work), True)


def test_lines_that_were_taken_back_are_forgotten(work: Session, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads lines whose sync then fails: they are cut off, and others stand in their place."""
    fill(work, 20)
    kept = recent(work)
    seen: list[list[int]] = []

    def fail(_: int) -> None:
        seen.append(numbers(kept.since(15)))
        raise OSError(errno.EIO, "the disk is gone")

    with daypack.open_session("work", home=home, durability="sync") as writer, monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(SyncFailed):
            writer.append("user", "Never acknowledged.")
    assert seen[-1][-1] == 21, "the line was there for a moment"
    with daypack.open_session("work", home=home, durability="os") as writer:
        writer.append("assistant", "In its place.")
        writer.append("assistant", "And one more.")
    assert [entry.message.content for entry in kept.since(21)] == ["In its place.", "And one more."]
    assert kept.newest(ALL) == (every(work), True)
    found = kept.newest_user()
    assert found
    assert found.message.content != "Never acknowledged."


def test_a_log_that_was_written_anew_is_read_anew(work: Session) -> None:
    """What was erased from the log does not live on in what was read before."""
    work.append_many([user("My word is xyzzy."), say("Noted."), user("Go on.")])
    kept = recent(work)
    assert "xyzzy" in kept.since(1)[0].message.text
    path = work.history.layout.messages
    lines = [
        b'{"role":"user","content":"My word is erased."}\n',
        *Path(path).read_bytes().splitlines(keepends=True)[1:],
    ]
    with open(f"{path}.new", "wb") as file:
        file.write(b"".join(lines))
    os.replace(f"{path}.new", path)
    assert [entry.message.text for entry in kept.since(1)] == ["My word is erased.", "Noted.", "Go on."]


# What a message weighs


@pytest.mark.parametrize("model", ["gpt-4", "claude-opus-4-7", "llama-2-7b", "nobody-knows"])
def test_another_model_is_counted_with_its_own_counter(work: Session, model: str) -> None:
    work.append_many(TALK)
    counter = counter_for(model)
    assert counter.name != work.history.tokenizer
    for entry in recent(work, model).since(1):
        assert entry.cost == message_cost(entry.message, counter)
        assert entry.cost.tokens >= count_message(counter, entry.message) + MESSAGE_TOKENS
    turn = work.prepare(model=model)
    assert turn.token_method == counter.name
    own = sum(entry.cost.tokens for entry in recent(work).since(1))
    assert own != sum(entry.cost.tokens for entry in recent(work, model).since(1))


def test_the_counts_of_the_sidecar_are_those_of_a_new_count(work: Session) -> None:
    work.append_many(TALK)
    counter = counter_named(work.history.tokenizer)
    for entry in recent(work).since(1):
        assert entry.cost == message_cost(entry.message, counter)


def test_names_and_arguments_of_calls_are_counted() -> None:
    counter = counter_named("o200k_base")
    one, two, long = messages_of([call("a"), call("a", "b"), call("a", arguments='{"text": "' + "word " * 50 + '"}')])
    each = counter.count("read_file") + counter.count('{"path": "plan.md"}') + CALL_TOKENS
    assert message_cost(two, counter).tokens - message_cost(one, counter).tokens == each
    assert message_cost(long, counter).tokens > 50
    assert message_cost(long, counter).bytes > 250
    name = messages_of([call("a", name="搜索")])[0]
    assert size_of(name) == len("搜索".encode()) + len('{"path": "plan.md"}')


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drafts=wild_histories(), model=st.sampled_from(("gpt-4o", "claude-opus-4-7", "llama-2-7b")))
@example(
    drafts=[{"role": "user", "content": text, "name": "ann"} for text in ("0", "Read.", "完成 ✅ 🚀")], model="gpt-4o"
)
def test_no_dialect_sends_more_than_was_weighed(drafts: Drafts, model: str) -> None:
    counter = counter_for(model)
    messages = settle(messages_of([user("?"), *drafts])).messages
    cost = total(message_cost(message, counter) for message in messages)
    for name in NAMES:
        body = dialect(name).render(Given(messages=messages))
        assert bytes_of(name, body) <= cost.bytes
        assert tokens_of(name, body, counter.name) <= cost.tokens


# Secrets


def test_a_secret_is_taken_out_before_anything_is_weighed(work: Session) -> None:
    work.append_many(
        [
            user(f"The key is {SECRET}."),
            call(
                "a", arguments=f'{{"key": "{SECRET}"}}', text=[{"type": "thinking", "text": SECRET, "signature": "s"}]
            ),
            answer("a", [{"type": "text", "text": SECRET}, {"type": "image", "source": "a.png"}]),
            user("Nothing to hide."),
        ]
    )
    entries = recent(work).since(1)
    assert not any(SECRET in repr(entry.message) for entry in entries)
    assert [bool(entry.redacted) for entry in entries] == [True, True, True, False]
    counter = counter_named(work.history.tokenizer)
    assert all(entry.cost == message_cost(entry.message, counter) for entry in entries)
    # Signed thinking cannot be changed: a provider would refuse it. It goes whole.
    assert entries[1].message.content == ()
    open_entries = recent(work, redacting=False).since(1)
    assert SECRET in open_entries[0].message.text
    assert not any(entry.redacted for entry in open_entries)


def test_clearing_changes_nothing_where_there_is_no_secret() -> None:
    for message in messages_of(TALK):
        assert redact_message(message) == (message, ())
    parts = (Text("fine"), Thinking(f"hm {SECRET}"), Text(SECRET))
    cleared, kinds = redact_message(Message(role="assistant", content=parts))
    assert cleared.content[0] == parts[0]
    assert len(cleared.content) == 2
    assert kinds
