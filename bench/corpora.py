"""Readers for public conversations with labelled evidence: LoCoMo dialogues and BEAM chats."""

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob
from typing import Any, NamedTuple, cast

import orjson

_KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
_TURN = re.compile(r"D:?(\d+):(\d+)")
_POINTER = re.compile(r"\s*->->\s*[\d,N/A]*\s*$")  # what BEAM's generator left at the end of a message


class Said(NamedTuple):
    """One entry of a conversation."""

    id: str
    text: str
    author: str
    role: str
    session: str
    when: str


class Question(NamedTuple):
    """A question, and the entries that hold what answers it."""

    text: str
    gold: tuple[str, ...]
    kind: str


class Talk(NamedTuple):
    """A conversation of months, in order of time."""

    corpus: str
    name: str
    entries: tuple[Said, ...]
    questions: tuple[Question, ...]


def read_corpora(path: str) -> Iterator[Talk]:
    """Yield what is at a path: a folder with locomo/*.json and beam/SIZE/, a file of LoCoMo, a folder of BEAM chats."""
    if os.path.isfile(path):
        yield from _locomo(path)
        return
    for file in sorted(glob(os.path.join(path, "locomo", "*.json"))):
        yield from _locomo(file)
    for folder in (path, *sorted(glob(os.path.join(path, "beam", "*", "")))):
        yield from _beam(folder.rstrip(os.sep))


def foreign_questions(talk: Talk, talks: Sequence[Talk]) -> list[Question]:
    """Return questions of the other conversations of a corpus, evenly chosen: as many as one conversation has."""
    others = [other for other in talks if other.corpus == talk.corpus and other is not talk]
    questions = [question._replace(gold=(), kind="foreign") for other in others for question in other.questions]
    return questions[:: max(1, len(others))]


def _locomo(path: str) -> Iterator[Talk]:
    for sample in _load(path):
        talk, entries = sample["conversation"], list[Said]()
        for number in range(1, 1 + max((int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)), default=0)):
            when = talk.get(f"session_{number}_date_time", "")
            for turn in talk.get(f"session_{number}", ()):
                photo = f" [shared photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                name = _turns(turn["dia_id"])[0]
                entries.append(Said(name, turn["text"] + photo, turn["speaker"], "person", name.split(":")[0], when))
        known = {one.id for one in entries}
        questions = [
            Question(one["question"], gold, _KINDS[one["category"]])
            for one in sample["qa"]
            if (gold := _kept((name for text in one.get("evidence", ()) for name in _turns(text)), known))
        ]
        yield Talk("LoCoMo", sample["sample_id"], tuple(entries), tuple(questions))


def _beam(folder: str) -> Iterator[Talk]:
    for path in sorted(glob(os.path.join(folder, "*", "chat.json")), key=lambda one: (len(one), one)):
        entries, when = list[Said](), ""
        for batch in _load(path):
            for message in (message for turn in batch["turns"] for message in turn):
                when = message.get("time_anchor") or when
                text, role = _POINTER.sub("", message["content"]), message["role"]
                entries.append(Said(str(message["id"]), text, role, role, str(batch["batch_number"]), when))
        known = {one.id for one in entries}
        asked = _load(os.path.join(os.path.dirname(path), "probing_questions", "probing_questions.json"))
        questions = [
            Question(one["question"], gold, kind)
            for kind, many in asked.items()
            for one in many
            if (gold := _kept(map(str, _numbers(one.get("source_chat_ids"))), known))
        ]
        name = f"{os.path.basename(folder)}/{os.path.basename(os.path.dirname(path))}"
        yield Talk(f"BEAM {os.path.basename(folder)}", name, tuple(entries), tuple(questions))


def _kept(names: Iterator[str], known: set[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name in known)


def _turns(text: str) -> list[str]:
    return [f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(text)]


def _numbers(value: Any) -> Iterator[int]:  # noqa: ANN401 — lists in lists, objects of lists
    if isinstance(value, int):
        yield value
    elif isinstance(value, str):
        yield from map(int, re.findall(r"\d+", value))
    elif isinstance(value, (list, dict)):
        many = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in many:
            yield from _numbers(one)


def _load(path: str) -> Any:  # noqa: ANN401 — somebody else's JSON
    with open(path, "rb") as file:
        return orjson.loads(file.read())
