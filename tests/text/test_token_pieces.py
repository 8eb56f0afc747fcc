"""A long text is counted in pieces: the count is that of the whole text, in a bounded part of its memory."""

import random
import subprocess
import sys

import pytest

from daypack.text import tokens

SIZE = 60_000_000
WORDS = (
    *("The", " zebra", "\n", "\n\n", " ", "  ", "'s", " don't", "123", " 42", ".", "...", "/", "\r\n", "\t", "é"),
    *(" naïve", "中文", "🙂", "//", "{", "}\n", " A", "b", "_", "-", "\u3000", "ß", " x", "I'M", "\ud800"),
)
COUNT = """
import resource, sys
from daypack.text.tokens import counter_for
line = "The deploy of the zebra service on host-17 uses port 8080, see src/app/main.py line 42.\\n"
text = line * (int(sys.argv[1]) // len(line))
for model in (None, "gpt-4o"):
    counter_for(model).count(text)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4", "claude-opus-4", "gemini-2.5-pro", "llama-2", "mistral-7b", "qwen3"]
)
def test_the_sum_of_the_pieces_is_the_count_of_the_whole(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    counter = tokens.counter_for(model)
    for _ in range(60):
        text = "".join(chance.choices(WORDS, k=chance.randint(5, 300)))
        whole = counter.count(text)
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "_PIECE_CHARS", chance.randint(1, 40))
            assert counter.count(text) == whole


def test_counting_a_text_of_60_mb_takes_less_than_four_times_its_memory() -> None:
    small, large = (
        int(subprocess.run([sys.executable, "-c", COUNT, str(size)], capture_output=True, check=True).stdout)
        for size in (1000, SIZE)
    )
    assert large - small <= 4 * SIZE
