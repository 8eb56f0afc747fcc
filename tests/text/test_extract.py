"""Which sentences of a text are worth keeping."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.extract import literal_density, overlap, prose, score, summarise

REPORT = """The export failed at night. The weather was nice and everyone was happy about it.

The export failed because `run_export` in src/app.py:12 waits 30 seconds for the export server.

```python
timeout = 30  # the export server
```

We had cake. The export server needs 120 seconds."""


@pytest.mark.parametrize(
    "data",
    [
        "```\nsome words in a fence\n```",
        "~~~\nsome words in a fence\n~~~",
        "```\na fence that is never closed",
        "| a | table | row |",
        "diff --git a/x b/x",
        "@@ -1,3 +1,4 @@",
        '{"key": "value", "other": [1, 2]}',
        '  "key": "a value",',
        "2026-11-15 21:10:20 started the worker",
        "[INFO] started the worker",
        '  File "/a/b.py", line 12, in run',
        "Traceback:\n\n    x = 1\n    y = 2\n",
        "const x = makeThing({",
        "def run(self, other):",
        "return value;",
        "<div class='a'>words</div>",
        "   12→  some listing",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ" * 8,
    ],
)
def test_data_is_not_prose(data: str) -> None:
    told = prose(f"Before it.\n\n{data}\n")
    assert told.strip() in ("Before it.", "Before it.\n\nTraceback:")


@pytest.mark.parametrize(
    "line",
    [
        "We use it for the tests, e.g. in a/b.py.",
        "- `mount/1` is called twice",
        "1. Remove the truncation",
        "- [ ] write the docs",
        "# A heading",
        "Return the value to the caller.",
        "我们决定使用 PostgreSQL。",
        "The deadline is 2026-04-05.",
    ],
)
def test_words_are_prose(line: str) -> None:
    assert prose(line) == line


def test_a_quotation_loses_its_sign_and_stands_alone() -> None:
    assert prose("> We agreed\n> on tabs.").split("\n\n") == ["\nWe agreed", "\non tabs.\n"]


def test_literals_make_a_sentence_dense() -> None:
    plain = literal_density("the server waits for a while before it gives up")
    named = literal_density("the server waits in Turin with Ada before it gives up")
    exact = literal_density("src/app.py waits 30s on port 8081 before it gives up")
    assert 0 == plain < named < exact < 1


def test_what_is_central_and_exact_scores_best() -> None:
    best = max(score(REPORT), key=lambda one: one.score)
    assert (
        best.text == "The export failed because `run_export` in src/app.py:12 waits 30 seconds for the export server."
    )


def test_a_summary_keeps_the_best_sentences_in_their_order() -> None:
    told = summarise(REPORT, 200)
    assert told.startswith("The export failed at night.")
    assert "`run_export` in src/app.py:12" in told
    assert "timeout" not in told
    assert len(told) <= 200


def test_a_summary_of_what_is_no_prose_is_its_beginning() -> None:
    assert summarise("```\nx = 1\ny = 2\n```", 12) == "``` x = 1 y"
    assert summarise("", 10) == ""


def test_a_summary_does_not_say_the_same_twice() -> None:
    assert summarise("The old parser is slow. The old parser is slow. We keep it.", 200).count("parser") == 1


def test_overlap_is_a_share_of_the_shorter() -> None:
    assert overlap(frozenset("ab"), frozenset("abcd")) == 1.0
    assert overlap(frozenset("ab"), frozenset("bcd")) == 0.5
    assert overlap(frozenset(), frozenset("a")) == 0.0


@given(st.text(max_size=400), st.integers(0, 120))
def test_any_text_can_be_summed_up_within_the_room(text: str, room: int) -> None:
    assert len(summarise(text, room)) <= room
    assert all(0 <= one.score <= 1 for one in score(text))
