"""The sample session: plays the story of the poster job, with its memory, compactions and a child agent."""

import json
from datetime import UTC, datetime
from typing import Any

from daypack.derived.children import ChildUpdate
from daypack.serve.sample import story
from daypack.serve.sample.outputs import text_file
from daypack.serve.sample.play import Place, Play
from daypack.types.records import Ref

SESSION = "sample"
_BUDGET_TOKENS = 9_000
_CHILD_BUDGET_TOKENS = 6_000
_KEEP_TOKENS = 1_800  # of the compaction that is undone
_BEGAN = datetime(2026, 4, 21, 13, 4, tzinfo=UTC).timestamp()
_NIGHT_SECONDS = 17 * 3600


def play_poster_job(place: Place, memory_id: str, user: str) -> None:
    """Play the session, or the rest of an interrupted one, with a memory of a user."""
    with place.open(SESSION) as session:
        play = Play(session, _BEGAN, (*_TOOLS, *session.tools()))
        if not play.wanted:
            return
        if not session.meta.get("memory"):
            session.pin("system", story.SYSTEM)
            session.pin("printer", story.PRINTER)
            session.set_budget(_BUDGET_TOKENS)
            session.bind_memory(memory_id, user=user)
        for number, scene in enumerate(story.SCENES):
            for action in scene.before:
                _act(play, place, action, is_new=not play.has(f"sample-{number}"))
            _play(play, number, scene)
        play.finish()


def _play(play: Play, number: int, scene: story.Scene) -> None:
    play.say(f"sample-{number}", scene.says)
    for at, calls in enumerate(scene.rounds):
        asked = {f"call_{number}_{at}_{nth}": call for nth, call in enumerate(calls)}
        written = [
            {"id": call_id, "name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
            for call_id, call in asked.items()
        ]
        play.reply(f"sample-{number}-{at}", {"content": "", "tool_calls": written}, scene.faults.get(at))
        for call_id, call in asked.items():
            output = call.output or (play.has(call_id) or play.session.call(call.tool, call.arguments))
            play.answer(call_id, str(output))
    last = len(scene.rounds)
    play.reply(f"sample-{number}-{last}", {"content": scene.answers}, scene.faults.get(last))


def _act(play: Play, place: Place, action: story.Action, *, is_new: bool) -> None:
    if action == "night":
        play.clock.wait(_NIGHT_SECONDS)
    if not is_new:
        return
    session = play.session
    match action:
        case "compact":
            session.compact(model="none", keep_tokens=_KEEP_TOKENS)
        case "undo" if session.compactions:
            session.undo()
        case "ask":
            session.add_question(story.QUESTION)
        case "answer":
            for question in session.turns.questions.open():
                session.resolve_question(question.id, answer=story.ANSWER)
        case "delegate":
            _delegate(play, place)
        case _:
            pass


def _delegate(parent: Play, place: Place) -> None:
    name = f"{SESSION}--{story.CHILD}"
    with place.open(name) as session:
        play = Play(session, parent.clock.now, _TOOLS[:1])
        if play.wanted:
            session.set_budget(_CHILD_BUDGET_TOKENS)
            calls = tuple((story.read(f"texts/{language}.md", text_file(language)),) for language in ("en", "de", "zh"))
            _play(play, 0, story.Scene(story.HANDOFF, calls, story.RESULT))
            play.finish()
        parent.clock.wait(play.clock.now - parent.clock.now)
    ref = Ref("r1", "texts/zh.md", "file", "the time of the jazz band")
    update = ChildUpdate(
        agent=place.agent,
        session=name,
        handoff=story.HANDOFF,
        result=story.RESULT,
        refs=[ref],
        artifacts={"findings.md": story.RESULT.encode()},
    )
    parent.session.put_child(story.CHILD, update)


def _tool(name: str, about: str, *fields: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields},
        "required": list(fields),
    }
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


_TOOLS = (
    _tool("read_file", "Return the text of a file of the project.", "path"),
    _tool("edit_file", "Replace a text in a file; an empty old text creates the file.", "path", "old", "new"),
    _tool("run", "Run a command in the project and return what it prints.", "command"),
    _tool("delegate", "Give a task to another agent, which works in a session of its own.", "name", "task"),
)
