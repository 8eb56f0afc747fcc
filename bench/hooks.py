"""Hooks of coding agents: CPU time from process start to exit, and what they inject over recorded sessions."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from statistics import mean

import msgspec
import orjson

from bench import data
from bench.conversations import Conversation
from bench.histories import Histories
from bench.injections import Replay
from bench.measure import Block, Series, alternate, run, say, settle
from bench.table import Row, Section, compare, duration
from daypack import Session, open_memory, open_session
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.call import HookCall
from daypack.hooks.file_decisions.index import (
    MAX_DECISIONS,
    MAX_PATHS,
    DecisionIndex,
    FileDecision,
    entries_file,
    write_index,
)
from daypack.hooks.intake import take_in
from daypack.hooks.intake.capture import index_entries
from daypack.hooks.prompt import on_prompt
from daypack.hooks.recap.recap import read_recap
from daypack.hooks.recap.writing import write_recap
from daypack.memory.project import Project, find_project, project_memory
from daypack.memory.project.memory import USER, choose_memory, decisions_file

MESSAGES, ENTRIES = 100_000, 20_000
QUICK_MESSAGES, QUICK_ENTRIES = 2_000, 1_000
ROUNDS, QUICK_ROUNDS = 15, 5
MOST_MS = {
    "UserPromptSubmit": 150,
    "PreToolUse": 150,
    "SessionStart": 200,
    "SessionStart (compact)": 200,
    "Stop": 100,
    "status --line": 50,
}
_BATCH = 1_000
_TRIES = 200
_TAKE_IN_SECONDS = 120
_LOST = 0.9  # of the messages left the window of the host
_AGENT, _HOST = "claude-code", "claude"
_TITLE = "Hooks of coding agents"
_NOTES = (
    "ours and beside are CPU times of a whole process; beside: bare Python (python -c pass)",
    "prompt: a question about lost messages, which finds excerpts of the session and of the memory; Stop: without the",
    "detached process that it starts, which takes the transcript in",
    "PreToolUse: an edit of a file with decisions, both indexes of decisions as large as they become",
    "injected: every prompt of recorded sessions of one repository, oldest session first; the memory has the sessions",
    "before it. used: excerpts with a name (path, identifier, number) that the agent used before the next prompt, and",
    "that is not in the prompt. after a compaction: names the agent used in its next 20 calls that were said before",
)


def measure(histories: Histories) -> Section:
    """Time every hook beside a Python that does nothing; then replay the transcripts."""
    stage = _Stage(histories)
    blocks = stage.blocks()
    rounds = QUICK_ROUNDS if histories.quick else ROUNDS
    say(f"hooks: {rounds} rounds")
    series = alternate(blocks, rounds=rounds, operations=1)
    stage.forget()  # no process is left behind
    return Section(_TITLE, (*_timings(series, stage.messages), *_injections(histories)), _NOTES)


class _Stage:
    """A project with a long session that was compacted, and a memory."""

    def __init__(self, histories: Histories) -> None:
        self.messages, entries = (QUICK_MESSAGES, QUICK_ENTRIES) if histories.quick else (MESSAGES, ENTRIES)
        self._home: Home = find_home(os.path.join(histories.folder, "hooks"), "bench")
        self._folder = os.path.join(histories.folder, "project")
        os.makedirs(self._folder, exist_ok=True)
        self._project: Project = find_project(self._folder)
        self._talk, self._remembered = Conversation(), Conversation(41)
        say(f"hooks: writing a session of {self.messages:,} messages and a memory of {entries:,} entries")
        with open_session(
            "long", agent=_AGENT, home=self._home.root, uid="bench", durability="os", workspace=""
        ) as session:
            for start in range(0, self.messages, _BATCH):
                session.append_many(self._talk.take(min(_BATCH, self.messages - start)))
            session.append("user", "From now on never push to main, and always run `make test` before you commit.")
            session.unbind_memory()  # a take-in would capture all of it
            self._take_in(session)
        self._remember(entries)
        self._decide()
        settle()

    def _take_in(self, session: Session) -> None:
        """Do what a take-in before a compaction does, and note what left the window with it."""
        session.turns.inputs.history_search.index.build()
        write_recap(session, self._project, compacting=True)
        recap = read_recap(session.layout)
        if recap is None:
            raise RuntimeError("no recap was written")
        lost = msgspec.structs.replace(recap, lost=int(_LOST * self.messages))
        with open(session.layout.derived("recap"), "wb") as file:
            file.write(msgspec.json.encode(lost))

    def _remember(self, entries: int) -> None:
        with open_memory(home=self._home.root, uid="bench", user=USER) as memories:
            memory = memories.import_memory(_archive(self._remembered, entries)).memory_id
            memories.put_context(memory, _DOCUMENT)
        choose_memory(self._home, self._project, memory)
        index_entries(self._home, memory)

    def _decide(self) -> None:
        """Fill both indexes of decisions about files."""
        decisions = tuple(
            FileDecision(
                files=(f"src/part{number % 400}.py",),
                kind="decision",
                text=f"We decided to keep {number} rows of the importer, because the shop reads them in one go.",
                at="2026-11-02T09:00:00.000Z",
                session=f"{_AGENT}/earlier-{number % 90}",
                seq=number,
            )
            for number in range(MAX_DECISIONS)
        )
        paths = tuple(f"src/folder{number}/part{number}.py" for number in range(400, 400 + MAX_PATHS))
        index = DecisionIndex(decisions=decisions, paths=paths)
        write_index(decisions_file(self._home, self._project), index)
        if memory_id := project_memory(self._home, self._project, create=False):
            write_index(entries_file(self._home, memory_id), index)

    def blocks(self) -> dict[str, Block]:
        """Return what is timed."""
        script = os.path.join(os.path.dirname(sys.executable), "daypack")
        daypack = (
            [script] if os.path.exists(script) and "PYTHONPATH" not in os.environ else [sys.executable, "-m", "daypack"]
        )
        os.environ |= {"DAYPACK_HOME": self._home.root, "DAYPACK_UID": "bench"}
        prompt = self._event("UserPromptSubmit", "long", prompt=self._question())
        timed = {
            "UserPromptSubmit": prompt,
            "UserPromptSubmit, trivial": self._event("UserPromptSubmit", "long", prompt="yes, go on"),
            "SessionStart": self._event("SessionStart", "new", source="startup"),
            "SessionStart (compact)": self._event("SessionStart", "long", source="compact"),
            "Stop": self._event("Stop", "long"),
        }
        blocks: dict[str, Block] = {
            "bare": run([sys.executable, "-c", "pass"]),
            "imports": run([sys.executable, "-c", "import json, sqlite3"]),
        }
        blocks |= {name: run([*daypack, "hook", _HOST], given, self.forget) for name, given in timed.items()}
        edit = {"tool_name": "Edit", "tool_input": {"file_path": os.path.join(self._folder, "src", "part7.py")}}
        blocks["PreToolUse"] = run(
            [*daypack, "hook", _HOST], self._event("PreToolUse", "long", **edit), self._forget_with_recall
        )
        line = orjson.dumps({"session_id": "long", "cwd": self._folder, "workspace": {"current_dir": self._folder}})
        blocks["status --line"] = run([*daypack, "status", "--line"], line)
        return blocks

    def _event(self, event: str, session: str, **fields: object) -> bytes:
        return orjson.dumps({"hook_event_name": event, "session_id": session, "cwd": self._folder, **fields})

    def forget(self) -> None:
        """Let the take-in of the hook before end, and forget what was injected: each run finds the same."""
        call = HookCall(host=_HOST, event="Stop", session="long", cwd=self._folder)
        if not take_in.wait_for(self._home, call, _TAKE_IN_SECONDS):
            raise RuntimeError("the take-in after a Stop does not end")
        shutil.rmtree(os.path.join(self._home.folder, "hook"), ignore_errors=True)
        with suppress(FileNotFoundError):
            os.unlink(self._home.config)  # only edits need it, and it has to be parsed

    def _forget_with_recall(self) -> None:
        self.forget()
        with open(self._home.config, "w", encoding="utf-8") as file:
            file.write("[hooks]\nrecall_before_edit = true\n")

    def _question(self) -> str:
        """Return a prompt that finds both lost messages and entries."""
        for _ in range(_TRIES):
            asked = f"{self._talk.question()['content']} {self._remembered.question()['content']}"
            call = HookCall(host=_HOST, event="UserPromptSubmit", session="long", cwd=self._folder, prompt=asked)
            found = on_prompt(call, self._home)
            if found and "<past " in found.text and "<note " in found.text:
                return asked
        raise RuntimeError("no prompt found both lost messages and entries")


_DOCUMENT = "# Memory\n\n## Facts\n" + "".join(
    f"- Fact {number} of the project, in plain words.\n" for number in range(80)
)


def _archive(talk: Conversation, entries: int) -> Iterator[bytes]:
    """Yield the lines of an exported memory."""
    yield orjson.dumps({"daypack": "memory", "format": 1, "title": "project"})
    count = 0
    while count < entries:
        for message in talk.take(_BATCH):
            if message["role"] in ("user", "assistant") and not message.get("tool_calls") and count < entries:
                text, session = message["content"], f"{_AGENT}/earlier-{count // 200}"
                yield orjson.dumps(
                    {"entry": {"raw_entry": text, "summary": text[:100], "role": "user", "session": session}}
                )
                count += 1


def _timings(series: dict[str, Series], messages: int) -> Iterator[Row]:
    bare = series["bare"]
    for name, own in series.items():
        if name == "bare":
            continue
        ratios = compare("", own, bare)
        spent, most = own.middle("cpu"), MOST_MS.get(name)
        yield Row(
            'python -c "import json, sqlite3"' if name == "imports" else name,
            None if name in ("imports", "status --line") else messages,
            duration(spent),
            duration(bare.middle("cpu")),
            ratios.wall,
            ratios.quiet,
            ratios.cpu,
            target=f"CPU ≤ {most} ms" if most else "",
            met=spent <= most * 1e6 if most else None,
        )


def _injections(histories: Histories) -> Iterator[Row]:
    folder = data.find_transcripts()
    if folder is None:
        yield Row("transcripts", ours=data.NO_TRANSCRIPTS)
        return
    say("hooks: replaying transcripts")
    replay = Replay(histories.folder, folder, most_sessions=4 if histories.quick else None)
    prompts = replay.prompts
    if not prompts:
        yield Row("transcripts", ours="no prompts")
        return
    said = [prompt for prompt in prompts if prompt.tokens]
    used = [used for prompt in said for used in prompt.used]
    yield Row(
        f"{len(prompts):,} prompts: tokens injected, mean", ours=f"{mean(prompt.tokens for prompt in prompts):,.0f}"
    )
    yield Row("  prompts with nothing", ours=_share(len(prompts) - len(said), len(prompts)))
    yield Row("  tokens of the others, mean", ours=f"{mean([prompt.tokens for prompt in said] or [0]):,.0f}")
    yield Row(f"  {len(used):,} excerpts: with a name used next", ours=_share(sum(used), len(used)))
    yield from _edits(replay)
    after = replay.compactions
    if after:
        yield Row(f"{len(after)} compactions: tokens injected, mean", ours=f"{mean(one.tokens for one in after):,.0f}")
        yield Row(
            "  names used next, beside the agent's summary alone",
            ours=f"{mean(one.with_ours for one in after):.2f}",
            beside=f"{mean(one.in_summary for one in after):.2f}",
        )


def _edits(replay: Replay) -> Iterator[Row]:
    edits = replay.edits
    if edits:
        said = [edit for edit in edits if edit.tokens]
        used = [used for edit in said for used in edit.used]
        yield Row(f"{len(edits):,} edits: with decisions about the file", ours=_share(len(said), len(edits)))
        yield Row("  tokens of these, mean", ours=f"{mean([edit.tokens for edit in said] or [0]):,.0f}")
        yield Row(f"  {len(used):,} decisions: with a name used next", ours=_share(sum(used), len(used)))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "–"
