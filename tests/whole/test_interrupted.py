"""An agent that is killed at any file call goes on where the log ends, and says nothing twice."""

import os
import signal

import pytest
from campaigns import Campaign
from faults import Faults, injected

from daypack.derived.tiers import SNAPSHOT
from daypack.text.tokens import counter_for
from daypack.types.history import Message
from demo import proofs
from demo.agent import Agent
from demo.story import STEPS
from demo.writer import digest, open_story, reached

TURNS = 4


def run_until_killed(home: str, at: int) -> tuple[int, dict[int, str]]:
    """Go on with the story in a process that dies at its n-th file call, half of the bytes written if that writes.

    Return the signal it died of, 0 when it came to the end, and what it had acknowledged.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        write = os.write  # its own words are no file call of daypack
        session = open_story(home)
        agent = Agent(session)

        def tell(message: Message) -> None:
            write(writing, f"{message.seq} {digest(message)}\n".encode())

        agent.on_append = tell
        if not session.events():
            agent.begin()
        with injected(Faults(at, "kill")):
            for number in range(max(1, reached(session)), TURNS + 1):
                agent.play(number)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [line.split() for line in pipe.read().splitlines()]
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, {int(seq): words.decode() for seq, words in lines}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_agent_that_is_killed_again_and_again_tells_the_whole_story_once(home: str, campaign: Campaign) -> None:
    counter_for("gpt-4o").count("loaded once, before the forks")
    acknowledged: dict[int, str] = {}
    kills, step = 0, 2000 // campaign.size("kills", 65, least=20)
    for at in range(1 + campaign.seed % 31, 2000, step):
        died, told = run_until_killed(home, at)
        acknowledged |= told
        with open_story(home) as session:
            assert acknowledged.items() <= {message.seq: digest(message) for message in session.messages()}.items()
        if not died:
            break
        assert died == signal.SIGKILL
        kills += 1
    assert kills > 3
    with open_story(home) as session:
        session.prepare()  # the last kill may have hit between an answer and its event: the next turn makes up for that
        messages = list(session.messages())
        assert [message.text for message in messages if message.role == "user"] == [step.says for step in STEPS[:TURNS]]
        calls = [call.id for message in messages for call in message.tool_calls]
        assert [message.tool_call_id for message in messages if message.role == "tool"] == calls
        assert len(set(calls)) == len(calls) == sum(len(batch) for step in STEPS[:TURNS] for batch in step.batches)
        assert len(proofs.replay_all(session)) >= len(calls)
        assert [event.type for event in session.events()].count(
            SNAPSHOT
        ) == TURNS  # each answer's memory is taken in, once
        assert [one.id for one in (*session.tiers.core, *session.tiers.working)] == ["core-001", "work-001"]
        assert session.damage == []
        assert proofs.problems(session) == []
