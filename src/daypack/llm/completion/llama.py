"""Completions in this process: llama.cpp runs a GGUF file, by default on one thread, reproducibly."""

import secrets
from importlib import import_module
from typing import Any

from daypack.errors import ModelFailed, ModelMissing
from daypack.forks import ThreadLock
from daypack.llm.choice import Choice
from daypack.llm.client import NETWORK_ERRORS, NO_RETRY, Client
from daypack.llm.completion.backends import DEFAULT_WINDOW_TOKENS, Query, recognise
from daypack.llm.completion.chat import THINKING_OFF, can_think, chat_messages, read_chat
from daypack.llm.completion.port import Completion, Constraint, Prompt
from daypack.llm.endpoint import read_object
from daypack.llm.models.gguf import is_gguf, read_window
from daypack.types.deadline import Deadline

# Small batches cost nothing on a CPU, and a completion can only be cancelled between two of them.
_BATCH_TOKENS = 256


class LlamaCompleter:
    """A GGUF file; the first completion loads it, `close` unloads it."""

    def __init__(self, chosen: Choice, path: str) -> None:
        self.name = chosen.name
        self._path = path
        self._asked_window = chosen.window_tokens or DEFAULT_WINDOW_TOKENS
        self._threads = chosen.threads
        self._seconds = float(chosen.deadline_seconds)
        self._server: Any = None
        self._window = 0
        self._thinks = False
        self._lock = ThreadLock()

    def __repr__(self) -> str:
        return f"LlamaCompleter({self.name!r})"

    @property
    def window_tokens(self) -> int:
        """The window of the choice, else 8192, but at most what the model was trained for."""
        with self._lock:
            self._load()
            return self._window

    def complete(self, prompt: Prompt) -> Completion:
        """Return the completion within the deadline, or raise ModelFailed."""
        with self._lock:
            server = self._load()
            return self._complete(server, prompt, Deadline.after(self._seconds))

    def close(self) -> None:
        """Unload the model."""
        with self._lock:
            self._server = None

    def _complete(self, server: Any, prompt: Prompt, deadline: Deadline) -> Completion:  # noqa: ANN401 — untyped library
        """Stream the completion, because it can only be cancelled between two chunks."""
        stream = _Stream(deadline)
        constraint: Constraint = ""
        body: dict[str, Any] = {
            "messages": chat_messages(prompt, thinks=self._thinks),
            "max_tokens": prompt.max_tokens,
            "temperature": 0,
            "seed": prompt.seed,
            # A cached prompt is computed in different batches, which can change the completion.
            "cache_prompt": False,
            "chat_template_kwargs": THINKING_OFF,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        if prompt.grammar is not None:
            constraint, body["grammar"] = "grammar", prompt.grammar
        elif prompt.schema is not None:
            constraint, body["json_schema"] = "schema", prompt.schema
        server.handle_chat_completions(body, stream.take)
        if stream.timed_out:
            hint = "append a longer limit to the choice, ?timeout=SECONDS, or use a smaller model"
            raise self._failed(f"no answer within {self._seconds:,.0f} seconds", hint)
        if stream.refusal:
            raise self._failed(stream.refusal, "use a smaller prompt or another grammar")
        completion = read_chat(stream.response(), self.name, constraint)
        if completion is None:
            raise self._failed("the model did not answer", "try `daypack model test`")
        return completion

    def _load(self) -> Any:  # noqa: ANN401 — untyped library
        if self._server is None:
            server, key = self._start(self._check_file())
            backend = recognise(_query(server.listening_address, key), "/v1", self.name)
            self._window = backend.window_tokens
            self._thinks = can_think(self.name, backend.template)
            self._server = server
        return self._server

    def _start(self, window: int) -> tuple[Any, str]:
        try:
            library: Any = import_module("xllamacpp")
        except ImportError as error:
            hint = "run pip install 'daypack[llama]', or choose an endpoint: openai:URL#NAME"
            raise ModelMissing(
                "xllamacpp is not installed", operation="load model", place=self.name, hint=hint
            ) from error
        key = secrets.token_hex(16)
        params: Any = library.CommonParams()
        params.model.path = self._path
        params.n_ctx = window
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.n_parallel = 1
        # More threads than idle cores are ten times slower: they spin while they wait for each other.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.n_threads_http = 1
        params.cache_ram_mib = 0
        params.warmup = False
        params.verbosity = -1
        params.api_keys = [key]  # the library always opens a port: only this process may use it
        try:
            return library.Server(params), key
        except RuntimeError as error:
            hint = "check free memory and the file; `daypack model pull` downloads it again"
            raise self._failed("llama.cpp cannot load the file", hint) from error

    def _check_file(self) -> int:
        """Return the window to allocate, at most what the model was trained for."""
        try:
            if not is_gguf(self._path):
                raise self._failed("not a GGUF file", "name the .gguf file itself")
            return min(self._asked_window, read_window(self._path) or self._asked_window)
        except OSError as error:
            raise self._failed(error.strerror or str(error), "check the file's permissions") from error

    def _failed(self, problem: str, hint: str) -> ModelFailed:
        return ModelFailed(problem, operation="ask model", place=self._path, hint=hint)


class _Stream:
    """Collects the chunks of a completion and cancels it when the deadline passes."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._texts: list[str] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self.refusal = ""
        self.timed_out = False

    def take(self, chunk: Any) -> bool:  # noqa: ANN401 — called by the library
        """Take a chunk; return True to cancel the completion."""
        if self._deadline.has_passed:
            self.timed_out = True
            return True
        if error := chunk.get("error"):
            self.refusal = str(error.get("message", error))
            return True
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices", ()):
            self._texts.append(choice.get("delta", {}).get("content") or "")
            self._finish = choice.get("finish_reason") or self._finish
        return False

    def response(self) -> dict[str, Any]:
        """Return the response as if it had not been streamed."""
        if self._finish is None:
            return {}
        message = {"content": "".join(self._texts)}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


def _query(address: str, key: str) -> Query:
    """Return a function that queries the server of the library, which runs in this process."""
    client = Client(address, key=key)

    def query(method: str, path: str, _: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            response = client.send(method, path, None, retry=NO_RETRY, deadline=Deadline.after(10))
        except NETWORK_ERRORS:
            return None
        return read_object(response.body) if response.status == 200 else None

    return query
