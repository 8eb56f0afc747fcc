"""Chat in the terminal: replies are streamed, and the conversation is still there tomorrow.

    pip install openai
    export OPENAI_API_KEY=...    # or OPENAI_BASE_URL for any compatible server
    python examples/chat.py [SESSION]

Ctrl-C stops a reply and keeps what came of it; at the prompt it leaves, as Ctrl-D does. MODEL chooses the model.
"""

import os
import sys

from openai import OpenAI

import daypack

MODEL = os.environ.get("MODEL", "gpt-5")
BUDGET = 32_000  # tokens of the whole window, the reply included


def answer(client: OpenAI, session: daypack.Session, text: str) -> None:
    """Print the reply to a text while it comes."""
    session.append("user", text)
    turn = session.prepare(budget=BUDGET, model=MODEL)
    try:
        source = client.chat.completions.create(
            model=MODEL, stream=True, stream_options={"include_usage": True}, **turn.request("openai")
        )
        with session.stream(source) as stream:
            for piece in stream:
                print(piece, end="", flush=True)
    except KeyboardInterrupt:
        print(" [stopped]", end="")
    print()


def main() -> None:
    """Answer line after line of the standard input."""
    client = OpenAI()
    name = sys.argv[1] if len(sys.argv) > 1 else "chat"
    with daypack.open_session(name, workspace="") as session:
        session.pin("system", "You are a friendly assistant. Answer briefly.")
        for message in session.tail(2):
            print(f"{message.role}: {message.text}")
        while True:
            try:
                text = input("> ")
            except (EOFError, KeyboardInterrupt):
                print()
                break
            if text.strip():
                answer(client, session, text)


if __name__ == "__main__":
    main()
