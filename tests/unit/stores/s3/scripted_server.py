"""An HTTP server that gives prepared answers: replies that no real S3 server can be made to give."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from tests.servers.http_server import LoopbackServer, Reply, Request


@dataclass(frozen=True)
class Answer:
    """One answer; a status of 0 closes the connection after the request was read, as a lost reply does."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    missing_bytes: int = 0

    def reply(self) -> Reply | None:
        """Return the reply, or None to close the connection."""
        data = self.body.encode()
        headers = tuple(self.headers.items())
        length = len(data) + self.missing_bytes
        return Reply(self.status, None, headers, data, length) if self.status else None


def error(code: str, status: int) -> Answer:
    """Return an answer with an S3 error document."""
    return Answer(status, f"<Error><Code>{code}</Code><Message>prepared</Message></Error>")


LOST = Answer(0)


class ScriptedServer:
    """Gives the nth request the nth prepared answer, repeats the last one, and records the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._script = list(answers)
        self._lock = threading.Lock()
        self._server = LoopbackServer(self._reply)

    def _reply(self, request: Request) -> Reply | None:
        with self._lock:
            self.requests.append((request.method, request.path))
            self.bodies.append(request.body)
            self.headers.append({name.lower(): value for name, value in request.headers})
            answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return answer.reply()

    @property
    def url(self) -> str:
        return self._server.url

    def __enter__(self) -> ScriptedServer:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
