"""Write to a connection: several writes as one, and an end that does not wait for its client forever."""

from __future__ import annotations

import asyncio
from typing import Any


class JoiningTransport:
    """A transport that can hold several writes back, to send them as one: each costs a system call, and a packet.

    Attributes:
        is_closed: whether `close` was called.

    Args:
        linger_s: how long a closed connection waits for its client to take the rest; asyncio's own waits forever.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, linger_s: float) -> None:
        self._transport = transport
        self._loop = loop
        self._linger_s = linger_s
        self._held: list[bytes] | None = None
        self.is_closed = False  # by the server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write bytes, or hold them back; do nothing on a connection that ends: uvloop's transport would raise."""
        if self._held is not None:
            self._held.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after everything was written."""
        self.is_closed = True
        self.release()
        if not self._transport.is_closing() and self._transport.get_write_buffer_size():
            self._loop.call_later(self._linger_s, self._transport.abort)  # does nothing to a connection that has ended
        self._transport.close()

    def hold(self) -> None:
        """Hold writes back from now on."""
        self._held = []

    def release(self) -> None:
        """Write what was held back."""
        held, self._held = self._held, None
        if held and not self._transport.is_closing():
            self._transport.writelines(held)
