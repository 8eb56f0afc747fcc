"""The telling: the story is played scene by scene, and every figure is measured from the session that plays it."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from daypack.derived.tiers import Accepted
from daypack.session import open_session
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.kinds import TIERS
from daypack.types.snapshot import Tiers
from demo import proofs
from demo.agent import Agent
from demo.model import text_of
from demo.picture import CORE, VOLATILE, bar, cache_line, chart, key, legend, sample, window_of
from demo.proofs import count_tokens
from demo.quotes import quote_broken, quote_reply
from demo.screen import Screen
from demo.story import CHILD, CHILD_SECRET, DOCUMENT, FACTS, POLICY, STEPS, WINDOW, Step
from demo.wire import Server
from demo.writer import digest, kill_writer, open_story, reached

KILL_FROM, KILL_AFTER = 42, 9
COLLECT_AT = 50
_RULES = {  # what the rules that the story breaks ask for, in two words
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
    """A call as it was prepared, and in which turn."""

    number: int
    turn: Turn


class Telling:
    """One run of the story."""

    def __init__(self, screen: Screen, home: str, server: Server) -> None:
        self._screen = screen
        self._look = screen.look
        self._home = home
        self._server = server
        self._sent: list[Sent] = []
        self._calls: list[Turn] = []  # all of them, made again at the end
        self.failures: list[str] = []  # what was not as it must be
        self._memory = self._make_memory()
        self._session = open_story(home)
        self._agent = self._start()

    def tell(self) -> None:
        """Tell everything."""
        self._say_hello()
        self._begin()
        self._fill()
        self._break_rules()
        self._remember()
        self._delegate()
        self._kill()
        self._collect()
        self._ask()
        self._come_back()
        self._replay()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    # Scenes

    def _say_hello(self) -> None:
        self._screen.title(f"daypack: {len(STEPS)} turns in a window of {WINDOW:,} tokens")
        self._screen.say(
            "Model and tools follow a script. The session, its files and its processes are real, and every figure is "
            "measured as you read."
        )
        self._screen.pause()

    def _begin(self) -> None:
        screen = self._screen
        self._agent.begin()
        self._session.bind_memory(self._memory)
        screen.scene("What is said goes to disk first. Then a window is packed.")
        self._play([1])
        screen.row("turn 1", STEPS[0].says)
        self._draw(self._sent[-1])
        screen.note("tail: the conversation; prefix: all before it; volatile: for this call only")
        screen.pause()
        screen.scene("The reply ends with a snapshot. Its blocks become memory, in three tiers.")
        answer, look = self._answer(1), self._look
        said, snapshot = quote_reply(proofs.raw_of(answer), screen.inner - 11, self._dots)
        screen.draw(f"{look.dim('reply      ')}{said} {look.dim(snapshot)}")
        screen.row("user sees", answer.text.strip())
        tiers = self._session.tiers
        for tier in TIERS:
            for one in tiers.of(tier):
                screen.row(tier, one.content, colour=(CORE if tier == "core" else VOLATILE).colour)
        screen.pause()

    def _fill(self) -> None:
        screen = self._screen
        screen.scene("Tools fill the window. The prompt cache keeps its beginning.")
        number = 1
        while not self._overflows():
            number += 1
            self._play([number])
        at = self._overflows()[0]
        full, packed = self._sent[at - 1], self._sent[at]
        screen.row(f"turn {full.number}", f"{full.turn.tokens:,} tokens")
        self._draw(full)
        screen.pause()
        done = self._session.compactions[0]
        first, _, last = done.source.removeprefix("messages:").partition("-")
        screen.scene(f"Full: {int(last) - int(first) + 1} messages leave the window. None leaves history.")
        screen.row(f"turn {packed.number}", "What counts of them stands in CONTEXT.md, as it was said:")
        decided, facts = [one.decision for one in done.records.decisions], [one.text for one in done.records.facts]
        for words in (*decided[:1], *facts)[:2]:
            screen.row("", f"- {words}")
        self._draw(packed)
        screen.note("refs: files, and results that left the window, by name")
        screen.pause()

    def _break_rules(self) -> None:
        screen = self._screen
        screen.scene("Models break rules. No word is lost, every broken rule is told.")
        self._play(range(self._sent[-1].number + 1, _BROKEN[-1] + 1))
        room = screen.inner - 9 - _OUTCOME - _RULE
        screen.note(f"{'':<9}{'reply':<{room}}{'taken':<{_OUTCOME}}broken rule")
        kept, told = 0, 0
        for number in _BROKEN:
            answer, step = self._answer(number), STEPS[number - 1]
            section = proofs.section_of(self._session, answer)
            kept += answer.text.strip() == step.answers
            told += len(section.violation_counts)
            part = quote_broken(proofs.raw_of(answer), step.form, room - 2, self._dots)
            rule = next(iter(section.violation_counts), "")
            self._expect(rule in _RULES, f"what turn {number} broke was not told")
            asks = self._look.dim(_RULES.get(rule, ""))
            name = self._look.dim(f"{f'turn {number}':<9}")
            screen.draw(f"{name}{part:<{room}}{_outcome(section, step):<{_OUTCOME}}{rule} {asks}")
        self._expect(kept == len(_BROKEN), "words of a broken reply were lost")
        screen.row("in all", f"words of {kept} of {len(_BROKEN)} kept; {told} broken rules told, in events.jsonl", 9)
        screen.pause()

    def _remember(self) -> None:
        screen = self._screen
        screen.scene("A memory across sessions, over MCP.")
        fact = next(one for one in FACTS if not one.said)
        self._play(range(self._sent[-1].number + 1, fact.asked + 1))
        screen.row("server", f"daypack mcp, process {self._server.pid}, {len(self._server.tools())} tools")
        screen.row("add_entry", f"by another agent: {POLICY}")
        screen.row(f"turn {fact.asked}", STEPS[fact.asked - 1].says)
        screen.row("answered", self._answer(fact.asked).text.strip())
        screen.pause()

    def _delegate(self) -> None:
        screen = self._screen
        self._play(range(self._sent[-1].number + 1, _DELEGATED + 1))
        child = next(one for one in self._session.children if one.name == CHILD)
        with open_session(child.session or "", agent=CHILD, home=self._home, create=False) as own:
            tokens = count_tokens(own)
        screen.scene("A child agent works in a session of its own.")
        screen.row("asked", child.handoff or "")
        screen.row("answered", child.result or "")
        screen.row("kept away", f"the {tokens:,} tokens it worked through")
        screen.pause()

    def _kill(self) -> None:
        screen = self._screen
        self._play(range(self._sent[-1].number + 1, KILL_FROM))
        self._session.close()
        screen.scene("Another process goes on, and is killed with kill -9.")
        killed = kill_writer(self._home, KILL_FROM, len(STEPS), KILL_AFTER)
        self._session = open_story(self._home)
        self._agent = self._start()
        there = {one.seq: digest(one) for one in self._session.messages()}
        kept = sum(there.get(seq) == words for seq, words in killed.acknowledged.items())
        number = reached(self._session)
        screen.row("killed", f"process {killed.pid}, signal {killed.signal}, in turn {number}")
        screen.row("reopened", f"{kept} of {len(killed.acknowledged)} acknowledged messages are there, byte for byte")
        self._expect(kept == len(killed.acknowledged), "messages were lost")
        screen.row("goes on", f"in turn {number}, where the log ends")
        screen.pause()

    def _collect(self) -> None:
        screen = self._screen
        self._play(range(reached(self._session), COLLECT_AT + 1))
        planned, done = proofs.collect(self._session)
        screen.scene("Garbage collection: only what history can give again may go.")
        screen.row("goes", f"{', '.join(one.path for one in done.removed)}: {done.bytes:,} bytes")
        screen.row("stays", f"{len(planned.retained)} files, each with a reason")
        screen.pause()

    def _ask(self) -> None:
        screen = self._screen
        self._play(range(COLLECT_AT + 1, len(STEPS) + 1))
        self._calls = proofs.replay_all(self._session)
        leaked = [turn for turn in self._calls if CHILD_SECRET in text_of(turn.request())]
        self._expect(not leaked, "words of the child are in its parent's window")
        screen.scene("Said once, asked for much later, and found.")
        arrow = self._look.choose("→", "->")
        for fact in sorted((one for one in FACTS if one.said), key=lambda one: one.asked):
            found = proofs.trace(self._session, self._calls, fact)
            self._expect(bool(found.place), f"{fact.words} was not found")
            screen.row(fact.words, f"turn {fact.said:>2} {arrow} turn {fact.asked}   {found.place}", 16)
        screen.pause()

    def _come_back(self) -> None:
        screen = self._screen
        screen.scene("All of context/ is removed, and computed again from two logs.")
        before = proofs.derived_files(self._session)
        files, size = proofs.remove_context(self._session)
        proofs.bring_back(self._session)
        after = proofs.derived_files(self._session)
        same = [name for name, data in before.items() if after.get(name) == data]
        screen.row("removed", f"{files} files, {size:,} bytes")
        screen.row("same again", ", ".join(same))
        self._expect(len(same) == len(before), f"not the same: {', '.join(before.keys() - set(same))}")
        screen.pause()

    def _replay(self) -> None:
        screen, session = self._screen, self._session
        before, after = (list(map(proofs.digest_sent, turns)) for turns in (self._calls, proofs.replay_all(session)))
        same = sum(one == other for one, other in zip(before, after, strict=True))
        windows = [window_of(turn) for turn in self._calls]
        self._expect(same == len(before), "calls differ")
        screen.scene(f"Every call is made again: {same} of {len(before)} byte for byte, for three APIs.")
        screen.draw(*chart(windows, self._look, screen.inner, 8), *key(self._look, screen.inner))
        room = windows[-1].budget - windows[-1].answer
        drawn = len(sample(windows, screen.inner))
        screen.note(f"{drawn} of the {len(windows)} calls, up to {room:,} tokens; each steep fall is a compaction")
        screen.pause()
        sent, cached = sum(one.used for one in windows), sum(one.cached for one in windows)
        wrong = proofs.problems(session)
        screen.scene("In the end.")
        asked = [one.text for one in session.messages() if one.role == "user"]
        kept = sum(one.says == text for one, text in zip(STEPS, asked, strict=False))
        self._expect(kept == len(asked) == len(STEPS), "something the user said is not there")
        told = f"{kept} of {len(STEPS)} requests word for word"
        screen.row("history", f"{len(session.messages())} messages, {count_tokens(session):,} tokens; {told}")
        screen.row(
            "window", f"{len(session.compactions)} compactions, never above {max(one.used for one in windows):,} tokens"
        )
        screen.row("cache", f"can reuse {cached / sent:.0%} of {sent:,} tokens sent")
        screen.row("doctor", "; ".join(wrong) or "nothing wrong")
        self._expect(not wrong, "doctor found something")
        screen.row("next", "make serve starts a memory server; docs/design.md tells the rest")

    # What the scenes share

    def _start(self) -> Agent:
        agent = Agent(self._session, self._call_memory)
        agent.on_call = self._look_at
        return agent

    def _play(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._agent.play(number)

    def _look_at(self, number: int, turn: Turn) -> None:
        self._sent.append(Sent(number, turn))
        self._screen.move(self._look.dim(f"turn {number}"), *self._picture(self._sent[-1]))

    def _picture(self, sent: Sent) -> list[str]:
        window, look, width = window_of(sent.turn), self._look, self._screen.inner
        return [bar(window, look, width), cache_line(window, look, width), *legend(window, look, width)]

    def _draw(self, sent: Sent) -> None:
        self._screen.draw(*self._picture(sent))

    @property
    def _dots(self) -> str:
        return self._look.choose("…", "...")

    def _overflows(self) -> list[int]:
        return [at for at, one in enumerate(self._sent) if one.turn.new_epoch == "overflow"]

    def _expect(self, held: bool, otherwise: str) -> None:  # noqa: FBT001 — what is expected comes first
        if not held:
            self.failures.append(otherwise)

    def _answer(self, number: int) -> Message:
        asked = next(one for one in self._session.messages() if one.client_key == f"turn-{number}")
        behind = self._session.messages(asked.seq + 1)
        return next(one for one in behind if one.role == "assistant" and not one.tool_calls)

    def _make_memory(self) -> str:
        memory = self._server.call("create_memory", {"title": "Nordpier"})["memory_id"]
        self._server.call("add_entry", {"memory_id": memory, "raw_entry": POLICY, "session": "office", "role": "user"})
        self._server.call("put_context", {"memory_id": memory, "content": DOCUMENT})
        return memory

    def _call_memory(self, name: str, given: dict[str, Any]) -> str:
        return json.dumps(self._server.call(name, {"memory_id": self._memory, **given}))


def _outcome(section: Accepted, step: Step) -> str:
    """Say what could be taken of a section that breaks a rule."""
    sent = sum(map(len, (step.blocks or {}).values()))
    if sent:
        memory = section.snapshot.memory if section.snapshot else Tiers()
        return f"{sum(len(memory.of(tier)) for tier in TIERS)} of {sent} blocks"
    return f"round {section.round} counts" if section.snapshot else "no snapshot"
