"""Replies that were damaged at random: none raises, and no word of the text is lost."""

import json
import random

from campaigns import Campaign
from msgspec.structs import replace
from protocol.replies import GOOD, STAMP, TEMPLATE, apart, compact, put

from daypack.protocol import SEPARATOR, Splitter, emit, parse

ROUNDS = 10_000
TEXT = "Hello, the <b>motor</b> turns. 记忆 😀\n"
SOURCES = [
    f"{TEXT}{SEPARATOR}\n{GOOD}",
    f"{TEXT}{SEPARATOR}\n{TEMPLATE}\n",
    f"{TEXT}{SEPARATOR}\n```json\n{GOOD}\n```\nBye.",
    f"{TEXT}{SEPARATOR}<context>{GOOD}</context>",
    f"Write `{SEPARATOR}`.\n{SEPARATOR} {GOOD}",
    f"{TEXT}{SEPARATOR}{compact(put('active_task', f'say {SEPARATOR}'))}",
    f"{SEPARATOR}{GOOD}\n{TEXT}",
    f"{TEXT}{SEPARATOR}\n{GOOD.replace(',', ', // why' + chr(10), 3)}",
    f"{TEXT}{SEPARATOR}\n**Context**\n{GOOD}\n---",
    f"{TEXT}{SEPARATOR} Here is the context: {{}} {TEMPLATE}",
    emit(TEXT, put("memory.core", [])),
]
PIECES = [
    SEPARATOR, "<<<", ">>>", "<", "CONTEXT", "{", "}", "[", "]", '"', "\\", ",", ":", "'", "\n", "\x00", "\ufeff",
    "\u00a0", "```", "```json\n", "<x>", "</x>", "/*", "*/", "//", "NaN", "Infinity", "1e999", "null", "true", "-",
    "0", "9" * 30, "\\ud800", "\\u", '{"version":2.3}', "word", "记", "😀", '"id":', '"memory":', "{" * 70, "[" * 70,
    "\ud800",
]  # fmt: skip


def damage(reply: str, chance: random.Random) -> str:
    """Change a reply in one of the ways replies get damaged."""
    one, two = sorted((chance.randrange(len(reply) + 1), chance.randrange(len(reply) + 1)))
    near = min(len(reply), one + chance.randrange(1, 8))
    match chance.randrange(9):
        case 0:
            return reply[:one]
        case 1:
            return reply[:one] + reply[near:]
        case 2 | 3:
            return reply[:one] + chance.choice(PIECES) + reply[one:]
        case 4:
            return reply[:one] + chance.choice(PIECES) + reply[near:]
        case 5:
            return reply[:two] + reply[one:]
        case 6:
            return reply[one:]
        case 7:
            return reply.replace(chance.choice(PIECES), chance.choice(PIECES), chance.randrange(1, 4))
        case _:
            return reply[:one] + reply[one:two][::-1] + reply[two:] if two - one < 40 else reply[:one] + reply[two:]


def damaged(rounds: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    made: list[str] = []
    for _ in range(rounds):
        reply = chance.choice(SOURCES)
        for _ in range(min(chance.randrange(1, 6), chance.randrange(1, 6))):  # seldom five: hardly any survives that
            reply = damage(reply, chance)
        made.append(reply)
    return made


def test_damaged_replies_are_read_without_an_error_and_without_losing_a_word(campaign: Campaign):
    kept, rounds = 0, campaign.size("damaged replies", ROUNDS)
    for number, whole in enumerate(damaged(rounds, campaign.seed)):
        reply = parse(whole, expected=STAMP)
        start, end = reply.cut or (len(whole), len(whole))
        assert apart(reply.text, whole[:start] + whole[end:]) == "", number
        assert apart(reply.raw, whole[start:end]) == "", number
        assert reply.cut is None or whole.startswith(SEPARATOR, start), number
        assert reply.text.startswith(whole.partition(SEPARATOR)[0]), number
        assert reply.snapshot is None or reply.cut, number
        assert SEPARATOR in whole or [one.rule for one in reply.violations] == ["S0-R1"], number
        kept += reply.snapshot is not None
    # The damage is neither so small that all survive, nor so great that none does.
    assert rounds * 0.1 < kept < rounds * 0.9


def test_a_reply_that_is_cut_anywhere_shows_its_text_and_nothing_of_the_snapshot():
    for written in (GOOD, TEMPLATE):
        whole = f"{TEXT}{SEPARATOR}\n{written}"
        for size in range(len(whole)):
            reply = parse(whole[:size], expected=STAMP)
            assert reply.text == (whole[:size] if size < len(TEXT) + len(SEPARATOR) else TEXT), size
            assert reply.snapshot is None, size


def test_a_snapshot_in_which_one_character_is_missing_does_not_become_text():
    for written in (GOOD, TEMPLATE):
        for at in range(1, len(written)):
            reply = parse(f"{TEXT}{SEPARATOR}\n{written[:at]}{written[at + 1 :]}", expected=STAMP)
            assert reply.text == TEXT, at


def test_a_snapshot_that_came_through_damage_is_good_enough_to_be_sent_again(campaign: Campaign):
    for whole in damaged(campaign.size("damaged replies", ROUNDS // 5), campaign.seed):
        snapshot = parse(whole, expected=STAMP).snapshot
        if snapshot is not None:
            assert snapshot["runtime"] == STAMP["runtime"]
            written = emit("", snapshot)
            assert json.loads(written.removeprefix(SEPARATOR)) == snapshot
            for tier in (snapshot.memory.core, snapshot.memory.working, snapshot.memory.ephemeral):
                assert all(0 <= block.decay <= 1 and 0 <= block.confidence <= 1 and block.id for block in tier)


def test_damaged_replies_in_pieces_are_those_read_whole(campaign: Campaign):
    chance = random.Random(campaign.seed)
    for number, whole in enumerate(damaged(campaign.size("damaged replies", ROUNDS // 10), campaign.seed)):
        splitter = Splitter(expected=STAMP)
        shown, at = "", 0
        while at < len(whole):
            size = chance.choice((1, 2, 3, 5, 8, 13, 400))
            shown += splitter.feed(whole[at : at + size])
            at += size
        reply = splitter.close()
        assert replace(reply, unsent="") == parse(whole, expected=STAMP), number
        assert apart(shown + reply.unsent, reply.text) == "", number


def test_damaged_bytes_are_read_like_the_characters_they_give(campaign: Campaign):
    chance = random.Random(campaign.seed)
    for number in range(campaign.size("damaged replies", ROUNDS // 10)):
        written = bytearray(chance.choice(SOURCES).encode())
        for _ in range(chance.randrange(1, 20)):
            written[chance.randrange(len(written))] = chance.randrange(256)
        whole = bytes(written)
        reply, same = parse(whole, expected=STAMP), parse(whole.decode(errors="replace"), expected=STAMP)
        assert (reply.text, reply.snapshot, reply.cut) == (same.text, same.snapshot, same.cut), number
        splitter = Splitter(expected=STAMP)
        shown = "".join([splitter.feed(whole[at : at + 7]) for at in range(0, len(whole), 7)])
        assert shown + splitter.close().unsent == reply.text, number
