"""A reply that arrives in pieces is shown at once, and becomes the same reply as when it is read whole."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from protocol.breaks import BREAKS
from protocol.pieces import chunkings, modest, replies
from protocol.replies import GOOD, SNAPSHOT, STAMP, Case, apart, musts, put
from protocol.splits import SPLITS
from protocol.states import STATES

from daypack.errors import BadReply
from daypack.protocol import SEPARATOR, Reply, Splitter, emit, parse

CASES = [*SPLITS, *BREAKS, *STATES]
LONG = 20_000
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def cut(whole: str, size: int) -> list[str]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def cut_bytes(whole: bytes, size: int) -> list[bytes]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def stream(chunks: Sequence[str] | Sequence[bytes], expected: object = None) -> tuple[str, Reply]:
    """What was shown while the chunks came, and the reply at the end."""
    splitter = Splitter(expected=expected)  # pyright: ignore[reportArgumentType]
    shown = "".join([splitter.feed(chunk) for chunk in chunks])
    assert splitter.reply is None
    reply = splitter.close()
    assert splitter.reply == reply
    return shown, reply


def check(chunks: Sequence[str] | Sequence[bytes], whole: Reply, expected: object = None) -> str:
    """The chunks give the same reply as the whole; returns what was shown before the end."""
    shown, reply = stream(chunks, expected)
    assert replace(reply, unsent="") == whole
    assert apart(shown + reply.unsent, whole.text) == ""
    return shown


@pytest.mark.requirement("T5")
@every_case
def test_a_reply_in_pieces_is_the_reply_read_whole(case: Case):
    whole = parse(case.reply, expected=case.expected)
    # A megabyte letter by letter has a test of its own.
    sizes = (1, 4) if len(case.reply) < LONG else (4093, 65536)
    before = case.reply.partition(SEPARATOR)[0]
    for size in (*sizes, len(case.reply) + 1):
        shown = check(cut(case.reply, size), whole, case.expected)
        assert apart(shown, before[: len(shown)]) == ""
        if SEPARATOR in case.reply:
            assert apart(shown, before) == ""
    try:
        written = case.reply.encode()
    except UnicodeEncodeError:
        return
    for size in (*sizes, len(written) + 1):
        check(cut_bytes(written, size), whole, case.expected)


@modest
@given(chunkings(replies()))
def test_any_chunking_of_characters_gives_the_reply_read_whole(chunks: list[str]):
    check(chunks, parse("".join(chunks)))


@modest
@given(replies(), st.data())
def test_any_chunking_of_bytes_gives_the_reply_read_whole(reply: str, data: st.DataObject):
    written = reply.encode()
    places = sorted(data.draw(st.sets(st.integers(0, len(written)), max_size=12)) | {0, len(written)})
    check([written[one:two] for one, two in pairwise(places)], parse(reply))


@modest
@given(
    st.lists(st.binary(max_size=8) | st.sampled_from([SEPARATOR.encode(), b"{}", b"\xe9\x95", b"\xbf"]), max_size=12)
)
def test_bytes_that_are_no_utf_8_give_the_same_in_pieces_and_whole(chunks: list[bytes]):
    check(chunks, parse(b"".join(chunks)))


@modest
@given(chunkings(replies()))
def test_only_a_possible_beginning_of_the_token_is_held_back_and_nothing_behind_the_token_is_shown(chunks: list[str]):
    splitter = Splitter()
    fed = shown = ""
    for chunk in chunks:
        fed += chunk
        shown += splitter.feed(chunk)
        before, token, _ = fed.partition(SEPARATOR)
        if token:
            assert shown == before
        else:
            held = next(size for size in range(len(SEPARATOR) - 1, -1, -1) if fed.endswith(SEPARATOR[:size]))
            assert shown == fed[: len(fed) - held]
    splitter.close()


@modest
@given(st.lists(st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"])), max_size=8))
def test_text_without_an_angle_bracket_is_shown_chunk_by_chunk(chunks: list[str]):
    splitter = Splitter()
    assert [splitter.feed(chunk) for chunk in chunks] == chunks
    assert splitter.close().unsent == ""
    splitter = Splitter()
    assert [splitter.feed(chunk.encode()) for chunk in chunks] == chunks


@modest
@given(chunkings(replies()))
def test_both_iterators_yield_the_whole_text(chunks: list[str]):
    whole = parse("".join(chunks), expected=STAMP)
    splitter = Splitter(expected=STAMP)
    assert "".join(splitter.read(chunks)) == whole.text
    assert splitter.reply is not None
    assert replace(splitter.reply, unsent="") == whole
    behind = Splitter(expected=STAMP)
    assert asyncio.run(gather(behind, chunks)) == whole.text
    assert behind.reply == splitter.reply


async def gather(splitter: Splitter, chunks: list[str]) -> str:
    async def arrive() -> AsyncIterator[str]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    return "".join([part async for part in splitter.aread(arrive())])


def test_a_piece_is_yielded_before_the_next_one_is_asked_for():
    asked: list[str] = []

    def arrive() -> Iterator[str]:
        for chunk in ("Hel", "lo <", "b> ", f"you.{SEPARATOR}", GOOD):
            asked.append(chunk)
            yield chunk

    parts = Splitter().read(arrive())
    assert next(parts) == "Hel"
    assert asked == ["Hel"]
    assert next(parts) == "lo "
    assert asked == ["Hel", "lo <"]
    assert "".join(parts) == "<b> you."


def test_no_empty_piece_is_yielded():
    assert list(Splitter().read(["", "Hi.", SEPARATOR, "", GOOD, ""])) == ["Hi."]


def test_a_character_whose_bytes_come_apart_is_shown_once_it_is_whole():
    splitter = Splitter()
    assert [splitter.feed(bytes([byte])) for byte in "记".encode()] == ["", "", "记"]
    assert splitter.feed("😀".encode()[:3]) == ""
    reply = splitter.close()
    assert reply.text == "记\ufffd"
    assert reply.unsent == "\ufffd"


def test_words_behind_the_snapshot_come_with_the_end():
    splitter = Splitter(expected=STAMP)
    assert splitter.feed(f"Hello.\n{SEPARATOR}\n{GOOD}\nBye.") == "Hello.\n"
    reply = splitter.close()
    assert reply.unsent == "\nBye."
    assert reply.text == "Hello.\n\nBye."
    assert reply.snapshot == SNAPSHOT


def test_a_quoted_token_that_was_held_back_comes_with_the_end():
    splitter = Splitter()
    assert splitter.feed(f"Say {SEPARATOR} once.") == "Say "
    assert splitter.close().unsent == f"{SEPARATOR} once."


def test_half_a_token_that_was_held_back_is_shown_when_it_goes_on_differently():
    splitter = Splitter()
    assert splitter.feed("a <<<CONTEXT>>") == "a "
    assert splitter.feed("= b <<<") == "<<<CONTEXT>>= b "
    assert splitter.feed("<CONTEXT>>>") == "<"
    assert splitter.feed("{}") == ""


def test_strict_mode_raises_at_the_end_and_the_error_has_what_was_not_shown():
    splitter = Splitter(strict=True)
    assert splitter.feed(f"Hello.{SEPARATOR}{{'a': 1}} Bye.") == "Hello."
    with pytest.raises(BadReply) as raised:
        splitter.close()
    assert raised.value.reply.text == "Hello. Bye."
    assert raised.value.reply.unsent == " Bye."
    assert musts(raised.value.reply)
    shown: list[str] = []
    with pytest.raises(BadReply):
        shown.extend(Splitter(strict=True).read(["Hello.", SEPARATOR]))
    fine = Splitter(strict=True, expected=STAMP)
    assert "".join(fine.read(emit("Hello.", SNAPSHOT))) == "Hello."
    assert fine.reply is not None
    assert fine.reply.snapshot == SNAPSHOT


def test_what_the_host_sent_counts_for_a_stream_too():
    _, reply = stream([emit("Hi.", put("runtime.round", 8))], STAMP)
    assert [violation.rule for violation in reply.violations] == ["S0-R8.2"]
    assert reply.snapshot == SNAPSHOT


def test_a_megabyte_byte_by_byte():
    reply = emit("Hello. " * 40_000, put("active_task", "x" * 700_000))
    shown = check(cut_bytes(reply.encode(), 1), parse(reply))
    assert apart(shown, "Hello. " * 40_000) == ""


def test_an_empty_stream_is_an_empty_reply():
    assert stream([]) == ("", parse(""))
    assert list(Splitter().read([])) == []
