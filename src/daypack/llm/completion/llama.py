"""Completions in this process: llama.cpp runs a GGUF file, on one thread, the same answer every time."""

import secrets
import threading
from importlib import import_module
from typing import Any

from daypack.errors import ModelFailed, ModelMissing
from daypack.llm.choice import Choice
from daypack.llm.client import TROUBLE, Deadline, Exchange, Request
from daypack.llm.completion.backends import DEFAULT_WINDOW_TOKENS, Ask, recognise
from daypack.llm.completion.port import Completion, Constraint, Prompt
from daypack.llm.completion.replies import read_chat, read_object
from daypack.llm.completion.thinking import TEMPLATE_SWITCH, can_think, messages_of
from daypack.llm.models.gguf import is_gguf, read_window

# Small batches cost nothing on a processor, and between two of them an answer can be given up.
_BATCH_TOKENS = 256


class LlamaCompleter:
    """A GGUF file; loaded with the first question, let go of by `close`."""

    def __init__(self, chosen: Choice, path: str) -> None:
        self.name = chosen.name
        self._path = path
        self._asked_window = chosen.window_tokens or DEFAULT_WINDOW_TOKENS
        self._threads = chosen.threads
        self._seconds = float(chosen.deadline_seconds)
        self._server: Any = None
        self._window = 0
        self._thinks = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LlamaCompleter({self.name!r})"

    @property
    def window_tokens(self) -> int:
        """What the choice says or 8192, but not more than the model was made for."""
        with self._lock:
            self._load()
            return self._window

    def complete(self, prompt: Prompt) -> Completion:
        """Answer within the deadline, or raise ModelFailed."""
        with self._lock:
            server = self._load()
            return self._ask(server, prompt, Deadline(self._seconds))

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._server = None

    def _ask(self, server: Any, prompt: Prompt, deadline: Deadline) -> Completion:  # noqa: ANN401 — has no types
        """Stream the answer, because only between two pieces can it be given up."""
        answer = _Stream(deadline)
        constraint: Constraint = ""
        asked: dict[str, Any] = {
            "messages": messages_of(prompt, thinks=self._thinks),
            "max_tokens": prompt.max_tokens,
            "temperature": 0,
            "seed": prompt.seed,
            # A cached prompt is computed in other pieces and may end in other words.
            "cache_prompt": False,
            "chat_template_kwargs": TEMPLATE_SWITCH,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        if prompt.grammar is not None:
            constraint, asked["grammar"] = "grammar", prompt.grammar
        elif prompt.schema is not None:
            constraint, asked["json_schema"] = "schema", prompt.schema
        server.handle_chat_completions(asked, answer.take)
        if answer.late:
            hint = "give it longer: ?timeout=SECONDS behind the choice, or a smaller model"
            raise self._failed(f"no answer within {self._seconds:,.0f} seconds", hint)
        if answer.refusal:
            raise self._failed(answer.refusal, "a smaller prompt, or another grammar")
        completion = read_chat(answer.whole(), self.name, constraint)
        if completion is None:
            raise self._failed("the model did not answer", "try `daypack model test`")
        return completion

    def _load(self) -> Any:  # noqa: ANN401 — has no types
        if self._server is None:
            server, key = self._start(self._check_file())
            found = recognise(_asking(server.listening_address, key), "/v1", self.name)
            self._window = found.window_tokens
            self._thinks = can_think(self.name, found.template)
            self._server = server
        return self._server

    def _start(self, window: int) -> tuple[Any, str]:
        try:
            library: Any = import_module("xllamacpp")
        except ImportError as error:
            hint = "pip install 'daypack[llama]', or choose an endpoint: openai:URL#NAME"
            raise ModelMissing(
                "xllamacpp is not installed", operation="load model", place=self.name, hint=hint
            ) from error
        key = secrets.token_hex(16)
        params: Any = library.CommonParams()
        params.model.path = self._path
        params.n_ctx = window
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.n_parallel = 1
        # More threads than idle cores make it ten times slower: they wait for each other, spinning.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.n_threads_http = 1
        params.cache_ram_mib = 0
        params.warmup = False
        params.verbosity = -1
        params.api_keys = [key]  # it listens on this machine whether that is wanted or not: nobody else may ask it
        try:
            return library.Server(params), key
        except RuntimeError as error:
            hint = "is there memory enough, and is the file whole? `daypack model pull` fetches models again"
            raise self._failed("llama.cpp cannot load it", hint) from error

    def _check_file(self) -> int:
        """Return the window to ask for: memory is taken for all of it, also for what the model could never use."""
        try:
            if not is_gguf(self._path):
                raise self._failed("is not a GGUF file", "name the .gguf file itself")
            return min(self._asked_window, read_window(self._path) or self._asked_window)
        except OSError as error:
            raise self._failed(error.strerror or str(error), "check the file's permissions") from error

    def _failed(self, problem: str, hint: str) -> ModelFailed:
        return ModelFailed(problem, operation="ask model", place=self._path, hint=hint)


class _Stream:
    """Collects the pieces of an answer, and stops it when the time is up."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._texts: list[str] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self.refusal = ""
        self.late = False

    def take(self, piece: Any) -> bool:  # noqa: ANN401 — called by the library
        """Take one piece; True ends the answer."""
        try:
            self._deadline.left()
        except TimeoutError:
            self.late = True
            return True
        if error := piece.get("error"):
            self.refusal = str(error.get("message", error))
            return True
        self._usage = piece.get("usage") or self._usage
        for choice in piece.get("choices", ()):
            self._texts.append(choice.get("delta", {}).get("content") or "")
            self._finish = choice.get("finish_reason") or self._finish
        return False

    def whole(self) -> dict[str, Any]:
        """Return the answer as if it had come in one piece."""
        if self._finish is None:
            return {}
        message = {"content": "".join(self._texts)}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


def _asking(address: str, key: str) -> Ask:
    """Return how to ask the server in this process what it loaded."""

    def ask(method: str, path: str, _: dict[str, Any] | None) -> dict[str, Any] | None:
        request = Request(method, address + path, headers={"Authorization": f"Bearer {key}", "Connection": "close"})
        try:
            with Exchange(request, deadline=Deadline(10)) as exchange:
                return read_object(exchange.body()) if exchange.status == 200 else None
        except TROUBLE:
            return None

    return ask
