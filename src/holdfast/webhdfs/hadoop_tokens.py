"""Encode and decode delegation tokens as Hadoop's clients carry them: as text in a URL, or in a file.

A token has an identifier, which says whose it is, and a password, which proves it. Both, and the texts beside them, are
Hadoop's ``Writable``s. The server believes the password alone.

Source: Hadoop's ``Token``, ``AbstractDelegationTokenIdentifier``, ``WritableUtils`` and ``Credentials``.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

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
    password: bytes
    kind: str = KIND
    service: str = ""

    def encode(self) -> str:
        """Return the token as the text that stands in URLs."""
        return base64.urlsafe_b64encode(self.to_bytes()).rstrip(b"=").decode()

    def to_bytes(self) -> bytes:
        """Return the token as files of tokens have it."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        return b"".join(_encode_number(len(part)) + part for part in parts)

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
    texts = b"".join(_encode_number(len(text)) + text for text in (one.encode() for one in (owner, renewer, real_user)))
    return b"\0" + texts + b"".join(map(_encode_number, (issued_ms, most_ms, number, 0)))


def make_token_file(token: HadoopToken) -> bytes:
    """Return a file with one token, which a client finds by ``HADOOP_TOKEN_FILE_LOCATION``."""
    alias = token.service.encode()
    return b"HDTS\0" + _encode_number(1) + _encode_number(len(alias)) + alias + token.to_bytes() + _encode_number(0)


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
