"""The loop: it drives a session with the story, and goes on wherever the log says that it stands."""

import json
from collections.abc import Callable
from typing import Any

import daypack
from daypack.derived.children import ChildUpdate
from daypack.session import Session
from daypack.turn.dialects import NAMES
from daypack.turn.turn import Turn
from daypack.types.history import Message, ToolCall
from daypack.types.records import Ref
from demo import model, tools
from demo.story import CHILD_SECRET, STEPS, SYSTEM, WINDOW

Remember = Callable[[str, dict[str, Any]], str]
MEMORY_TOOLS = ("add_entry", "search_memories")


def no_memory(name: str, _: dict[str, Any]) -> str:
    """Stand in for a memory where the story needs none."""
    raise LookupError(f"there is no memory to call {name} of")


class Agent:
    """A loop around a model: append what was said, prepare, ask, accept, run the tools, until the answer is there."""

    def __init__(self, session: Session, remember: Remember = no_memory) -> None:
        self.session = session
        self._remember = remember
        self.on_append: Callable[[Message], None] = lambda _: None
        self.on_call: Callable[[int, Turn], None] = lambda _, __: None

    def begin(self) -> None:
        """Say once what holds for the whole session."""
        self.session.pin("system", SYSTEM)
        self.session.set_budget(WINDOW)
        self.session.switch("protocol", on=True)

    def play(self, number: int) -> None:
        """Do one turn, or the rest of one that was interrupted. Keys make it safe to say the same twice."""
        asked = self.session.append("user", STEPS[number - 1].says, client_key=f"turn-{number}")
        self.on_append(asked)
        while True:
            messages = tuple(self.session.messages(asked.seq + 1))
            spoken = [one for one in messages if one.role == "assistant"]
            answered = {one.tool_call_id for one in messages}
            if not spoken:
                self._ask(number, 0)
            elif waiting := [call for call in spoken[-1].tool_calls if call.id not in answered]:
                for call in waiting:
                    self._run(call)
            elif spoken[-1].tool_calls:
                self._ask(number, len(spoken))
            else:
                return

    def _ask(self, number: int, said: int) -> None:
        turn = self.session.prepare()
        self.on_call(number, turn)
        dialect = NAMES[number % len(NAMES)]
        self.on_append(self.session.accept(model.answer(number, said, turn.request(dialect), dialect)))

    def _run(self, call: ToolCall) -> None:
        given: dict[str, Any] = json.loads(call.arguments)
        if call.name in ("recall", "search_history"):
            text = self.session.call(call.name, given)
        elif call.name in MEMORY_TOOLS:
            text = self._remember(call.name, given)
        elif call.name == "delegate":
            text = delegate(self.session, given["name"], given["task"])
        else:
            text = tools.use(call.name, given)
        self.on_append(self.session.append("tool", text, tool_call_id=call.id, client_key=call.id))


def delegate(session: Session, name: str, task: str) -> str:
    """Let a child agent work in a session of its own; its parent gets what it was asked and what it answers."""
    home = session.history.layout.home
    own = f"{session.name}--{name}"
    with daypack.open_session(own, agent=name, home=home.root, uid=home.uid, workspace="") as child:
        child.append("user", task, client_key="task")
        for at, path in enumerate(("archive/ledger.py", "archive/contracts.py")):
            call = {"id": f"look_{at}", "name": "read_file", "arguments": json.dumps({"path": path})}
            child.append("assistant", f"I look for {CHILD_SECRET}.", tool_calls=[call], client_key=f"asks-{at}")
            result = tools.use("read_file", {"path": path})
            child.append("tool", result, tool_call_id=f"look_{at}", client_key=f"looks-{at}")
        answer = "Only the contracts are needed; the old server can be switched off after 30 November."
        child.append("assistant", answer, client_key="result")
        child.set_state("done")
    found = Ref("r1", "archive/contracts.py", "file", "the contracts that are still needed")
    session.put_child(name, ChildUpdate(agent=name, session=own, handoff=task, result=answer, refs=[found]))
    return answer
