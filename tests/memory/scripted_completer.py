"""A scripted completer, and an entry and a document to try it with."""

from daypack.errors import ModelFailed
from daypack.llm.completion.port import Completion, Finish, Prompt
from daypack.memory.prompts import load_prompts

PROMPTS = load_prompts("chat")
RAW = "Hi Sam, our Q3 launch date moved to 17 Aug 2025."
DOCUMENT = """# Memory

I am a helpful agent.

## Participants
- Ana (user)

## Decisions
- Ana and others decided on tabs

## Open tasks
- [ ] Call Bob
"""


class Scripted:
    """A completer that returns the given answers, one per call."""

    name = "scripted"
    window_tokens = 8000

    def __init__(self, *answers: str, finish: Finish = "stop") -> None:
        self.answers = list(answers)
        self.finish: Finish = finish
        self.asked: list[Prompt] = []

    def complete(self, prompt: Prompt) -> Completion:
        self.asked.append(prompt)
        if not self.answers:
            raise ModelFailed("gone")
        return Completion(self.answers.pop(0), self.finish, self.name)

    def close(self) -> None:
        pass
