"""The newest messages of a session on the terminal."""

from cli.conftest import Command

import daypack
from daypack.types.history import INCOMPLETE


def test_an_incomplete_reply_is_marked_with_its_reason(command: Command, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "Which sea?")
        stream = session.stream(
            {"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("The North ", "Sea.")
        )
        next(iter(stream))
        stream.close()
        session.append("assistant", "The Baltic.", name="desk", meta={INCOMPLETE: "Time\x1bout"})
    heads = [line for line in command("log", "talk").stdout.splitlines() if line.startswith("msg-")]
    assert [head.split("  ")[-1] for head in heads] == [
        "user",
        "assistant (incomplete: abandoned)",
        "assistant (desk) (incomplete: Time\\x1bout)",
    ]
