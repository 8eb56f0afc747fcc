"""The scenes of the demo; every figure is measured from the session that runs."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from daypack.cli.window_bar import CORE, VOLATILE, draw, window_of
from daypack.derived.tiers import Accepted
from daypack.session import open_session
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.kinds import TIERS
from daypack.types.snapshot import Tiers
from demo import proofs
from demo.agent import Agent
from demo.mcp_client import Server
from demo.model import text_of
from demo.picture import chart, key, sample
from demo.proofs import count_tokens
from demo.quotes import quote_broken, quote_reply
from demo.screen import Screen
from demo.story import CHILD, CHILD_SECRET, DOCUMENT, FACTS, POLICY, STEPS, WINDOW, Step
from demo.writer import digest, kill_writer, open_story, reached

KILL_FROM, KILL_AFTER = 42, 9
COLLECT_AT = 50
_RULES = {  # the rules that replies of the story break, in two words
    "S0-F2": "no fence",
    "S0-R4": "whole JSON",
    "S0-R1": "a section",
    "S0-R9": "three tiers",
    "S0-R8.2": "same round",
}
_OUTCOME, _RULE = 16, 19  # columns
_BROKEN = [number for number, step in enumerate(STEPS, 1) if step.form != "good"]
_DELEGATED = next(
    number
    for number, step in enumerate(STEPS, 1)
    if any(call.name == "delegate" for batch in step.batches for call in batch)
)


class Sent(NamedTuple):
    """A prepared call and the number of its turn."""

    number: int
    turn: Turn


class Demo:
    """One run of the story, scene by scene."""

    def __init__(self, screen: Screen, home: str, server: Server) -> None:
        self._screen = screen
        self._look = screen.look
        self._home = home
        self._server = server
        self._sent: list[Sent] = []
        self._calls: list[Turn] = []  # all calls, replayed at the end
        self.failures: list[str] = []  # expectations that did not hold
        self._memory = self._make_memory()
        self._session = open_story(home)
        self._agent = self._start()

    def run(self) -> None:
        """Play all scenes."""
        self._introduce()
        self._first_turn()
        self._overflow()
        self._broken_replies()
        self._shared_memory()
        self._child_agent()
        self._compaction()
        self._kill_process()
        self._collect_garbage()
        self._find_facts()
        self._rebuild()
        self._replay()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    # Scenes

    def _introduce(self) -> None:
        self._screen.title(f"daypack: {len(STEPS)} turns in a window of {WINDOW:,} tokens")
        self._screen.say(
            "Model and tools are scripted. The session, its files and its processes are real, and every figure is "
            "measured during this run."
        )
        self._screen.pause()

    def _first_turn(self) -> None:
        screen = self._screen
        self._agent.begin()
        self._session.bind_memory(self._memory)
        screen.scene("Every message is written to disk first. Then the window is packed.")
        self._play([1])
        screen.row("turn 1", STEPS[0].says)
        self._draw(self._sent[-1])
        screen.note("tail: the conversation; prefix: everything before it; volatile: this call only")
        screen.pause()
        screen.scene("The reply ends with a snapshot; its blocks become memory in three tiers.")
        answer, look = self._answer(1), self._look
        said, snapshot = quote_reply(proofs.raw_of(answer), screen.inner - 11, self._dots)
        screen.draw(f"{look.dim('reply      ')}{said} {look.dim(snapshot)}")
        screen.row("user sees", answer.text.strip())
        tiers = self._session.tiers
        for tier in TIERS:
            for block in tiers.of(tier):
                screen.row(tier, block.content, colour=(CORE if tier == "core" else VOLATILE).colour)
        screen.pause()

    def _overflow(self) -> None:
        screen = self._screen
        screen.scene("Tool output fills the window. The prompt cache still holds the prefix and most of the tail.")
        number = 1
        while not self._overflows():
            number += 1
            self._play([number])
        at = self._overflows()[0]
        full, packed = self._sent[at - 1], self._sent[at]
        screen.row(f"turn {full.number}", f"{full.turn.tokens:,} tokens")
        self._draw(full)
        screen.pause()
        stubbed = sorted(packed.turn.parts.epoch.stubbed)
        screen.scene(f"Overflow: {len(stubbed)} large results become stubs; all messages stay in the window.")
        shown = next(message for message in packed.turn.parts.messages if message.seq in stubbed)
        screen.row(f"turn {packed.number}", shown.text)
        self._draw(packed)
        screen.pause()

    def _compaction(self) -> None:
        screen = self._screen
        while not self._session.compactions:
            self._play([self._sent[-1].number + 1])
        done = self._session.compactions[0]
        packed = next(sent for sent in self._sent if sent.turn.parts.epoch.compaction)
        first, _, last = done.source.removeprefix("messages:").partition("-")
        screen.scene(f"Compaction: {int(last) - int(first) + 1} messages leave the window; all stay in history.")
        screen.row(f"turn {packed.number}", "CONTEXT.md keeps their facts and decisions, verbatim:")
        decisions = [decision.decision for decision in done.records.decisions]
        facts = [fact.text for fact in done.records.facts]
        for text in (*decisions[:1], *facts)[:2]:
            screen.row("", f"- {text}")
        self._draw(packed)
        screen.note("refs: names of files and of results that left the window")
        screen.pause()

    def _broken_replies(self) -> None:
        screen = self._screen
        screen.scene("Models break the reply format. No text is lost; each violation is recorded.")
        self._play(range(self._sent[-1].number + 1, _BROKEN[-1] + 1))
        room = screen.inner - 9 - _OUTCOME - _RULE
        screen.note(f"{'':<9}{'reply':<{room}}{'accepted':<{_OUTCOME}}broken rule")
        kept, violations = 0, 0
        for number in _BROKEN:
            answer, step = self._answer(number), STEPS[number - 1]
            section = proofs.section_of(self._session, answer)
            kept += answer.text.strip() == step.answers
            violations += len(section.violation_counts)
            part = quote_broken(proofs.raw_of(answer), step.form, room - 2, self._dots)
            rule = next(iter(section.violation_counts), "")
            self._expect(rule in _RULES, f"the violation in turn {number} was not recorded")
            summary = self._look.dim(_RULES.get(rule, ""))
            name = self._look.dim(f"{f'turn {number}':<9}")
            screen.draw(f"{name}{part:<{room}}{_outcome(section, step):<{_OUTCOME}}{rule} {summary}")
        self._expect(kept == len(_BROKEN), "text of a broken reply was lost")
        screen.row(
            "total", f"text of {kept} of {len(_BROKEN)} kept; {violations} violations recorded in events.jsonl", 9
        )
        screen.pause()

    def _shared_memory(self) -> None:
        screen = self._screen
        screen.scene("A memory shared across sessions, over MCP.")
        fact = next(fact for fact in FACTS if not fact.said)
        self._play(range(self._sent[-1].number + 1, fact.asked + 1))
        screen.row("server", f"daypack mcp, process {self._server.pid}, {len(self._server.tools())} tools")
        screen.row("add_entry", f"by another agent: {POLICY}")
        screen.row(f"turn {fact.asked}", STEPS[fact.asked - 1].says)
        screen.row("answered", self._answer(fact.asked).text.strip())
        screen.pause()

    def _child_agent(self) -> None:
        screen = self._screen
        self._play(range(self._sent[-1].number + 1, _DELEGATED + 1))
        child = next(child for child in self._session.children if child.name == CHILD)
        with open_session(child.session or "", agent=CHILD, home=self._home, create=False) as child_session:
            tokens = count_tokens(child_session)
        screen.scene("A child agent works in its own session.")
        screen.row("asked", child.handoff or "")
        screen.row("answered", child.result or "")
        screen.row("not shown", f"the {tokens:,} tokens of the child's session")
        screen.pause()

    def _kill_process(self) -> None:
        screen = self._screen
        self._play(range(self._sent[-1].number + 1, KILL_FROM))
        self._session.close()
        screen.scene("Another process continues the session and is killed with kill -9.")
        killed = kill_writer(self._home, KILL_FROM, len(STEPS), KILL_AFTER)
        self._session = open_story(self._home)
        self._agent = self._start()
        stored = {message.seq: digest(message) for message in self._session.messages()}
        kept = sum(stored.get(seq) == expected for seq, expected in killed.acknowledged.items())
        number = reached(self._session)
        screen.row("killed", f"process {killed.pid}, signal {killed.signal}, in turn {number}")
        screen.row("reopened", f"{kept} of {len(killed.acknowledged)} acknowledged messages are intact, byte for byte")
        self._expect(kept == len(killed.acknowledged), "messages were lost")
        screen.row("continued", f"in turn {number}, where the log ends")
        screen.pause()

    def _collect_garbage(self) -> None:
        screen = self._screen
        self._play(range(reached(self._session), COLLECT_AT + 1))
        planned, done = proofs.collect(self._session)
        screen.scene("Garbage collection removes only files that history can reproduce.")
        screen.row("removed", f"{', '.join(removal.path for removal in done.removed)}: {done.bytes:,} bytes")
        screen.row("kept", f"{len(planned.retained)} files, each with a reason")
        screen.pause()

    def _find_facts(self) -> None:
        screen = self._screen
        self._play(range(COLLECT_AT + 1, len(STEPS) + 1))
        self._calls = proofs.replay_all(self._session)
        leaked = [turn for turn in self._calls if CHILD_SECRET in text_of(turn.request())]
        self._expect(not leaked, "text of the child is in its parent's window")
        screen.scene("Facts that were mentioned once are found many turns later.")
        arrow = self._look.choose("→", "->")
        for fact in sorted((fact for fact in FACTS if fact.said), key=lambda fact: fact.asked):
            found = proofs.trace(self._session, self._calls, fact)
            self._expect(bool(found.place), f"{fact.words} was not found")
            screen.row(fact.words, f"turn {fact.said:>2} {arrow} turn {fact.asked}   {found.place}", 16)
        screen.pause()

    def _rebuild(self) -> None:
        screen = self._screen
        screen.scene("The context/ folder is deleted and rebuilt from the two logs.")
        before = proofs.derived_files(self._session)
        files, size = proofs.remove_context(self._session)
        proofs.rebuild_context(self._session)
        after = proofs.derived_files(self._session)
        same = [name for name, data in before.items() if after.get(name) == data]
        screen.row("removed", f"{files} files, {size:,} bytes")
        screen.row("identical", ", ".join(same))
        self._expect(len(same) == len(before), f"files differ: {', '.join(before.keys() - set(same))}")
        screen.pause()

    def _replay(self) -> None:
        screen, session = self._screen, self._session
        before, after = (list(map(proofs.digest_sent, turns)) for turns in (self._calls, proofs.replay_all(session)))
        same = sum(first == second for first, second in zip(before, after, strict=True))
        windows = [window_of(turn) for turn in self._calls]
        self._expect(same == len(before), "calls differ")
        screen.scene(f"Replay: {same} of {len(before)} calls reproduced byte for byte, for three APIs.")
        screen.draw(*chart(windows, self._look, screen.inner, 8), *key(self._look, screen.inner))
        room = windows[-1].budget - windows[-1].answer
        drawn = len(sample(windows, screen.inner))
        screen.note(f"{drawn} of {len(windows)} calls, up to {room:,} tokens each; every steep drop is a new epoch")
        screen.pause()
        sent, cached = sum(window.used for window in windows), sum(window.cached for window in windows)
        wrong = proofs.problems(session)
        screen.scene("Summary")
        asked = [message.text for message in session.messages() if message.role == "user"]
        kept = sum(step.says == text for step, text in zip(STEPS, asked, strict=False))
        self._expect(kept == len(asked) == len(STEPS), "a user message is missing")
        verbatim = f"{kept} of {len(STEPS)} requests verbatim"
        screen.row("history", f"{len(session.messages())} messages, {count_tokens(session):,} tokens; {verbatim}")
        largest = max(window.used for window in windows)
        screen.row("window", f"{len(session.compactions)} compactions, never above {largest:,} tokens")
        screen.row("cache", f"{cached / sent:.0%} of {sent:,} sent tokens can be read from the prompt cache")
        screen.row("doctor", "; ".join(wrong) or "no problems found")
        self._expect(not wrong, "doctor found problems")
        screen.row("next", "`make serve` starts a memory server; docs/design.md explains the design")

    # Shared by the scenes

    def _start(self) -> Agent:
        agent = Agent(self._session, self._call_memory)
        agent.on_call = self._record_call
        return agent

    def _play(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._agent.play(number)

    def _record_call(self, number: int, turn: Turn) -> None:
        self._sent.append(Sent(number, turn))
        self._screen.move(self._look.dim(f"turn {number}"), *self._picture(self._sent[-1]))

    def _picture(self, sent: Sent) -> list[str]:
        return draw(window_of(sent.turn), self._look, self._screen.inner)

    def _draw(self, sent: Sent) -> None:
        self._screen.draw(*self._picture(sent))

    @property
    def _dots(self) -> str:
        return self._look.choose("…", "...")

    def _overflows(self) -> list[int]:
        return [at for at, sent in enumerate(self._sent) if sent.turn.new_epoch == "overflow"]

    def _expect(self, holds: bool, failure: str) -> None:  # noqa: FBT001 — an assertion that is reported later
        if not holds:
            self.failures.append(failure)

    def _answer(self, number: int) -> Message:
        asked = next(message for message in self._session.messages() if message.client_key == f"turn-{number}")
        later = self._session.messages(asked.seq + 1)
        return next(message for message in later if message.role == "assistant" and not message.tool_calls)

    def _make_memory(self) -> str:
        memory = self._server.call("create_memory", {"title": "Nordpier"})["memory_id"]
        self._server.call("add_entry", {"memory_id": memory, "raw_entry": POLICY, "session": "office", "role": "user"})
        self._server.call("put_context", {"memory_id": memory, "content": DOCUMENT})
        return memory

    def _call_memory(self, name: str, arguments: dict[str, Any]) -> str:
        return json.dumps(self._server.call(name, {"memory_id": self._memory, **arguments}))


def _outcome(section: Accepted, step: Step) -> str:
    """Return how much of a snapshot that breaks a rule was accepted."""
    sent = sum(map(len, (step.blocks or {}).values()))
    if sent:
        memory = section.snapshot.memory if section.snapshot else Tiers()
        return f"{sum(len(memory.of(tier)) for tier in TIERS)} of {sent} blocks"
    return f"as round {section.round}" if section.snapshot else "no snapshot"
