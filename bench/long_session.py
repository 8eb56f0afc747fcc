"""A session of many messages and calls, as a coding agent leaves it after weeks: what the page has to show."""

from bench.conversations import Conversation
from bench.histories import Histories
from bench.measure import say, settle

NAME = "page"
TOKENS = 32_000
MESSAGES, CALLS = 100_000, 2_000
QUICK_MESSAGES, QUICK_CALLS = 5_000, 100
_MODEL = "gpt-5"


def write_long_session(histories: Histories) -> tuple[int, int]:
    """Write the session into the home of the histories; return its messages and calls."""
    messages, calls = (QUICK_MESSAGES, QUICK_CALLS) if histories.quick else (MESSAGES, CALLS)
    say(f"page: writing a session of {messages:,} messages and {calls:,} calls")
    talk, each = Conversation(), messages // calls
    with histories.open(NAME, durability="os", workspace="", model=_MODEL) as session:
        session.pin("house-rules.md", "Write tests for every change. Never push to main.")
        for _ in range(calls):
            session.append_many([*talk.take(each - 2), talk.question()])
            turn = session.prepare(budget=TOKENS)
            cached = turn.expected_cached_tokens
            usage = {"input_tokens": turn.tokens, "cached_tokens": cached, "output_tokens": 120}
            session.accept({"role": "assistant", "content": talk.exchange()[0]["content"]}, usage)
        session.turns.inputs.history_search.index.wait()
        session.turns.compactions.wait()
    settle()
    return messages, calls
