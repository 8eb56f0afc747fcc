"""Utterances: the words of a conversation and their speakers, without what agents and tools put in between."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from daypack.derived.compaction.plans import Plans
from daypack.derived.raw_history import Raw
from daypack.text.extract import prose
from daypack.types.authority import users_part, writer_of
from daypack.types.compaction import LossReason
from daypack.types.history import Message

Voice = Literal["user", "assistant"]

MAX_SPOKEN_CHARS = 24_000  # of one message: beyond it is pasted, and its head and tail say what it is
_CHAT_REPLIES = 4
_CHAT_CHARS = 400
ESSAY_CHARS = 1_500  # a longer answer without any work explains things in general
# Blocks that agents write into a user's message: reminders, notices, output of local commands, the state of an editor.
_INJECTED = re.compile(
    r"<(system[-_]reminder|local-command-\w+|command-(?:name|message|contents)|task-notification|"
    r"user[-_]prompt[-_]submit[-_]hook|ide_\w+|environment_(?:context|details)|user_instructions|INSTRUCTIONS|"
    r"bash-(?:input|stdout|stderr)|tool_use_error|new-diagnostics|fast_mode_info|turn_aborted|permissions|"
    r"context_window_\w+|available_\w+|thinking|think|antml:\w+)\b[^>]{0,200}>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
# Tags at the ends of a line mark what is between them; inside a line they are part of the sentence.
_TAGS = r"(?:</?[A-Za-z][\w:-]{0,40}(?: [^<>\n]{0,200})?/?>){1,4}"
_EDGES = re.compile(rf"^[ \t]*{_TAGS}|{_TAGS}[ \t]*$", re.MULTILINE)
_NOTICE = re.compile(
    r"^[ \t]*(?:\[Request interrupted by user[^\]\n]*\]|Caveat: The messages below were generated.*|"
    r"Read the output file to retrieve the result:.*|# AGENTS\.md instructions for .*|"
    r"\[(?:Image|Pasted text|File)[^\]\n]*\])[ \t]*$",
    re.MULTILINE,
)
_SLASH = re.compile(r"\s*/[a-z][\w:-]{0,40}(?:\s|\Z)(?!.*/)")
# What a tool says when an agent hands its output back as the user's words.
_OUTPUT = re.compile(
    r"(?:bash-?\$|\n\(Current directory: [^)\n]*\)\s*(?:bash-\$)?)\s*\Z|\AOBSERVATION:|\A\[File: |\ATraceback "
)
# What an agent puts in the user's place after a compaction of its own.
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
# What harnesses tell every agent, whatever the work is; one of them in a long text is enough.
_HARNESS = re.compile(
    r"ONE COMMAND AT A TIME|EXACTLY ONE TOOL CALL|terminal session has started|wait for feedback after every command|"
    r"(?:respond|reply|answer) with ONLY\b|MUST (?:respond|reply|output|end) |in the special interface|"
    r"NOTE ABOUT THE EDIT COMMAND|running the submit command|Do NOT (?:use|call) any tools?\b|"
    r"detailed summary of (?:the|our|this) conversation"
)
_HARNESS_CHARS = 600
_SUMMING = re.compile(r"<summary>|detailed summary of (?:the|our|this) conversation", re.IGNORECASE)
# The part of such a text that is about the work.
_ISSUE = re.compile(
    r"^(?:ISSUE|TASK|PROBLEM|PR DESCRIPTION)[^:\n]{0,20}:[ \t]*\n(.*?)"
    r"(?=^(?:INSTRUCTIONS|IMPORTANT|NOTE)\b[^:\n]{0,40}:|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TOLD_OFTEN = 3  # what so many messages begin with is a form, not a word to anybody
_ANSWER = re.compile(r'"[^"\n]{1,400}"="[^"\n]{1,400}"')
_ANSWERED = "User has answered your questions:"
# A terminal that was copied: prompts, bullets and frames of a program at the beginning of lines.
_TERMINAL = re.compile(r"(?:^[ \t]*|(?<=[.:?!] ))[❯⏺⎿│├└╭╰▸▾✻✶●○◯▐]", re.MULTILINE)
_TERMINAL_LINES = 3
# Lines that a user copies from a log, a diff or a compiler.
_PASTED = re.compile(
    r"^[ \t]*(?:[+-](?:[ \t]{2,}|//|#)|(?:[Ee]rror|ERROR|[Ww]arning|WARN(?:ING)?|"
    r"FAIL(?:ED)?)\b:? {0,2}\S*[\w/]\.\w+:\d|"
    r"\S+\.\w{1,5}:\d+:\d+:|\(use \"git |\^[~^]*$|at \S+ ?\(|Running \[|[-=]{3,} ?(?:FAIL|RUN|PASS)).*$",
    re.MULTILINE,
)


class Utterance(NamedTuple):
    """The prose of one message."""

    seq: int
    voice: Voice
    text: str
    working: bool  # tools were used since the last user message: the text reports work
    size: int  # of the message, in characters
    closing: bool = False  # the assistant's last word before the user speaks again, or at the end
    chatting: bool = False  # small talk: no work and no long explanations
    acting: bool = False  # tools are called in the same message
    scripted: bool = False  # a harness wrote it: it may say what the work is, and nothing else

    @property
    def reporting(self) -> bool:
        """The agent reports on finished work: its last word before the user speaks again."""
        return self.closing and self.working and not self.acting

    @property
    def midway(self) -> bool:
        """The agent speaks in the middle of its work."""
        return self.working and not self.reporting


class Conversation(NamedTuple):
    """A conversation: the utterances, the answers the user chose, and the plans."""

    utterances: tuple[Utterance, ...]
    answers: tuple[tuple[int, str], ...]
    plans: Plans


def read_conversation(raw: Raw) -> Conversation:
    """Return the utterances of a range of messages."""
    found: list[Utterance] = []
    answers: list[tuple[int, str]] = []
    plans = Plans()
    working = False
    for message in raw.messages:
        plans.take(message)
        if message.role == "tool":
            working = True
            if message.text.startswith(_ANSWERED):
                answers += [(message.seq, word) for word in _ANSWER.findall(message.text)]
            continue
        # An agent that has no tools of its own gets their output as the user's words: in answer to its own.
        answered = found[-1].voice == "assistant" if found else raw.start > 1
        if message.role == "user" and answered and _OUTPUT.search(message.text):
            working = True
            continue
        if message.role == "user" and found and found[-1].voice == "assistant" and not found[-1].acting:
            # Whatever the message holds, the agent had stopped and waited for it.
            found[-1] = found[-1]._replace(closing=True)
        working = working or bool(message.tool_calls)
        words = spoken_words(message, MAX_SPOKEN_CHARS if working or message.role == "user" else ESSAY_CHARS)
        if not words:
            continue
        voice: Voice = "assistant" if message.role == "assistant" else "user"
        working = working and voice == "assistant"
        acting = bool(message.tool_calls) or bool(message.meta and message.meta.get("action"))
        utterance = Utterance(message.seq, voice, words, working, len(message.text), acting=acting)
        heard = utterance if voice == "assistant" else _without_script(utterance)
        if heard:
            found.append(heard)
    _mark_forms(found)
    return Conversation(tuple(_with_setting(found)), tuple(answers), plans)


def _without_script(utterance: Utterance) -> Utterance | None:
    """Return a user message without the standard text of a harness; None for a request for a summary."""
    text = utterance.text
    marks = {word.casefold() for word in _HARNESS.findall(text)}
    if not marks or (len(text) < _HARNESS_CHARS and len(marks) < 2 and not _SUMMING.search(text)):
        return utterance
    if _SUMMING.search(text):
        return None
    issue = _ISSUE.search(text)
    if issue and issue[1].strip():
        # The lead-in stays: what follows it is the title.
        return utterance._replace(text=text[issue.start() : issue.end()].strip("\n"))
    return utterance._replace(scripted=True)


def user_words(message: Message) -> str:
    """Return the prose of a user message; nothing for the output of a tool or the standard text of a harness."""
    if message.role != "user" or _OUTPUT.search(message.text) or _CONTINUED.match(message.text):
        return ""
    words = spoken_words(message)
    heard = _without_script(Utterance(message.seq, "user", words, working=False, size=len(words)))
    return heard.text if heard and heard.text == words and not heard.scripted else ""


def _mark_forms(found: list[Utterance]) -> None:
    """Find user messages that are repeated word for word."""
    times: dict[str, int] = {}
    for utterance in found:
        if utterance.voice == "user" and len(utterance.text) >= _HARNESS_CHARS:
            times[utterance.text[:_HARNESS_CHARS]] = times.get(utterance.text[:_HARNESS_CHARS], 0) + 1
    for at, utterance in enumerate(found):
        if utterance.voice == "user" and times.get(utterance.text[:_HARNESS_CHARS], 0) >= _TOLD_OFTEN:
            found[at] = utterance._replace(scripted=True)


def reason_of(message: Message) -> LossReason:
    """Return why a sentence of a message is lost if no compactor reads it: it is not among the words of a speaker."""
    if message.role not in ("user", "assistant") or _is_put_in(message):
        return "injected"
    if len(message.text) > MAX_SPOKEN_CHARS:
        return "unread"
    return "not_prose"


def spoken_words(message: Message, max_chars: int = MAX_SPOKEN_CHARS) -> str:
    """Return the prose of a message of the user or the assistant; nothing for what is not their own words.

    Of a longer message head and tail are read.
    """
    if message.role not in ("user", "assistant") or _is_put_in(message):
        return ""
    part = users_part(message) if message.role == "user" else message
    text = part.text if part else ""
    if len(text) > max_chars:
        text = _ends(text, max_chars // 2)
    if message.role == "user":
        if _SLASH.match(text):
            return ""
        if "<" in text:
            text = _INJECTED.sub("\n\n", text)
        text = _PASTED.sub("", _NOTICE.sub("\n", text))
        copied = _TERMINAL.search(text)
        if copied and len(_TERMINAL.findall(text)) >= _TERMINAL_LINES:
            text = text[: copied.start()]
    if "<" in text:
        text = _EDGES.sub("\n", text)
    return prose(text).strip("\n")


def _ends(text: str, half: int) -> str:
    """Return head and tail of a text, cut between lines or words; a fence that is open stays open."""
    head, tail = text[:half], text[-half:]
    head = head[: max(head.rfind("\n"), head.rfind(" "), 0)]
    lines = tail.find("\n")
    tail = tail[lines + 1 :] if 0 <= lines < half // 2 else tail.partition(" ")[2]
    fence = "\n```" * ((text.count("\n```", 0, len(text) - len(tail)) - head.count("\n```")) % 2)
    return f"{head}\n{fence}\n{tail}"


def _is_put_in(message: Message) -> bool:
    """Return True if a program wrote a message in the place of the user or the assistant."""
    return writer_of(message) is not None and (message.role != "user" or users_part(message) is None)


def _with_setting(found: list[Utterance]) -> Iterable[Utterance]:
    replies = [utterance for utterance in found if utterance.voice == "assistant"]
    chatting = (
        len(replies) >= _CHAT_REPLIES
        and not any(reply.working for reply in replies)
        and sum(reply.size for reply in replies) < _CHAT_CHARS * len(replies)
    )
    for at, utterance in enumerate(found):
        last = at + 1 == len(found) or found[at + 1].voice == "user"
        closing = utterance.closing or (last and utterance.voice == "assistant")
        yield utterance._replace(closing=closing, chatting=chatting)
