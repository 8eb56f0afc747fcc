"""Many conversations at once in one event loop, each in its own session.

    pip install openai
    export OPENAI_API_KEY=...    # or OPENAI_BASE_URL for any compatible server
    printf 'ada: What is a monad?\nbob: And a functor?\n' | python examples/many_sessions.py

Each line is a user and a question. `prepare` reads files and counts tokens, so it runs in a thread; the rest awaits
the network. A session takes one turn at a time, different sessions run side by side.
"""

import asyncio
import os
import sys
from collections import defaultdict

from openai import APIError, AsyncOpenAI

import daypack

MODEL = os.environ.get("MODEL", "gpt-5")


class Desk:
    """Answers questions, at most `limit` at a time."""

    def __init__(self, client: AsyncOpenAI, limit: int = 8) -> None:
        self.client = client
        self.limit = asyncio.Semaphore(limit)
        self.busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def answer(self, user: str, question: str) -> str:
        """Return the answer to one question of a user."""
        async with self.busy[user], self.limit:
            with daypack.open_session(user, agent="desk", workspace="") as session:
                await asyncio.to_thread(session.append, "user", question)
                turn = await asyncio.to_thread(session.prepare, budget=16_000, model=MODEL)
                stream = await self.client.chat.completions.create(
                    model=MODEL, stream=True, stream_options={"include_usage": True}, **turn.request("openai")
                )
                return (await session.stream(stream)).text


async def main() -> None:
    """Answer all lines of the standard input and print the answers in their order."""
    asked = [parts for parts in (line.partition(":") for line in sys.stdin) if parts[2].strip()]
    async with AsyncOpenAI() as client:
        desk = Desk(client)
        replies = (desk.answer(user.strip(), question.strip()) for user, _, question in asked)
        answers = await asyncio.gather(*replies, return_exceptions=True)
    for (user, _, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, BaseException) and not isinstance(answer, APIError):
            raise answer
        print(f"{user.strip()}: {answer}")


if __name__ == "__main__":
    asyncio.run(main())
