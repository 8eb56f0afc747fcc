"""Generated conversations of users, assistants and tools with a natural word distribution."""

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

WORDS = 20_000
_COMMON = """
    the of and to a in is it you that we was for on are with as I his they be at one have this from or had by not
    but what all were when there can an your which their said if do will each about how up out them then she many
    some so these would other into has more her two like him see time could no make than first been its who now
    people my made over did down only way find use may water long little very after words called just where most
    know get through back much before go good new write our used me man too any day same right look think also
    around another came come work three word must because does part even place well such here take why things help
    put years different away again off went old number great tell men say small every found still between name
    should home big give air line set own under read last never us left end along while might next sound below saw
    something thought both few those
"""
_STARTS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "st", "tr", "pl")
_SYLLABLES = [start + vowel for start in _STARTS for vowel in "aeiou"]
_KEPT = 13  # one text of so many is kept to ask about
_TURN = ("user", "call", "tool", "call", "tool", "assistant")
_LENGTHS = {"user": (8, 40), "call": (2, 10), "tool": (20, 90), "assistant": (15, 70)}


def _vocabulary() -> list[str]:
    """Return the words, commonest first: real ones, then invented ones."""
    chance = random.Random(7)
    words: dict[str, None] = dict.fromkeys(_COMMON.split())
    while len(words) < WORDS:
        words["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) + chance.choice(("", "", "n", "s"))] = None
    return list(words)


_VOCABULARY = _vocabulary()
_WEIGHTS = list(accumulate(1 / (rank + 2) for rank in range(WORDS)))  # as Zipf found it in every language
_RANKS = {word: rank for rank, word in enumerate(_VOCABULARY)}


class Conversation:
    """Goes on for ever; the same seed always says the same."""

    def __init__(self, seed: int = 40) -> None:
        self._chance = random.Random(seed)
        self._asking = random.Random(seed + 1)
        self._number = 0
        self._kept: list[list[str]] = []

    def take(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield the next messages, ready for `append_many`."""
        for _ in range(count):
            yield self._next()

    def question(self) -> dict[str, Any]:
        """Return a question about something that was said, in some of its rarer words."""
        said = self._asking.choice(self._kept)
        rare = sorted(set(said), key=lambda word: -_RANKS[word])[:8]
        asked = self._asking.sample(rare, min(4, len(rare)))
        return {
            "role": "user",
            "content": f"what did we say about {' and '.join(asked[:2])} when {' '.join(asked[2:])}?",
        }

    def exchange(self) -> list[dict[str, Any]]:
        """Return an answer to the newest question, and the next question."""
        return [{"role": "assistant", "content": self._text("assistant")}, self.question()]

    def _next(self) -> dict[str, Any]:
        kind = _TURN[self._number % len(_TURN)]
        self._number += 1
        text = self._text(kind)
        if kind == "call":
            call = {"id": f"call_{self._number}", "name": "read_file", "arguments": f'{{"path":"src/{text[-20:]}.py"}}'}
            return {"role": "assistant", "content": text, "tool_calls": [call]}
        if kind == "tool":
            return {"role": "tool", "content": text, "tool_call_id": f"call_{self._number - 1}"}
        return {"role": kind, "content": text}

    def _text(self, kind: str) -> str:
        words = self._chance.choices(_VOCABULARY, cum_weights=_WEIGHTS, k=self._chance.randint(*_LENGTHS[kind]))
        if self._number % _KEPT == 0:
            self._kept.append(words)
        return " ".join(words)
