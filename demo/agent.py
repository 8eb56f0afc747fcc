"""The agent loop: plays the story in a session and continues where the log ends."""

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
    """Refuse memory calls, for runs without a memory server."""
    raise LookupError(f"no memory server for {name}")


class Agent:
    """The loop around the model: append, prepare, call, accept and run tools until there is an answer."""

    def __init__(self, session: Session, remember: Remember = no_memory) -> None:
        self.session = session
        self._remember = remember
        self.on_append: Callable[[Message], None] = lambda _: None
        self.on_call: Callable[[int, Turn], None] = lambda _, __: None

    def begin(self) -> None:
        """Set the pins, the budget and the protocol of the session."""
        self.session.pin("system", SYSTEM)
        self.session.set_budget(WINDOW)
        self.session.switch("protocol", on=True)

    def play(self, number: int) -> None:
        """Play one turn, or the rest of an interrupted one; client keys make repeated appends safe."""
        asked = self.session.append("user", STEPS[number - 1].says, client_key=f"turn-{number}")
        self.on_append(asked)
        while True:
            messages = tuple(self.session.messages(asked.seq + 1))
            replies = [message for message in messages if message.role == "assistant"]
            answered = {message.tool_call_id for message in messages}
            if not replies:
                self._ask(number, 0)
            elif pending := [call for call in replies[-1].tool_calls if call.id not in answered]:
                for call in pending:
                    self._run(call)
            elif replies[-1].tool_calls:
                self._ask(number, len(replies))
            else:
                return

    def _ask(self, number: int, replies: int) -> None:
        turn = self.session.prepare()
        self.on_call(number, turn)
        dialect = NAMES[number % len(NAMES)]
        self.on_append(self.session.accept(model.answer(number, replies, turn.request(dialect), dialect)))

    def _run(self, call: ToolCall) -> None:
        arguments: dict[str, Any] = json.loads(call.arguments)
        if call.name in ("recall", "search_history"):
            text = self.session.call(call.name, arguments)
        elif call.name in MEMORY_TOOLS:
            text = self._remember(call.name, arguments)
        elif call.name == "delegate":
            text = delegate(self.session, arguments["name"], arguments["task"])
        else:
            text = tools.use(call.name, arguments)
        self.on_append(self.session.append("tool", text, tool_call_id=call.id, client_key=call.id))


def delegate(session: Session, name: str, task: str) -> str:
    """Run a child agent in its own session; the parent stores its task and its answer."""
    home = session.history.layout.home
    child_name = f"{session.name}--{name}"
    with daypack.open_session(child_name, agent=name, home=home.root, uid=home.uid, workspace="") as child:
        child.append("user", task, client_key="task")
        for at, path in enumerate(("archive/ledger.py", "archive/contracts.py")):
            call = {"id": f"look_{at}", "name": "read_file", "arguments": json.dumps({"path": path})}
            child.append("assistant", f"I look for {CHILD_SECRET}.", tool_calls=[call], client_key=f"asks-{at}")
            result = tools.use("read_file", {"path": path})
            child.append("tool", result, tool_call_id=f"look_{at}", client_key=f"looks-{at}")
        answer = "Only the contracts are needed; the old server can be switched off after 30 November."
        child.append("assistant", answer, client_key="result")
        child.set_state("done")
    ref = Ref("r1", "archive/contracts.py", "file", "the contracts that are still needed")
    session.put_child(name, ChildUpdate(agent=name, session=child_name, handoff=task, result=answer, refs=[ref]))
    return answer
