"""An HTTP server that gives prepared answers: what no well-behaved S3 server can be made to say."""

from __future__ import annotations

import http.server
import threading
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(frozen=True)
class Answer:
    """One answer; a status of 0 closes the connection after the request was read, as a lost reply does."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    missing_bytes: int = 0


def error(code: str, status: int) -> Answer:
    """An answer with an error document of S3."""
    return Answer(status, f"<Error><Code>{code}</Code><Message>prepared</Message></Error>")


LOST = Answer(0)


class ScriptedServer:
    """Answers the nth request with the nth prepared answer, the last one for ever; keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        script, lock = list(answers), threading.Lock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with lock:
                    server.requests.append((self.command, self.path))
                    server.bodies.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    answer = script.pop(0) if len(script) > 1 else script[0]
                if not answer.status:
                    self.close_connection = True
                    return
                data = answer.body.encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + answer.missing_bytes))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
                if answer.missing_bytes:
                    self.close_connection = True

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
