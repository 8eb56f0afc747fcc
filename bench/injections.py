"""Recorded sessions replayed as prompts and edits: what hooks inject, and whether the agent used names of it next."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bench.transcripts import messages_of
from bench.window import literals
from daypack import Session, open_session
from daypack.derived.compaction.utterances import user_words
from daypack.history.draft import draft_from
from daypack.history.home import find_home
from daypack.hooks.call import HookCall
from daypack.hooks.compaction import after_compaction
from daypack.hooks.file_decisions.before_edit import before_edit
from daypack.hooks.file_decisions.updating import update_decisions
from daypack.hooks.intake.capture import capture_session, index_entries
from daypack.hooks.prompt import on_prompt
from daypack.hooks.recap.writing import write_recap
from daypack.importers.formats import FORMATS, find_files, is_of_format, read_transcripts
from daypack.memory.project import find_project, project_memory
from daypack.text.tokens import counter_named
from daypack.types.history import Message, ToolCall

CALLS = 20  # after a compaction
_EDITING = ("Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch")
_DECISION = re.compile(r"^- \S+ [^,]+, [^:]+:\d+: (.*)$", re.MULTILINE)
_EXCERPT = re.compile(r"^\[[^\]\n]+\] .*(?:\n  .*)*", re.MULTILINE)


class Prompt(NamedTuple):
    """What a prompt got: its tokens, and of each excerpt whether the agent used a name of it before the next prompt."""

    tokens: int
    used: tuple[bool, ...] = ()


class Edit(NamedTuple):
    """What an edit got: its tokens, its text, and of each line whether the agent used a name of it afterwards."""

    tokens: int
    text: str = ""
    used: tuple[bool, ...] = ()


class Compaction(NamedTuple):
    """What followed a compaction: tokens, and the share of the names used next in the summary, and in both texts."""

    tokens: int
    in_summary: float
    with_ours: float


class _Recorded(NamedTuple):
    session: str
    messages: list[Message]
    folder: str  # that the session was in


class Replay:
    """The sessions of each folder of transcripts, as those of one repository, oldest first."""

    def __init__(self, folder: str, transcripts: str, most_sessions: int | None) -> None:
        self.prompts: list[Prompt] = []
        self.compactions: list[Compaction] = []
        self.edits: list[Edit] = []
        self._home = find_home(os.path.join(folder, "replayed"), "bench")
        self._injected = set[str]()  # into the window of the session at hand
        self._count = counter_named("o200k_base").count
        for name in sorted(os.listdir(transcripts)):
            place = os.path.join(transcripts, name)
            if os.path.isdir(place):
                self._folder = os.path.join(folder, "replayed-projects", name)
                os.makedirs(self._folder, exist_ok=True)
                for recorded in islice(_read(place), most_sessions):
                    self._live(recorded)

    def _live(self, recorded: _Recorded) -> None:
        """Append a session message by message; before each prompt and after each compaction do what its hook does."""
        project = find_project(self._folder)
        memory = project_memory(self._home, project)
        name, messages, folder = recorded
        self._injected = injected = set[str]()
        with open_session(
            name, agent="claude-code", home=self._home.root, uid="bench", durability="os", workspace=""
        ) as session:
            for at, message in enumerate(messages):
                summary = bool(message.meta and message.meta.get("foreign_summary"))
                if summary or (message.role == "user" and user_words(message)):
                    session.turns.inputs.history_search.index.build()
                    write_recap(session, project, compacting=summary)
                    update_decisions(session, project._replace(top=folder), self._home)
                if summary:
                    injected.clear()
                    session.history.append([message])
                    self._after_compaction(session, messages, at)
                    continue
                if message.role == "user" and user_words(message):
                    self._ask(session, messages, at, injected)
                for call in message.tool_calls:
                    if call.name in _EDITING:
                        here = replace(call, arguments=call.arguments.replace(folder, self._folder))
                        self._edit(session, messages, at, here)
                session.history.append([message])
            if memory:
                session.bind_memory(memory)
                capture_session(session, end=True)
            update_decisions(session, project._replace(top=folder), self._home)
        if memory:
            index_entries(self._home, memory)

    def _ask(self, session: Session, messages: Sequence[Message], at: int, injected: set[str]) -> None:
        prompt = messages[at].text
        injection = on_prompt(self._call(session, "UserPromptSubmit", prompt), self._home, injected)
        if injection is None:
            self.prompts.append(Prompt(0))
            return
        injected.update(injection.items)
        after = "\n".join(_words(message) for message in _turn_after(messages, at))
        names = [name for name in literals(after) if name not in prompt]
        excerpts = _EXCERPT.findall(injection.text)
        used = tuple(any(name in excerpt for name in names) for excerpt in excerpts)
        self.prompts.append(Prompt(self._count(injection.text), used))

    def _edit(self, session: Session, messages: Sequence[Message], at: int, edit: ToolCall) -> None:
        arguments: object = msgspec.json.decode(edit.arguments)
        call = self._call(session, "PreToolUse", tool_name=edit.name, tool_input=arguments)
        injection = before_edit(call, self._home, self._injected)
        if injection is None:
            self.edits.append(Edit(0))
            return
        self._injected.update(injection.items)
        after = "\n".join(_words(message) for message in _turn_after(messages, at))
        names = [name for name in literals(after) if name not in edit.arguments]
        used = tuple(any(name in line for name in names) for line in _DECISION.findall(injection.text))
        self.edits.append(Edit(self._count(injection.text), injection.text, used))

    def _after_compaction(self, session: Session, messages: Sequence[Message], at: int) -> None:
        injection = after_compaction(self._call(session, "SessionStart", source="compact"), self._home)
        calls = islice((message for message in messages[at + 1 :] if message.role == "assistant"), CALLS)
        before = "\n".join(map(_words, messages[:at]))
        names = [name for name in literals("\n".join(map(_words, calls))) if name in before]
        if names:
            summary = messages[at].text
            both = f"{summary}\n{injection.text if injection else ''}"
            shares = (sum(name in text for name in names) / len(names) for text in (summary, both))
            self.compactions.append(Compaction(self._count(injection.text) if injection else 0, *shares))

    def _call(self, session: Session, event: str, prompt: str = "", source: str = "", **fields: object) -> HookCall:
        return HookCall(
            host="claude",
            event=event,
            session=session.name,
            cwd=self._folder,
            prompt=prompt,
            source=source,
            fields=fields,
        )


def _read(folder: str) -> Iterator[_Recorded]:
    """Yield the sessions of a folder, oldest first, without sub-agents."""
    found: list[_Recorded] = []
    for kind in FORMATS:
        for path in find_files(kind, folder):
            if is_of_format(kind, path):
                for transcript in read_transcripts(kind, path):
                    if transcript.origin.path.startswith(path) and transcript.parent is None:
                        messages = [draft_from(message) for message in messages_of(transcript)]
                        found += [_Recorded(transcript.session, messages, transcript.cwd or folder)] if messages else []
    yield from sorted(found, key=lambda recorded: recorded.messages[0].ts)


def _turn_after(messages: Sequence[Message], at: int) -> Iterator[Message]:
    """Yield what the agent did before the next prompt."""
    for message in messages[at + 1 :]:
        if message.role == "user" and user_words(message):
            return
        if message.role == "assistant":
            yield message


def _words(message: Message) -> str:
    return "\n".join((message.text, *(call.arguments for call in message.tool_calls)))
