"""A worker that may be killed at any time: what to do next is read from the session, never kept in a variable.

    pip install openai
    export OPENAI_API_KEY=...
    python examples/worker.py jobs/    # start as many as you like; start again after a crash

Every .txt file is a job: the model reads it with a tool, page by page, and its summary goes to a .summary file.
"""

import fcntl
import json
import os
import sys
from pathlib import Path

from openai import OpenAI

import daypack

MODEL = os.environ.get("MODEL", "gpt-5")
PAGE = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}
TOOLS = [{"name": "read_page", "description": "Pages count from 1.", "input_schema": PAGE}]  # any provider's shape


def read_page(text: str, arguments: str, chars: int = 8_000) -> str:
    """Return a page of a text; whatever the model wrote, it gets an answer it can work with."""
    try:
        page = int(json.loads(arguments)["page"])
    except (KeyError, TypeError, ValueError) as error:
        return f"invalid arguments: {error!r}"
    return text[max(page - 1, 0) * chars : page * chars] or "There is no such page."


def work(client: OpenAI, job: Path) -> None:
    """Do a job from wherever it is: every step is stored before the next begins."""
    with daypack.open_session(job.stem, agent="worker", workspace="") as session:
        session.append("user", f"Summarise {job.name} in one paragraph.", client_key="job")  # stored once
        while (newest := session.tail(1)[0]).role != "assistant" or newest.tool_calls:
            if newest.role == "assistant":
                results = [(call.id, read_page(job.read_text(), call.arguments)) for call in newest.tool_calls]
                session.append_many({"role": "tool", "tool_call_id": id_, "content": text} for id_, text in results)
            else:
                turn = session.prepare(budget=32_000, model=MODEL, tools=TOOLS)
                reply = client.responses.create(model=MODEL, store=False, **turn.request("responses"))
                session.accept(reply)
        job.with_suffix(".summary").write_text(newest.text)
        session.set_state("done")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    for path in sorted(Path(sys.argv[1]).glob("*.txt")):
        with path.open("rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when this process ends, however it ends
            except BlockingIOError:
                continue  # another worker has it
            work(OpenAI(max_retries=5), path)
