"""Encode and decode delegation tokens as Hadoop's clients carry them: as text in a URL, or in a file.

A token has an identifier, which says whose it is, and a password, which proves it. Both, and the texts beside them, are
Hadoop's ``Writable``s. The server believes the password alone.

Source: Hadoop's ``Token``, ``AbstractDelegationTokenIdentifier``, ``WritableUtils`` and ``Credentials``.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from holdfast.errors import InvalidRequestError
from holdfast.webhdfs.failures import RequestRefusedError

KIND = "WEBHDFS delegation"
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class HadoopToken:
    """A token as a client has it.

    Attributes:
        service: to which server it belongs, as the client names it; the server does not care.
    """

    identifier: bytes
    password: bytes = field(repr=False)
    kind: str = KIND
    service: str = ""

    def encode(self) -> str:
        """Return the token as the text that stands in URLs."""
        return base64.urlsafe_b64encode(self.to_bytes()).rstrip(b"=").decode()

    def to_bytes(self) -> bytes:
        """Return the token as files of tokens have it."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        return b"".join(map(_encode_text, parts))

    @staticmethod
    def decode(text: str) -> HadoopToken:
        """Decode the text that stands in URLs.

        Raises:
            RequestRefusedError: it is no token.
        """
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            parts = []
            for _ in range(4):
                length, data = _decode_number(data)
                if not 0 <= length <= min(len(data), _MOST_BYTES):
                    raise ValueError("too short")
                parts.append(data[:length])
                data = data[length:]
            return HadoopToken(parts[0], parts[1], parts[2].decode(), parts[3].decode())
        except (ValueError, IndexError, binascii.Error) as error:
            raise RequestRefusedError("the delegation token cannot be decoded: ask for another one") from error


def make_identifier(owner: str, renewer: str, real_user: str, issued_ms: int, most_ms: int, number: int) -> bytes:
    """Return the identifier of a delegation token, which Hadoop's clients show."""
    texts = b"".join(_encode_text(text.encode()) for text in (owner, renewer, real_user))
    return b"\0" + texts + b"".join(map(_encode_number, (issued_ms, most_ms, number, 0)))


def make_token_file(tokens: Sequence[HadoopToken]) -> bytes:
    """Return a file of tokens, which a client finds by ``HADOOP_TOKEN_FILE_LOCATION``."""
    entries = [_encode_text(token.service.encode()) + token.to_bytes() for token in tokens]
    return b"HDTS\0" + _encode_number(len(entries)) + b"".join(entries) + _encode_number(0)


def tokens_for_servers(secret: str, servers: Sequence[str], owner: str) -> list[HadoopToken]:
    """Return a token that is not asked of a server as Hadoop's clients need it for servers.

    Args:
        secret: of the token.
        servers: each ``host:port``, perhaps after ``webhdfs://`` or ``swebhdfs://``; or, without a port, the name under
            which clients are configured to find several servers, such as ``webhdfs://lake``.
        owner: the user whom the token proves.

    Raises:
        InvalidRequestError: a server cannot be found.
    """
    identifier = make_identifier(owner, "", "", 0, 0, 0)
    return [HadoopToken(identifier, secret.encode(), *_service_of(server)) for server in servers]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _service_of(server: str) -> tuple[str, str]:
    """Return the kind of the tokens of a server, and what clients call it: by its first address and its port, or by the
    name that stands for several servers.
    """
    parts = urlsplit(server if "://" in server else f"webhdfs://{server}")
    kind = {"webhdfs": KIND, "swebhdfs": f"S{KIND}"}.get(parts.scheme)
    try:
        if kind is None or parts.path not in ("", "/") or not parts.hostname:
            raise ValueError("another form")
        if parts.port is None and "://" in server and not _is_address(parts.hostname):
            return kind, f"ha-{parts.scheme}:{parts.netloc}"
        if parts.port is None:
            raise ValueError("no port")
        address = socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)[0][4][0]
    except (ValueError, OSError) as error:
        raise InvalidRequestError(
            "a server is HOST:PORT or swebhdfs://HOST:PORT, and its host has an address; several servers with one name "
            "are webhdfs://NAME: change it",
            server=server,
        ) from error
    number = ipaddress.ip_address(address)
    text = str(number) if number.version == 4 else ":".join(f"{int(one, 16):x}" for one in number.exploded.split(":"))
    return kind, f"{text}:{parts.port}"  # as Java writes addresses


def _encode_text(text: bytes) -> bytes:
    return _encode_number(len(text)) + text


def _encode_number(number: int) -> bytes:
    """Encode a number from 0 on as ``WritableUtils.writeVLong`` does."""
    if number <= 127:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return (-112 - size & 0xFF).to_bytes(1, "big") + number.to_bytes(size, "big")


def _decode_number(data: bytes) -> tuple[int, bytes]:
    first = data[0] - 256 if data[0] > 127 else data[0]
    if first >= -112:
        return first, data[1:]
    size = -112 - first
    if size > 8:
        raise ValueError("negative")
    return int.from_bytes(data[1 : 1 + size], "big"), data[1 + size :]
