"""One story through everything: sixty turns, three dialects, broken replies, tools, a child, MCP, kill -9, collection,
a deleted context/, and every call made again."""

import json
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent
from memory_server import run_daypack
from turn.snapshot_replies import kept_of
from turn.windows import check_left, check_window, stable_of

from daypack.protocol import Block
from daypack.session import Session, open_session
from daypack.turn.budget import Limits
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.upkeep.rebuild import verify
from demo import proofs, tools
from demo.agent import MEMORY_TOOLS, Agent
from demo.mcp_client import environment
from demo.model import stated
from demo.story import CHILD, CHILD_SECRET, DOCUMENT, FACTS, LAST, MAIL_LATER, MARA, POLICY, STEPS, Step
from demo.writer import digest, kill_writer, open_story, reached

Tool = Callable[..., dict[str, Any]]
KILLED, COLLECTED = 42, 50
BUDGET = 12_000  # the window is compacted three times and more


@contextmanager
def memory_process(home: str) -> Generator[Tool]:
    """Start `daypack mcp` and talk to it with the official client, from code that is not asynchronous."""
    args = ["-m", "daypack", "mcp", "--home", home]
    client = Client(StdioServerParameters(command=sys.executable, args=args, env=environment()), mode="auto")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):

        def call(name: str, **given: Any) -> dict[str, Any]:
            result = portal.call(partial(client.call_tool, name, given))
            assert isinstance(result, CallToolResult)
            assert isinstance(result.content[0], TextContent)
            assert not result.is_error, result.content[0].text
            assert result.structured_content is not None
            return result.structured_content

        yield call


class Watch:
    """Looks at every call when it is made, and keeps what is needed to look at it again."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sent: dict[str, str] = {}
        self._former: Turn | None = None

    def __call__(self, number: int, turn: Turn) -> None:
        newest = next(message for message in self.session.messages() if message.client_key == f"turn-{number}")
        check_window(turn, Limits(BUDGET), newest)  # three dialects, validated; the budget; every call with its results
        check_left(turn)
        assert turn.event_id
        assert CHILD_SECRET not in json.dumps(turn.request())
        if not turn.new_epoch and self._former:
            for name, before in stable_of(self._former).items():
                assert stable_of(turn)[name][: len(before)] == before, name
        self._former = turn
        self.sent[turn.event_id] = proofs.digest_sent(turn)


def blocks(*drafts: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["content"]) for one in drafts]


def shown(found: tuple[Block, ...]) -> list[tuple[str, str]]:
    return [(one.id, one.content) for one in found]


def snapshot_of(session: Session, number: int) -> dict[str, Any]:
    """The event about the section of a turn's answer."""
    return msgspec.to_builtins(proofs.section_of(session, final(session, number)))


def final(session: Session, number: int) -> Message:
    asked = next(message for message in session.messages() if message.client_key == f"turn-{number}")
    return next(
        message for message in session.messages(asked.seq) if message.role == "assistant" and not message.tool_calls
    )


def check_history(session: Session) -> None:
    """Everything the story says stands in the log, once, in order, word for word."""
    messages = list(session.messages())
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    rest = iter(messages)
    for number, step in enumerate(STEPS, 1):
        user = next(rest)
        assert (user.role, user.text) == ("user", step.says)
        for batch in step.batches:
            check_batch(rest, [(one.name, one.arguments) for one in batch])
        fact = next((one for one in FACTS if one.asked == number), None)
        answer = next(rest)
        if answer.tool_calls:
            assert fact
            assert [call.name for call in answer.tool_calls] == ["search_history"]
            assert next(rest).tool_call_id == answer.tool_calls[0].id
            answer = next(rest)
        check_answer(answer, step, stated(fact) if fact else step.answers)
    assert next(rest, None) is None


def check_batch(rest: Iterator[Message], calls: list[tuple[str, dict[str, Any]]]) -> None:
    asking = next(rest)
    assert [(call.name, json.loads(call.arguments)) for call in asking.tool_calls] == calls
    for call, (name, given) in zip(asking.tool_calls, calls, strict=True):
        result = next(rest)
        assert (result.role, result.tool_call_id) == ("tool", call.id)
        if name not in (*MEMORY_TOOLS, "delegate"):
            assert result.text == tools.use(name, given)


def check_answer(answer: Message, step: Step, text: str) -> None:
    assert answer.role == "assistant"
    cut = kept_of(answer).get("text", "")
    assert answer.text == (text if step.form == "missing" else f"{text}\n")
    assert cut.startswith("<<<CONTEXT>>>\n") == (step.form != "missing")


def check_broken_replies(session: Session) -> None:
    """Each of the five was told under its rule; what could be used was."""
    fenced, truncated, missing, unknown, altered = (snapshot_of(session, at) for at in (15, 17, 18, 21, 22))
    assert {"S0-F2", "S0-R6"} <= fenced["violation_counts"].keys()
    assert fenced["snapshot"]["memory"]["core"][0]["id"] == "core-003"
    assert {"S0-R4", "S0-R5"} <= truncated["violation_counts"].keys()
    assert "snapshot" not in truncated
    assert missing["violation_counts"].keys() == {"S0-R1"}
    assert "S0-R9" in unknown["violation_counts"]
    assert "old-001" not in json.dumps(unknown["snapshot"])
    assert "S0-R8.2" in altered["violation_counts"]
    assert altered["snapshot"]["runtime"]["round"] == 22
    good = [at for at in range(1, KILLED) if STEPS[at - 1].form == "good"]
    assert [at for at in good if "violation_counts" in snapshot_of(session, at)] == []


def check_tiers(session: Session, number: int) -> None:
    """What the tiers must hold after some of the turns."""
    tiers = session.tiers
    assert tiers.round == number
    if number in (1, 4, 5):  # what is short-lived leaves after three rounds
        assert shown(tiers.core) == blocks(MARA)
        assert [one.id for one in tiers.ephemeral] == (["temp-001"] if number < 5 else [])
    if number in (12, 15, 16, 17, 18):  # a block comes, and is deleted by its decay; nothing deletes by leaving out
        assert [one.id for one in tiers.working] == ["work-001", *(["work-002"] if number < 16 else [])]
        assert [one.id for one in tiers.core] == ["core-001", "core-002", *(["core-003"] if number >= 15 else [])]
    if number == 28:
        assert (MAIL_LATER["id"], MAIL_LATER["content"]) in shown(tiers.core)


def play(agent: Agent, first: int, last: int) -> None:
    for number in range(first, last + 1):
        agent.play(number)
        check_tiers(agent.session, number)


def make_memory(call: Tool) -> str:
    made = call("create_memory", title="Nordpier")["memory_id"]
    added = call("add_entry", memory_id=made, raw_entry=POLICY, session="office", role="user")
    assert call("await_consistency", memory_id=made, token=added["token"])["status"] == "consistent"
    call("put_context", memory_id=made, content=DOCUMENT)
    return made


@pytest.mark.requirement("T1", "T12")
def test_sixty_turns_survive_everything_and_every_call_can_be_made_again(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")  # as in the other processes
    with memory_process(home) as call:
        memory = make_memory(call)

        def remember(name: str, given: dict[str, Any]) -> str:
            return json.dumps(call(name, memory_id=memory, **given))

        session = open_story(home)
        agent = Agent(session, remember)
        agent.on_call = first = Watch(session)
        agent.begin()
        session.set_budget(BUDGET)
        session.bind_memory(memory)
        play(agent, 1, KILLED - 1)
        check_broken_replies(session)
        check_child(session, home)
        session.close()

        # Another process goes on and is killed; what it was told is stored is stored, and the story goes on there.
        before = Path(session.layout.messages).read_bytes()
        killed = kill_writer(home, KILLED, len(STEPS), after=9)
        assert killed.signal == 9
        assert len(killed.acknowledged) >= 9
        session = open_story(home)
        there = {message.seq: digest(message) for message in session.messages()}
        assert killed.acknowledged.items() <= there.items()
        assert Path(session.layout.messages).read_bytes().startswith(before)
        agent = Agent(session, remember)
        agent.on_call = second = Watch(session)
        assert KILLED <= reached(session) < COLLECTED
        play(agent, reached(session), COLLECTED)

        # What may go goes, and nothing that was said or sent with it.
        planned, applied = proofs.collect(session)
        assert planned.missing == ()
        assert {removal.path for removal in applied.removed} == {removal.path for removal in planned.removals} != set()
        assert not (session.path / "context/pack.json").exists()
        play(agent, COLLECTED + 1, len(STEPS))

        calls = proofs.replay_all(session)
        sent = {turn.event_id: proofs.digest_sent(turn) for turn in calls}
        assert (first.sent | second.sent).items() <= sent.items()
        assert len(session.compactions) >= 3
        check_history(session)
        check_facts(session, calls)
        check_end(session, calls[-1])
        check_memory(session, call, memory)
        check_rebuilt(session, sent)
        session.close()
    assert proofs.problems(session) == []
    doctor = run_daypack(home, "doctor", session.name, "--agent", session.agent)
    assert (doctor.returncode, doctor.stdout) == (0, "1 session checked, no problems\n")


def check_child(session: Session, home: str) -> None:
    [child] = session.children
    assert (child.name, child.status) == (CHILD, "done")
    assert "30 November" in (child.result or "")
    with open_session(child.session or "", agent=CHILD, home=home, create=False) as own:
        assert len(own.messages()) == 6
        assert any(CHILD_SECRET in message.text for message in own.messages())
    assert not any(CHILD_SECRET in message.text for message in session.messages())


def check_facts(session: Session, calls: list[Turn]) -> None:
    """What was said once is found when it is asked for, long after it left the tail."""
    for fact in FACTS:
        assert stated(fact) in final(session, fact.asked).text
        assert proofs.trace(session, calls, fact).place not in ("", "in the tail"), fact
        if fact.said:
            assert any(fact.words in hit.text for hit in session.search_history(fact.query)), fact


def check_end(session: Session, last: Turn) -> None:
    """The tiers as the story leaves them, and the turn that shows them."""
    tiers = session.tiers
    assert tiers.round == len(STEPS)
    assert [one.id for one in tiers.core] == ["core-001", "core-002", "core-003"]
    assert [one.content for one in tiers.working] == ["The booking site is moved; watch it."]
    assert shown(tiers.ephemeral) == blocks(LAST)
    assert MARA["content"] in last.quoted
    after = json.dumps(last.messages()[-1], ensure_ascii=False)
    assert tiers.working[0].content in after
    assert LAST["content"] in after


def check_rebuilt(session: Session, sent: dict[str | None, str]) -> None:
    """Everything derived can go: the same bytes come back, the same tiers, the same calls; the logs are not touched."""
    layout = session.layout
    logs = [Path(path).read_bytes() for path in (layout.messages, layout.events)]
    files, tiers = proofs.derived_files(session), session.tiers
    assert {"CONTEXT.md", "pack.json", "pack.md"} <= files.keys()
    session.turns.close()
    session.history.close()
    proofs.remove_context(session)
    assert proofs.rebuild_context(session).problem is None
    assert proofs.derived_files(session) == files
    assert session.tiers == tiers
    assert {turn.event_id: proofs.digest_sent(turn) for turn in proofs.replay_all(session)} == sent
    assert verify(layout.home, session.agent, session.name, session.history.config) == ()
    assert [Path(path).read_bytes() for path in (layout.messages, layout.events)] == logs


def check_memory(session: Session, call: Tool, memory: str) -> None:
    """What was said reaches the memory once, and is found from outside."""
    added = session.capture(end=True)
    said = [message for message in session.messages() if message.role in ("user", "assistant") and message.text]
    assert len(added) == len(said)
    assert session.capture() == ()
    found = call("search_memories", memory_id=memory, query="Who is the mechanic of the Lunde?")["entries"]
    assert "Ole Brekke" in found[0]["raw_entry"]
    stored = list(entries(call, memory))
    assert len(stored) == len(said) + 2  # one was there before, one was added by the agent itself
    assert not any(words in one for one in stored for words in (CHILD_SECRET, "<<<CONTEXT>>>"))


def entries(call: Tool, memory: str) -> Iterator[str]:
    """All raw entries of a memory, page by page."""
    page = call("list_entries", memory_id=memory, limit=50)
    while True:
        yield from (one["raw_entry"] for one in page["entries"])
        if not page.get("next_before"):
            return
        page = call("list_entries", memory_id=memory, limit=50, before=page["next_before"])
