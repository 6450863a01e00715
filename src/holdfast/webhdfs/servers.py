"""Keep in the database which processes of servers live. It imports nothing that a server needs: the command line shows
them, too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from holdfast.errors import MALFORMED
from holdfast.namespace.keys import SERVERS
from holdfast.namespace.view import scan_pages
from holdfast.transactions.base import Backend

SILENT_S = 60.0
"""After how long a server that says nothing counts as dead."""

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What a process of a server tells of itself.

    Attributes:
        token: names the process.
        at_s, since_s: now, and when it started; seconds since the epoch.
        requests: how many it has answered.
        duties: if it leads: what it has done so far.
    """

    token: str
    host: str
    port: int
    pid: int
    since_s: float
    at_s: float
    requests: int = 0
    duties: dict[str, int] | None = None

    def encode(self) -> bytes:
        """Return the value of the record, as JSON."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(value: bytes) -> ServerRecord | None:
        """Decode the record of a server; None if it is damaged."""
        try:
            found = json.loads(value)
            duties = found["duties"]
            return ServerRecord(
                token=str(found["token"]),
                host=str(found["host"]),
                port=int(found["port"]),
                pid=int(found["pid"]),
                since_s=float(found["since_s"]),
                at_s=float(found["at_s"]),
                requests=int(found["requests"]),
                duties=None if duties is None else {str(name): int(done) for name, done in duties.items()},
            )
        except MALFORMED:
            return None

    @property
    def address(self) -> str:
        """Where it listens, such as ``10.0.0.7:9870``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def server_key(token: str) -> bytes:
    """Return the key of the record of a process."""
    return SERVERS + token.encode()


def list_servers(database: Backend) -> list[ServerRecord]:
    """Return what the processes of a namespace's servers have told of themselves last."""
    start, end = SERVERS, SERVERS + b"\xff"
    records = (record for page in scan_pages(database, start, end, _PAGE) for _, record in page.records)
    return [found for found in (ServerRecord.decode(record.value) for record in records) if found is not None]
