"""A local HTTP server with scripted replies: chat completions, errors, truncated downloads."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """A received request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


class Reply(NamedTuple):
    """A scripted reply; `cut_at` closes the connection after that many bytes of the body."""

    body: bytes | dict[str, Any] | list[Any] = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    cut_at: int | None = None
    delay_seconds: float = 0.0


NOT_FOUND = Reply({"error": {"message": "not found"}}, 404)


class LoopbackServer:
    """An HTTP server on a free port of loopback, in a thread."""

    def __init__(self, connection: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), connection)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Endpoint:
    """The server; `seen` has every request it received."""

    def __init__(self, answer: Callable[[Seen], Reply]) -> None:
        self.seen: list[Seen] = []
        self._answer = answer
        self._server = LoopbackServer(self._connection())
        self.url = self._server.url

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of chat requests, without requests about the model."""
        return [request.json for request in self.seen if request.path.endswith(("/chat/completions", "/api/chat"))]

    def __enter__(self) -> "Endpoint":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def _connection(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Connection(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(self.command, self.path, headers, body)
                endpoint.seen.append(seen)
                self.send(endpoint._answer(seen))

            do_POST = do_GET  # noqa: N815 — the name http.server requires

            def send(self, reply: Reply) -> None:
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                time.sleep(reply.delay_seconds)
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Length": str(len(body)), **reply.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body[: reply.cut_at])
                except OSError:
                    self.close_connection = True  # the client has disconnected

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Suppress the log."""

        return Connection


def chat(text: str, finish: str = "stop", **more: Any) -> Reply:
    """Return a chat completion."""
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return Reply({"object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage, **more})


def refuse(status: int, message: str, **headers: str) -> Reply:
    """Return an error reply."""
    return Reply({"error": {"message": message}}, status, headers)


def in_turn(*replies: Reply, told: Mapping[str, Reply] = {}) -> Callable[[Seen], Reply]:
    """Answer chat requests with the replies in order, repeating the last; `told` has replies for other paths."""
    rest = list(replies)

    def answer(seen: Seen) -> Reply:
        if seen.path in told:
            return told[seen.path]
        if not seen.path.endswith(("/chat/completions", "/api/chat")):
            return NOT_FOUND
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return answer


LLAMA_CPP = {"/props": Reply({"default_generation_settings": {"n_ctx": 4096}, "chat_template": "{{ messages }}"})}
VLLM = {"/v1/models": Reply({"data": [{"id": "m", "max_model_len": 32768}]})}
OLLAMA = {"/api/show": Reply({"model_info": {"qwen3.context_length": 40960}, "template": "{{ .Prompt }}"})}
