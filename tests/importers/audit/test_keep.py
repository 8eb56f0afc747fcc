"""What an import of a store keeps, and why it leaves out the rest."""

import pytest

from daypack.importers.audit.keep import choose
from daypack.importers.stores.records import Owner, StoredMemory


def remember(*texts: str, owner: str = "ada", subject: str = "") -> list[StoredMemory]:
    return [
        StoredMemory(id=f"{owner}-{subject}-{n}", text=text, subject=subject, owner=Owner(user=owner))
        for n, text in enumerate(texts)
    ]


def kept(*texts: str) -> list[str]:
    return [memory.text for memory in choose(remember(*texts)).memories]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Prefers tea over coffee", "prefers  tea over coffee."),
        ("Ada really loves playing the violin", "Ada loves playing violin"),
        ("Maria was inspired by the energy at the run", "Also Maria was inspired by the energy at the run"),
        ("The user said Maria was inspired by the energy at the run", "Maria was inspired by the energy at the run"),
        ("User's favourite editor is Helix on all machines", "The user's favourite editor is Helix on all machines"),
        ("Ada喜欢在早上喝茶。", "Ada 喜欢在早上喝茶"),
    ],
)
def test_of_memories_that_say_the_same_the_first_is_kept(first: str, second: str) -> None:
    assert kept(first, second) == [first]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Likes hiking in the Alps", "Likes skiing in the Alps"),
        ("Ada drinks coffee in the morning", "Ada does not drink coffee in the morning"),
        ("The staging database listens on port 5432", "The staging database listens on port 5433"),
        ("Mag Kaffee am Morgen", "Mag keinen Kaffee am Morgen"),
        ("Il boit du café le matin au bureau", "Il ne boit pas de café le matin au bureau"),
        ("他早上喜欢喝茶", "他早上不喜欢喝茶"),
        ("Run the tests before committing to main", "Commit to main before running the tests"),
        ("Ada uses memory and docker with the new team", "Ada stores memory and docker with the new team"),
        ("John thinks about how schools and roads shape towns", "Meetings in towns shaped how John sees schools"),
        ("Anna sent Ben the invoice for the boat", "Ben sent Anna the invoice for the boat"),
    ],
)
def test_memories_that_differ_in_one_thing_are_all_kept(first: str, second: str) -> None:
    assert kept(first, second) == [first, second]


_LONG = (
    "The release train leaves the yard every second Tuesday: the captain checks the cargo list, the cook loads bread, "
    "water and lamp oil, the carpenter inspects masts, pumps and rudder, and the harbour office signs {} papers"
)


def test_another_thing_in_a_long_text_is_another_memory_and_another_spelling_is_not() -> None:
    assert len(kept(_LONG.format("customs"), _LONG.format("insurance"))) == 2
    assert len(kept(_LONG.format("insurance"), _LONG.format("insurrance"))) == 1


def test_an_element_named_memory_that_holds_no_sentence_is_no_recalled_text() -> None:
    assert len(kept('The guest has <memory unit="KiB">4194304</memory> and two cores')) == 1


def test_the_longer_of_two_similar_memories_is_kept_whichever_is_older() -> None:
    short, long = "Ada plays chess with Ben on Sunday", "Ada always plays chess with Ben on Sunday afternoon"
    assert kept(short, long) == kept(long, short) == [long]


def test_the_same_words_of_two_owners_or_about_two_subjects_are_two_memories() -> None:
    memories = remember("Lives in Berlin") + remember("Lives in Berlin", owner="bob")
    memories += remember("Lives in Berlin", subject="Eve")
    assert len(choose(memories).memories) == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" — ", "empty"),
        ("Hello!", "junk"),
        ("Thanks, have a nice day!", "junk"),
        ("HEARTBEAT_OK", "junk"),
        ("You are a helpful assistant. Your task is to answer questions.", "junk"),
        ('Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1', "junk"),
        ("Relevant memories:\n- Owns a boat", "recalled text"),
        ("<claude-mem-context>\nOwns a boat\n</claude-mem-context>", "recalled text"),
        ("[recalled from messages:12] Owns a boat", "recalled text"),
        ("Memory: Plays the violin every day", "recalled text"),
        ("<memory>\nOwns a boat in the harbour\n</memory>", "recalled text"),
        ("<core_memory>Ada owns a boat there</core_memory>", "recalled text"),
        ("## Memories\n- Plays the violin every day", "recalled text"),
        ("- Plays the violin every day\n- Swims in the lake", "recalled text"),
    ],
)
def test_empty_junk_and_recalled_memories_are_left_out(text: str, kind: str) -> None:
    memories = remember("Plays the violin every day", "Swims in the lake", text)
    result = choose(memories)
    assert [finding.kind for finding in result.left_out.values()] == [kind]
    assert set(result.left_out) == {2}


@pytest.mark.parametrize(
    "text",
    [
        "Ada said hello to the new neighbours",
        "You are allergic to nuts",
        "The build fails with KeyError: 1 in a.py",
        "Remember to water the plants",
        "Memory: 16 GB in the build server",
        "No problem with nuts, but allergic to fish",
        "- Buy milk\n- Call the bank",
    ],
)
def test_facts_that_look_like_junk_are_kept(text: str) -> None:
    assert kept("Plays the violin every day", text)[-1] == text


def test_a_second_import_of_a_grown_store_decides_the_same_about_what_was_there() -> None:
    first = remember("Plays the violin", "plays the violin.", "Hello!")
    grown = [*first, *remember("PLAYS THE VIOLIN", "Owns a boat", subject="")[0:2]]
    before, after = choose(first), choose(grown)
    assert {at: finding.kind for at, finding in after.left_out.items() if at < len(first)} == {
        at: finding.kind for at, finding in before.left_out.items()
    }
