"""Completions over HTTP: llama.cpp's server, Ollama, vLLM, OpenAI and compatible endpoints."""

from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from daypack.forks import ThreadLock
from daypack.llm.choice import Choice
from daypack.llm.client import MODEL_RETRY, Retry
from daypack.llm.completion.backends import Backend, recognise
from daypack.llm.completion.chat import THINKING_OFF, can_think, chat_messages, read_chat, read_ollama
from daypack.llm.completion.port import Completion, Constraint, Prompt
from daypack.llm.endpoint import Endpoint, read_object
from daypack.types.deadline import Deadline

_PROBE_SECONDS = 15.0

# Newer models of OpenAI refuse a temperature, a seed and max_tokens: "minimal" leaves them out.
Style = Literal["full", "minimal"]


class Form(NamedTuple):
    """A variant of the request body."""

    constraint: Constraint
    style: Style


class HttpCompleter:
    """A model on a server. The first completion finds out which server it is and what it supports."""

    def __init__(self, chosen: Choice, *, key: str = "", retry: Retry = MODEL_RETRY) -> None:
        self.name = chosen.name
        self._model = chosen.model
        self._url = chosen.place
        self._window = chosen.window_tokens
        self._seconds = float(chosen.deadline_seconds)
        self._endpoint = Endpoint(chosen.name, chosen.place, key=key, retry=retry)
        self._backend: Backend | None = None
        self._unsupported: set[str] = set()  # constraints and styles that this endpoint refused
        self._lock = ThreadLock()

    def __repr__(self) -> str:
        return f"HttpCompleter({self.name!r})"

    @property
    def window_tokens(self) -> int:
        """The window of the choice, else of the server, else 8192."""
        return self._window or self._recognised().window_tokens

    def complete(self, prompt: Prompt) -> Completion:
        """Return the completion within the deadline, or raise ModelFailed."""
        with self._lock:
            return self._complete(prompt, Deadline.after(self._seconds))

    def close(self) -> None:
        """Do nothing: no connection is kept between completions."""

    def _complete(self, prompt: Prompt, deadline: Deadline) -> Completion:
        backend, refusal = self._recognised(), ""
        path = "/api/chat" if backend.kind == "ollama" else f"{urlsplit(self._url).path}/chat/completions"
        refused: list[Form] = []
        for form in self._forms(backend, prompt):
            response = self._endpoint.send("POST", path, self._body(backend, prompt, form), deadline)
            if response.status == 200:
                # Whatever only the refused forms contain is not sent to this endpoint again.
                self._unsupported.update({word for other in refused for word in other} - {*form, ""})
                return self._read(backend, response.body, form.constraint)
            refusal, is_too_long = self._endpoint.read_refusal(response.body)
            if is_too_long:
                hint = "append the real size of its window to the choice: ?window=TOKENS"
                raise self._endpoint.failed(f"the prompt is too long: {refusal}", hint)
            if response.status not in (400, 422):
                raise self._endpoint.failed_status(response, "see the server's log")
            refused.append(form)
        raise self._endpoint.failed(f"the endpoint refused the request: {refusal}", "check the model's name")

    def _forms(self, backend: Backend, prompt: Prompt) -> list[Form]:
        """Return the variants of a request, best first; after a refusal (HTTP 400) the next is sent."""
        constraints: list[Constraint] = [""]
        if prompt.schema is not None:
            constraints.insert(0, "schema")
        if prompt.grammar is not None and backend.kind == "llama.cpp":
            constraints.insert(0, "grammar")
        styles: tuple[Style, ...] = ("full", "minimal") if backend.kind == "other" else ("full",)
        forms = [Form(constraint, style) for constraint in constraints for style in styles]
        return [form for form in forms if not self._unsupported & {*form}]

    def _body(self, backend: Backend, prompt: Prompt, form: Form) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": chat_messages(prompt, thinks=can_think(self._model, backend.template)),
            "stream": False,
        }
        if backend.kind == "ollama":
            # Ollama truncates a long prompt silently unless the request sets num_ctx.
            limits = {"num_ctx": self._window or backend.window_tokens, "num_predict": prompt.max_tokens}
            body |= {"think": False, "options": {"temperature": 0, "seed": prompt.seed, **limits}}
            return body | ({"format": prompt.schema} if form.constraint else {})
        if form.style == "full":
            body |= {"max_tokens": prompt.max_tokens, "temperature": 0, "seed": prompt.seed}
        else:
            body["max_completion_tokens"] = prompt.max_tokens
        if backend.kind in ("llama.cpp", "vllm"):
            body["chat_template_kwargs"] = THINKING_OFF
        if form.constraint == "grammar":
            body["grammar"] = prompt.grammar
        elif form.constraint == "schema":
            schema = {"name": "answer", "strict": True, "schema": prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _read(self, backend: Backend, body: bytes, constraint: Constraint) -> Completion:
        read = read_ollama if backend.kind == "ollama" else read_chat
        completion = read(read_object(body) or {}, self.name, constraint)
        if completion is None:
            problem = f"the response is not a completion: {self._endpoint.read_refusal(body).text}"
            raise self._endpoint.failed(problem, "is this an OpenAI-compatible endpoint?")
        return completion

    def _recognised(self) -> Backend:
        if self._backend is None:
            deadline = Deadline.after(min(_PROBE_SECONDS, self._seconds))

            def query(method: str, path: str, value: dict[str, Any] | None) -> dict[str, Any] | None:
                response = self._endpoint.send(method, path, value, deadline)
                return read_object(response.body) if response.status == 200 else None

            self._backend = recognise(query, urlsplit(self._url).path, self._model)
        return self._backend
