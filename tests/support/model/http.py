"""Read requests and write answers over plain HTTP."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.model import anthropic, openai
from tests.support.model.conversation import Request
from tests.support.model.scenario import Step, Turn, calls_of, usage_of

if TYPE_CHECKING:
    from tests.support.model.server import ModelServer


class Dialect(NamedTuple):
    """One API."""

    read: Callable[[Any, dict[str, str]], Turn]
    answer: Callable[..., Any]
    events: Callable[[Any], Iterator[tuple[str, Any]]]
    failure: Callable[[Step], tuple[int, dict[str, str], Any]]
    end: bytes = b""


DIALECTS = {
    "/v1/messages": Dialect(anthropic.read, anthropic.whole, anthropic.events, anthropic.failure),
    "/v1/responses": Dialect(
        openai.read_responses, openai.response, openai.response_events, openai.failure
    ),
    "/v1/chat/completions": Dialect(
        openai.read_chat, openai.chat, openai.chat_events, openai.failure, b"data: [DONE]\n\n"
    ),
}


class Listener:
    """The port, and the connections it accepted."""

    def __init__(self, model: ModelServer, port: int = 0) -> None:
        handler = type("Bound", (Exchange,), {"model": model})
        self.http = Server((model.address, port), handler)
        self.port = int(self.http.server_address[1])
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.http.hang_up()
        self.thread.join()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        self.connections: set[socket.socket] = set()
        self.problems: list[BaseException | None] = []
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().close_request(request)

    def hang_up(self) -> None:
        """Close connections that are kept alive: on these a closed server would still answer."""
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect in the middle; raise all other errors."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.problems.append(error)


class Exchange(BaseHTTPRequestHandler):
    """One connection."""

    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Write no log: the log is `requests`."""

    def do_HEAD(self) -> None:
        self.reply(200, {})

    def do_GET(self) -> None:
        self.note("GET")
        if self.path.split("?")[0] == "/v1/models":
            self.reply(200, {"object": "list", "data": [], "models": [], "has_more": False})
        else:
            self.reply(404, {"error": {"type": "not_found_error", "message": self.path}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        request = self.note("POST", body)
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            self.reply(200, {"input_tokens": len(json.dumps(body)) // 4}, request=request)
        elif path in DIALECTS:
            self.converse(DIALECTS[path], request)
        else:
            self.reply(
                404, {"error": {"type": "not_found_error", "message": path}}, request=request
            )

    def note(self, method: str, body: Any = None) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method, self.path, headers, body)
        if (dialect := DIALECTS.get(self.path.split("?")[0])) and body is not None:
            request.turn = dialect.read(body, headers)
        with self.model.lock:
            self.model.requests.append(request)
        return request

    def converse(self, dialect: Dialect, request: Request) -> None:
        turn = request.turn
        assert turn is not None
        with self.model.lock:
            number = self.model.requests.index(request) + 1
            step = self.model.script.answer(turn)
        self.wait(step)
        if self.client_is_gone():
            request.cut = True
            return
        if step.fails and not step.broken:
            status, headers, error = dialect.failure(step)
            self.reply(status, error, headers, request)
            return
        try:
            calls = calls_of(step, turn)
        except LookupError as error_:
            step, calls = Step(say=f"The script is wrong: {error_}"), []
        usage = usage_of(step, turn)
        answer = dialect.answer(number, turn, step, calls, usage)
        # Recorded before the last byte is sent, so that a client with the answer finds it counted.
        request.usage, request.calls, request.cut = usage, len(calls), step.broken
        request.status = 200
        if turn.stream:
            self.stream(dialect, answer, step.broken, request)
        else:
            self.reply(200, answer, request=request)

    def wait(self, step: Step) -> None:
        if step.slow:
            self.model.closing.wait(step.slow)
        if step.hold:
            gate = self.model.gate(step.hold)
            self.model.held.append(step.hold)
            while not gate.wait(0.05) and not self.model.closing.is_set():
                continue

    def client_is_gone(self) -> bool:
        """Return whether the client was interrupted while it waited; such requests do not count."""
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def stream(self, dialect: Dialect, answer: Any, broken: bool, request: Request) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        frames = [
            (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()
            for name, data in dialect.events(answer)
        ]
        try:
            for frame in frames[: len(frames) // 2] if broken else [*frames, dialect.end]:
                self.chunk(frame)
            if not broken:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            request.cut = True
        self.close_connection = broken

    def chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def reply(
        self,
        status: int,
        body: Any,
        headers: dict[str, str] | None = None,
        request: Request | None = None,
    ) -> None:
        data = json.dumps(body).encode()
        if request is not None:
            request.status = status
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
