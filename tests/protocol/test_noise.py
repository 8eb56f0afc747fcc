"""What a model writes between the separator and the snapshot, or after it, is repaired: no JSON becomes text."""

import random
from itertools import pairwise

import pytest
from campaigns import Campaign
from hypothesis import assume, example, given
from hypothesis import strategies as st
from protocol.pieces import AROUND, JSON, MARKS, modest, snapshots
from protocol.replies import GOOD, SNAPSHOT, STAMP, TEMPLATE, broken_rules, compact
from protocol.test_fuzz import PIECES, damage
from protocol.test_stream import check

from daypack.protocol import SEPARATOR as SEP
from daypack.protocol import parse

HI = "Hello, all is done.\n"
BYE = "\nTell me if anything is missing."
LONGEST = 80
OPENINGS = [
    "---", "JSON:", "> ", "=", "**Context**", "Here is the context:", "json", "yaml", "**Context:**\n```json\n",
    "---\n\n### Context (JSON)\n\n", "JSON:\n<context>", "=> ", "#", "1. ", "- ", "| ", "context =", "const context =",
    "[1]", "{}", "{", "[", '"', "'", "(", "\\", "// the state", "/* the state", "<!-- the state", "<state ", "{JSON}",
    '{"a":1} ', '{"a":', "`json", "<<<", ">>>", "<<<CONTEXT>>", "状态：", "\x00", "\u200b", "%%%", "a\n\nb\n\nc\n\n",
]  # fmt: skip
CLOSINGS = ["```", "---", "***", "===", "~~~", "END", "END JSON", "-- end of context --", "<<<END_CONTEXT>>>", "EOF"]
noises = st.text(max_size=LONGEST) | st.lists(
    st.sampled_from([*MARKS, *JSON, *AROUND, *PIECES, *OPENINGS, '{"memory":{}}', '{"runtime":{}} and ']) | st.text(),
    max_size=10,
).map("".join)


def leaks(whole: str, written: str) -> bool:
    """Whether any of the JSON at the end of a reply, or before its closing words, is shown."""
    cut = parse(whole, expected=STAMP).cut or (len(whole), len(whole))
    at = whole.rindex(written)
    return not (cut[0] <= at and at + len(written) <= cut[1])


@pytest.mark.requirement("S0-R6", "X21")
@pytest.mark.parametrize("written", [GOOD, TEMPLATE], ids=["one line", "many lines"])
@pytest.mark.parametrize("noise", OPENINGS)
def test_anything_short_between_the_separator_and_the_snapshot_is_repaired_and_reported(noise: str, written: str):
    for space in ("", "\n", " \n\n"):
        reply = parse(f"{HI}{SEP}{space}{noise}{space}{written}", expected=STAMP)
        assert reply.text == HI
        assert reply.snapshot == SNAPSHOT
        assert "S0-R6" in broken_rules(reply)


@pytest.mark.requirement("S0-R6")
def test_words_that_are_cut_are_quoted_in_the_report():
    reply = parse(f"{HI}{SEP}\nIMPORTANT: switch off\nthe power first!\n{GOOD}", expected=STAMP)
    [said] = [violation.problem for violation in reply.violations if violation.rule == "S0-R6"]
    assert said == ("characters that are not JSON precede it, and are cut: IMPORTANT: switch off the power first!")
    long = parse(f"{HI}{SEP}{GOOD} {GOOD}", expected=STAMP)
    assert all(len(violation.problem) < 200 for violation in long.violations)


@pytest.mark.requirement("S0-R6", "X21")
@pytest.mark.parametrize("closing", CLOSINGS)
@pytest.mark.parametrize("noise", ["", "\nJSON:\n", "\n```json\n", "\n**Context**\n```json\n"])
def test_a_closing_mark_after_the_snapshot_is_repaired_and_reported(noise: str, closing: str):
    reply = parse(f"{HI}{SEP}{noise}{GOOD}\n{closing}\n", expected=STAMP)
    assert reply.text == HI
    assert reply.snapshot == SNAPSHOT
    assert "S0-R6" in broken_rules(reply)


def test_the_fence_that_noise_opened_is_closed_and_the_words_after_it_are_text():
    reply = parse(f"{HI}{SEP}\nHere is the context:\n```json\n{GOOD}\n```{BYE}", expected=STAMP)
    assert reply.text == HI + BYE
    assert reply.snapshot == SNAPSHOT
    assert {"S0-R2", "S0-R6", "S0-F2"} <= broken_rules(reply)


@pytest.mark.requirement("S0-R6", "X21")
@modest
@example('{"memory":{}} and ', "")
@example("//", "")
@example('0{"version"}', ', "more": 1}')
@example('{""}0', ', "more": 1}')
@example('{"x":"<<<CONTEXT>>>"} <!--', "\n---")
@given(noises, st.sampled_from(["", "\n", "\n```", "\n---", "\nEND", BYE, "]", ', "more": 1}']))
def test_no_byte_of_a_snapshot_after_any_noise_is_shown(noise: str, tail: str):
    for written in (GOOD, TEMPLATE):
        assert not leaks(f"{HI}{SEP}{noise[:LONGEST]}{written}{tail}", written)


@modest
@given(noises, snapshots())
def test_any_good_snapshot_is_found_after_any_noise_without_braces(noise: str, value: dict[str, object]):
    noise = noise.replace("{", "(").replace(SEP, "")[:LONGEST]
    assume(SEP not in noise and not noise.endswith(("[", "[ ")))
    written = compact(value)
    reply = parse(f"{HI}{SEP}{noise}{written}", expected=value)
    assert reply.text == HI
    assert reply.snapshot == value


@modest
@given(noises, st.sampled_from(["", BYE, "\n```"]), st.data())
def test_any_chunking_of_a_reply_with_noise_gives_the_reply_read_whole(noise: str, tail: str, data: st.DataObject):
    whole = f"{HI}{SEP}{noise[:LONGEST]}{GOOD}{tail}"
    places = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)) | {0, len(whole)})
    shown = check([whole[one:two] for one, two in pairwise(places)], parse(whole, expected=STAMP), STAMP)
    assert GOOD[1:9] not in shown


@pytest.mark.parametrize("noise", ["\nJSON:\n", " --- ", "**Context**\n```json\n", "> "])
def test_a_snapshot_after_noise_that_is_cut_anywhere_shows_nothing_of_itself(noise: str):
    for written in (GOOD, TEMPLATE):
        whole = f"{HI}{SEP}{noise}"
        for size in range(1, len(written)):
            reply = parse(whole + written[:size], expected=STAMP)
            assert (reply.text, reply.snapshot) == (HI, None), size


@pytest.mark.parametrize("noise", ["\nJSON:\n", " --- ", "**Context**\n```json\n"])
def test_a_snapshot_after_noise_in_which_one_character_is_missing_does_not_become_text(noise: str):
    for written in (GOOD, TEMPLATE):
        for at in range(1, len(written)):
            reply = parse(f"{HI}{SEP}{noise}{written[:at]}{written[at + 1 :]}", expected=STAMP)
            assert reply.text == HI, at


def test_damaged_noise_around_a_snapshot_leaks_none_of_it(campaign: Campaign):
    chance = random.Random(campaign.seed)
    for number in range(campaign.size("damaged replies", 5000)):
        noise = chance.choice(OPENINGS)
        for _ in range(chance.randrange(4)):
            noise = damage(noise, chance)
        written = chance.choice((GOOD, TEMPLATE))
        assert not leaks(f"{HI}{SEP}{noise[:LONGEST]}{written}{chance.choice(['', *CLOSINGS])}", written), number


@pytest.mark.parametrize(
    "reply",
    [
        f'The token is {SEP}, and then JSON such as {{"a": 1}}.',
        f"End with `{SEP}` and the object: version, runtime, memory.",
        f'Use {SEP} {{version}} and {{"name": "memory"}} here.',
        f'{SEP}\nI remember you: {{"user": "Ada"}}',
        f"Write {SEP}" + " word" * 30 + GOOD,
        f"```\ntext\n{SEP}\n{{ JSON }}\n```\nSo it looks.",
        f'Use {SEP} and then {{"version": ...}} as shown.',
        f'After {SEP} the object begins with {{"version" and goes on with the others.\n\nNow to your question.',
        f"```python\nSEPARATOR = '{SEP}'\nempty = {{'memory': None}}\n```\nThat is the program.",
    ],
)
def test_a_mention_of_the_separator_without_a_snapshot_near_it_stays_text(reply: str):
    assert parse(reply, expected=STAMP).text == reply


def test_a_mention_before_the_section_stays_text_whatever_is_near_it():
    said = f"Replies end with {SEP} and JSON.\n"
    reply = parse(f"{said}{SEP}\n---\n{GOOD}", expected=STAMP)
    assert reply.text == said
    assert reply.snapshot == SNAPSHOT
