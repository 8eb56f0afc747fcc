"""An assistant that remembers: notes the model keeps itself, and a memory that all sessions share.

    pip install openai
    export OPENAI_API_KEY=...    # or OPENAI_BASE_URL for any compatible server
    python examples/remembers.py monday
    python examples/remembers.py tuesday    # another session knows what was said on monday

With the protocol on, the model ends each answer with notes for itself. The stream shows the answer without them.
"""

import os
import sys

from openai import OpenAI

import daypack

MODEL = os.environ.get("MODEL", "gpt-5")
TITLE = "assistant"


def find_memory() -> str:
    """Return the id of the memory that all sessions share; create it the first time."""
    with daypack.open_memory() as memories:
        for memory in memories.memories():
            if memory.title == TITLE:
                return memory.memory_id
        return memories.create_memory(TITLE).memory_id


def main() -> None:
    """Answer line after line of the standard input."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    client = OpenAI()
    with daypack.open_session(sys.argv[1], agent=TITLE, workspace="") as session:
        session.bind_memory(find_memory())
        session.switch("protocol", on=True)
        for text in filter(None, map(str.strip, sys.stdin)):
            session.append("user", text)
            turn = session.prepare(budget=16_000, model=MODEL)
            source = client.chat.completions.create(
                model=MODEL, stream=True, stream_options={"include_usage": True}, **turn.request("openai")
            )
            for piece in session.stream(source):
                print(piece, end="", flush=True)
            print()
        for block in session.tiers.core:
            print(f"noted: {block.content}")
        session.capture(end=True)  # what was said goes into the memory, and its document is updated


if __name__ == "__main__":
    main()
