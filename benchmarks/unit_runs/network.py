"""Put a network between clients and a server on this machine, and measure it."""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Network", "delayed"]

_ROOT = Path(__file__).resolve().parents[2]
_PINGS = 300
_FLOOD_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Network:
    """A proxy in front of a server.

    Attributes:
        port: where the proxy listens.
        direct_ms, delayed_ms: the median time from a message of one byte to its echo, without the proxy and through it.
        mb_per_s: how much an echo through the proxy carries in each direction.
    """

    port: int
    direct_ms: float
    delayed_ms: float
    mb_per_s: float

    def __str__(self) -> str:
        return (
            f"ping-pong of one byte: {self.delayed_ms:.2f} ms, without the proxy {self.direct_ms:.2f} ms;"
            f" bulk: {self.mb_per_s:,.0f} MB/s"
        )


@contextmanager
def delayed(port: int, delay_s: float) -> Iterator[Network]:
    """Start a process that delays each direction to and from a port, and measure what it does to an echo server."""
    with _echo_server() as echo_port:
        command = [sys.executable, "-m", "benchmarks.unit_runs.delaying_proxy", str(delay_s), str(port), str(echo_port)]
        process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            own_port, own_echo_port = json.loads(process.stdout.readline())
            yield Network(
                port=own_port,
                direct_ms=_ping_ms(echo_port),
                delayed_ms=_ping_ms(own_echo_port),
                mb_per_s=_flood_mb_per_s(own_echo_port),
            )
        finally:
            process.stdin.close()
            process.wait(10)
            process.stdout.close()


@contextmanager
def _echo_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):  # the listener was closed
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=_echo, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)  # or the thread would wait forever


def _echo(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(1 << 18):
            connection.sendall(data)


def _ping_ms(port: int) -> float:
    taken_s = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_PINGS):
            before_s = time.perf_counter()
            connection.sendall(b"1")
            assert connection.recv(1) == b"1"
            taken_s.append(time.perf_counter() - before_s)
    return 1000 * statistics.median(taken_s)


def _flood_mb_per_s(port: int) -> float:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        before_s = time.perf_counter()
        sender = threading.Thread(target=connection.sendall, args=(bytes(_FLOOD_BYTES),), daemon=True)
        sender.start()
        left = _FLOOD_BYTES
        while left:
            left -= len(connection.recv(1 << 18))
        sender.join()
        return _FLOOD_BYTES / 1e6 / (time.perf_counter() - before_s)
