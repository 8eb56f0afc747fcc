"""Completions over HTTP: llama.cpp's server, Ollama, vLLM, OpenAI and whatever speaks like them."""

import threading
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from daypack.llm.choice import Choice
from daypack.llm.client import Deadline
from daypack.llm.completion.backends import Backend, recognise
from daypack.llm.completion.port import Completion, Constraint, Prompt
from daypack.llm.completion.replies import read_chat, read_object, read_ollama, read_refusal
from daypack.llm.completion.thinking import TEMPLATE_SWITCH, can_think, messages_of
from daypack.llm.endpoint import HINTS, Endpoint

_PROBE_SECONDS = 15.0

# Newer models of OpenAI refuse a temperature, a seed and max_tokens: "modest" asks without.
Style = Literal["usual", "modest"]


class Form(NamedTuple):
    """One way to put a question."""

    constraint: Constraint
    style: Style


class HttpCompleter:
    """A model behind an address. The first question finds out what answers there and what it can."""

    def __init__(self, chosen: Choice, *, key: str = "", pause_seconds: float = 0.5) -> None:
        self.name = chosen.name
        self._model = chosen.model
        self._url = chosen.place
        self._window = chosen.window_tokens
        self._seconds = float(chosen.deadline_seconds)
        self._key = key
        self._endpoint = Endpoint(chosen.name, chosen.place, key=key, pause_seconds=pause_seconds)
        self._backend: Backend | None = None
        self._refused: set[str] = set()  # what this endpoint does not know: grammar, schema, usual, modest
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpCompleter({self.name!r})"

    @property
    def window_tokens(self) -> int:
        """What the choice says, else what the server says, else 8192."""
        return self._window or self._recognised().window_tokens

    def complete(self, prompt: Prompt) -> Completion:
        """Answer within the deadline, or raise ModelFailed."""
        with self._lock:
            return self._ask(prompt, Deadline(self._seconds))

    def close(self) -> None:
        """Do nothing: no connection is kept between questions."""

    def _ask(self, prompt: Prompt, deadline: Deadline) -> Completion:
        backend, refusal = self._recognised(), ""
        path = "/api/chat" if backend.kind == "ollama" else f"{urlsplit(self._url).path}/chat/completions"
        tried: list[Form] = []
        for form in self._forms(backend, prompt):
            answer = self._endpoint.send("POST", path, self._body(backend, prompt, form), deadline)
            if answer.status == 200:
                # What was refused before and is not in the form that was taken is not asked for again.
                self._refused.update({word for one in tried for word in one} - {*form, ""})
                return self._read(backend, answer.body, form.constraint)
            refusal, too_long = read_refusal(answer.body, self._key)
            if too_long:
                hint = "give the real size of its window: ?window=TOKENS behind the choice"
                raise self._endpoint.failed(f"the prompt is too long: {refusal}", hint)
            if answer.status not in (400, 422):
                problem = f"HTTP {answer.status}: {refusal}"
                raise self._endpoint.failed(problem, HINTS.get(answer.status, "the server's own log tells more"))
            tried.append(form)
        raise self._endpoint.failed(f"the endpoint refused the question: {refusal}", "check the model's name")

    def _forms(self, backend: Backend, prompt: Prompt) -> list[Form]:
        """Return the ways to put a question, best first; after a refusal (HTTP 400) comes the next."""
        constraints: list[Constraint] = [""]
        if prompt.schema is not None:
            constraints.insert(0, "schema")
        if prompt.grammar is not None and backend.kind == "llama.cpp":
            constraints.insert(0, "grammar")
        styles: tuple[Style, ...] = ("usual", "modest") if backend.kind == "other" else ("usual",)
        forms = [Form(constraint, style) for constraint in constraints for style in styles]
        return [form for form in forms if not self._refused & {*form}]

    def _body(self, backend: Backend, prompt: Prompt, form: Form) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "model": self._model,
            "messages": messages_of(prompt, thinks=can_think(self._model, backend.template)),
            "stream": False,
        }
        if backend.kind == "ollama":
            # Ollama cuts a long prompt silently unless it is told how much room there must be.
            limits = {"num_ctx": self._window or backend.window_tokens, "num_predict": prompt.max_tokens}
            asked |= {"think": False, "options": {"temperature": 0, "seed": prompt.seed, **limits}}
            return asked | ({"format": prompt.schema} if form.constraint else {})
        if form.style == "usual":
            asked |= {"max_tokens": prompt.max_tokens, "temperature": 0, "seed": prompt.seed}
        else:
            asked["max_completion_tokens"] = prompt.max_tokens
        if backend.kind in ("llama.cpp", "vllm"):
            asked["chat_template_kwargs"] = TEMPLATE_SWITCH
        if form.constraint == "grammar":
            asked["grammar"] = prompt.grammar
        elif form.constraint == "schema":
            described = {"name": "answer", "strict": True, "schema": prompt.schema}
            asked["response_format"] = {"type": "json_schema", "json_schema": described}
        return asked

    def _read(self, backend: Backend, body: bytes, constraint: Constraint) -> Completion:
        read = read_ollama if backend.kind == "ollama" else read_chat
        completion = read(read_object(body) or {}, self.name, constraint)
        if completion is None:
            told = read_refusal(body, self._key)[0]
            raise self._endpoint.failed(
                f"the answer is no completion: {told}", "is this an OpenAI-compatible endpoint?"
            )
        return completion

    def _recognised(self) -> Backend:
        if self._backend is None:
            deadline = Deadline(min(_PROBE_SECONDS, self._seconds))

            def ask(method: str, path: str, value: dict[str, Any] | None) -> dict[str, Any] | None:
                answer = self._endpoint.send(method, path, value, deadline)
                return read_object(answer.body) if answer.status == 200 else None

            self._backend = recognise(ask, urlsplit(self._url).path, self._model)
        return self._backend
