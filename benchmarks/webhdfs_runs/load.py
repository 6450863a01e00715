"""Be many clients of servers in one cheap process: ``python -m benchmarks.webhdfs_runs.load``.

A loop over sockets, with a minimum of HTTP: about 15 microseconds for a request, so that the machine is left to the
server. Takes one order as a JSON line on its standard input, and answers with one.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.namespace_runs.workloads import directory_of, file_name, known_name

__all__ = ["main"]


@dataclass
class _Client:
    """One connection, which sends the next request when it has an answer."""

    connection: socket.socket
    address: str
    received: bytes = b""
    sent_s: float = 0.0

    def send(self, request: str) -> None:
        """Send a request without a body."""
        self.sent_s = time.perf_counter()
        self.connection.send(f"{request} HTTP/1.1\r\nHost: {self.address}\r\nContent-Length: 0\r\n\r\n".encode())

    def receive(self) -> int | None:
        """Receive what is there; return the status of the answer when it is whole. Go where it sends the client."""
        self.received += self.connection.recv(65536)
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        start = self.received.find(b"content-length: ", 0, end) + 16
        whole = end + 4 + int(self.received[start : self.received.find(b"\r", start)])
        if len(self.received) < whole:
            return None
        status, head = int(self.received[9:12]), self.received[:end].decode()
        self.received = self.received[whole:]
        if status == 307:
            location = head.partition("location: ")[2].partition("\r")[0]
            self.send(f"PUT {location.removeprefix(f'http://{self.address}')}")
            return None
        return status


def _requests(workload: str, root: str) -> Callable[[int], str]:
    """Return what makes the request of each number: as in `benchmarks.namespace_runs.workloads`."""
    top = f"/webhdfs/v1{root}"

    def ask(method: str, path: str, operation: str) -> str:
        return f"{method} {path}?op={operation}&user.name=bench"

    def request(number: int) -> str:
        if workload == "status":
            return ask("GET", top, "GETFILESTATUS")
        if workload == "mixed" and not number.bit_count() % 2:
            return ask("GET", f"{top}/{known_name(number)}", "GETFILESTATUS")
        if workload in ("mkdirs", "mixed"):
            return ask("PUT", f"{top}/d{number}", "MKDIRS")
        if workload == "mkdirs-spread":
            return ask("PUT", f"{top}/{directory_of(number)}/d{number}", "MKDIRS")
        file = file_name(number)
        if workload == "rename":
            return ask("PUT", f"{top}/{file}", f"RENAME&destination={root}/{file}.new")
        if workload == "delete":
            return ask("DELETE", f"{top}/{file}", "DELETE")
        assert workload == "create", workload
        return ask("PUT", f"{top}/{file}", "CREATE")

    return request


def run_clients(
    addresses: Sequence[str],
    clients: int,
    workload: str,
    root: str,
    count: int,
    limit_s: float,
) -> dict[str, Any]:
    """Send requests until so many are answered, or time is up; return how many there were, and how long they took."""
    make, chosen = _requests(workload, root), selectors.DefaultSelector()
    numbers, latencies_s, statuses = iter(range(count)), list[float](), dict[int, int]()
    for number in range(clients):
        address = addresses[number % len(addresses)]
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(connection, address)
        chosen.register(connection, selectors.EVENT_READ, client)
    begun_s = time.perf_counter()
    waiting = 0
    for key in list(chosen.get_map().values()):
        number = next(numbers, -1)
        if number >= 0:
            key.data.send(make(number))
            waiting += 1
    while waiting and time.perf_counter() - begun_s < limit_s:
        for key, _ in chosen.select(1.0):
            status = key.data.receive()
            if status is None:
                continue
            now_s = time.perf_counter()
            latencies_s.append(now_s - key.data.sent_s)
            statuses[status] = statuses.get(status, 0) + 1
            waiting -= 1
            number = next(numbers, -1)
            if number >= 0 and now_s - begun_s < limit_s:
                key.data.send(make(number))
                waiting += 1
    elapsed_s = time.perf_counter() - begun_s
    for key in list(chosen.get_map().values()):
        key.data.connection.close()
    chosen.close()
    return {
        "rate": len(latencies_s) / elapsed_s,
        "done": len(latencies_s),
        "failed": sum(number for status, number in statuses.items() if status not in (200, 201)),
        "median_ms": 1000 * statistics.median(latencies_s),
        "cpu_s": time.process_time(),
        "elapsed_s": elapsed_s,
    }


def main() -> None:
    """Carry out orders until there are no more."""
    for line in sys.stdin:
        print(json.dumps(run_clients(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
