"""Plans: the steps that todo tools list, and which of them are done.

Some tools write the whole list with every call (TodoWrite, update_plan), others add and change single tasks
(TaskCreate, TaskUpdate). A step of a list has the key "list": the next list replaces it. A task has the key "task 3".
"""

import re
from typing import NamedTuple, cast

import msgspec

from daypack.types.history import Message, ToolCall

LIST_KEY = "list"
_LIST_TOOLS = frozenset(
    {"todowrite", "updateplan", "writetodos", "setplan", "managetodolist", "todolist", "updatetodolist", "settodolist"}
)
_ADDING_TOOLS = frozenset({"taskcreate", "createtask", "addtask", "todoadd", "addtodo", "createtodo"})
_CHANGING_TOOLS = frozenset({"taskupdate", "updatetask", "todoupdate", "updatetodo", "completetask", "completetodo"})
_OPEN_STATES = frozenset({"pending", "inprogress", "notstarted", "todo", "open", "blocked"})
_DONE_STATES = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled", "deleted"})
_WORDS_OF_AN_ITEM = ("content", "step", "text", "title", "task", "subject", "description")
_NAMES_OF_AN_ID = ("taskId", "task_id", "id", "todoId", "todo_id")
_NUMBER = re.compile(r"#(\w{1,40})")


class Step(NamedTuple):
    """An item of a plan or a to-do list."""

    seq: int
    text: str
    done: bool
    key: str = LIST_KEY


class Plans:
    """Takes the messages of a range in order, and keeps the steps."""

    def __init__(self) -> None:
        self.listed = False  # a whole list was written
        self.steps: list[Step] = []  # every step that was ever written, oldest first
        self.closed: set[str] = set()  # keys of tasks that were closed
        self._list: list[Step] = []
        self._tasks: dict[str, Step] = {}  # by key
        self._asked: dict[str, Step] = {}  # tasks whose number is in the result, by call

    @property
    def open(self) -> tuple[Step, ...]:
        """The open steps of the newest list, and the open tasks."""
        tasks = (*self._tasks.values(), *self._asked.values())
        return tuple(step for step in (*self._list, *tasks) if not step.done)

    def take(self, message: Message) -> None:
        """Read the calls of a message, or the number that a result gives to a task."""
        if message.role == "tool":
            if step := self._asked.pop(message.tool_call_id or "", None):
                number = _NUMBER.search(message.text[:400])
                key = f"task {number[1]}" if number else f"task at {step.seq}.{len(self._tasks)}"
                self._tasks[key] = step._replace(key=key)
            return
        for call in message.tool_calls:
            name = call.name.lower().replace("_", "").replace("-", "")
            if name in _LIST_TOOLS:
                self._write_list(call, message.seq)
            elif name in _ADDING_TOOLS:
                if step := _step(_arguments(call), message.seq, "pending"):
                    self._asked[call.id] = step
                    self.steps.append(step)
            elif name in _CHANGING_TOOLS:
                self._change(_arguments(call), message.seq, "done" if name.startswith("complete") else "")

    def _write_list(self, call: ToolCall, seq: int) -> None:
        listed = [step for item in _items(_arguments(call)) if (step := _step(item, seq))]
        if listed:
            self.listed = True
            self.steps += listed
            self._list = listed

    def _change(self, arguments: object, seq: int, state: str) -> None:
        fields = cast("dict[object, object]", arguments) if isinstance(arguments, dict) else {}
        number = next((fields[name] for name in _NAMES_OF_AN_ID if isinstance(fields.get(name), str | int)), None)
        state = state or _state(fields.get("status"))
        if number is None or state not in _DONE_STATES:
            return
        key = f"task {number}"
        self.closed.add(key)
        if step := self._tasks.get(key):
            self._tasks[key] = done = step._replace(done=True)
            self.steps.append(done._replace(seq=seq))


def _arguments(call: ToolCall) -> object:
    try:
        return msgspec.json.decode(call.arguments.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def _items(arguments: object) -> list[object]:
    if not isinstance(arguments, dict):
        return []
    values = cast("dict[object, object]", arguments).values()
    lists = [cast("list[object]", items) for items in values if isinstance(items, list)]
    return max(lists, key=len) if lists else []


def _step(item: object, seq: int, state: str = "") -> Step | None:
    if not isinstance(item, dict):
        return None
    named = cast("dict[object, object]", item)
    words = next((text for name in _WORDS_OF_AN_ITEM if isinstance(text := named.get(name), str)), "")
    state = state or _state(named.get("status"))
    if not words.strip() or state not in _OPEN_STATES | _DONE_STATES:
        return None
    return Step(seq, words, state in _DONE_STATES)


def _state(value: object) -> str:
    return value.lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(value, str) else ""
