"""Parse the parameters of a request as HDFS does: names without regard to case, and errors in its words.

Source: the classes ``*Param`` in Hadoop's ``org.apache.hadoop.hdfs.web.resources``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from holdfast.webhdfs.failures import RequestRefusedError

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~%-]+)(:[0-9]{1,5})?")
_MODE = re.compile(r"[0-7]{1,4}")
_MOST = 2**63


def decode_text(raw: bytes, what: str) -> str:
    """Decode percent-encoded UTF-8.

    Raises:
        RequestRefusedError: it is not UTF-8.
    """
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise RequestRefusedError(f"the {what} is not valid UTF-8: encode it") from error


def check_host(host: str) -> None:
    """Check how a client has named this server: addresses in answers contain it.

    Raises:
        RequestRefusedError: it is no host with or without a port.
    """
    if not _HOST.fullmatch(host):
        raise RequestRefusedError("the header Host is not a host and a port: correct it")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a request.

    Attributes:
        values: the values of each name, which is in lower case.
    """

    values: Mapping[str, Sequence[str]] = field(repr=False)  # it may contain a token

    @staticmethod
    def parse(query: bytes) -> Parameters:
        """Parse a query string. A plus sign is a space, as in forms.

        Raises:
            RequestRefusedError: it is not UTF-8.
        """
        values: dict[str, list[str]] = {}
        for pair in query.split(b"&"):
            if pair:
                name, _, value = pair.replace(b"+", b" ").partition(b"=")
                values.setdefault(decode_text(name, "query").lower(), []).append(decode_text(value, "query"))
        return Parameters(values)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter; `default` if it is missing or empty."""
        found = self.values.get(name)
        return found[0] if found and found[0] else default

    def require_text(self, name: str) -> str:
        """Return a parameter that must be there."""
        found = self.text(name)
        if not found:
            raise RequestRefusedError(f"Required param {name} is missing")
        return found

    def truth(self, name: str, default: bool) -> bool:
        """Return a parameter that is true or false."""
        text = self.text(name).lower()
        if text not in ("", "true", "false", "null"):
            raise self.error(name, "it is true or false")
        return default if text in ("", "null") else text == "true"

    def number(self, name: str, default: int | None, *, least: int = -_MOST) -> int | None:
        """Return a parameter that is a whole number."""
        text = self.text(name)
        if text in ("", "null"):
            return default
        if not _INTEGER.fullmatch(text) or not least <= int(text) < _MOST:
            raise self.error(name, "it is a whole number" + (f" from {least} on" if least > -_MOST else ""))
        return int(text)

    def mode(self, name: str, default: int) -> int:
        """Return a parameter that is a permission, in octal digits, such as 755 or 1777."""
        text = self.text(name)
        if text in ("", "null"):
            return default
        if not _MODE.fullmatch(text) or int(text, 8) > 0o1777:
            raise self.error(name, "it has octal digits up to 1777")
        return int(text, 8)

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return a parameter that is one of several names, in upper case."""
        text = self.text(name).upper()
        if text and text not in choices:
            raise self.error(name, "it is one of " + ", ".join(choices))
        return text or default

    def choices(self, name: str, choices: Sequence[str]) -> frozenset[str]:
        """Return a parameter that is a list of names, separated by commas, in upper case."""
        found = frozenset(part.strip() for part in self.text(name).upper().split(",") if part.strip())
        if not found <= set(choices):
            raise self.error(name, "its parts are among " + ", ".join(choices))
        return found

    def error(self, name: str, rule: str) -> RequestRefusedError:
        """Return the error of a parameter whose value is not possible."""
        # Hadoop's client falls back to an older operation if it finds these words, and the operation's name.
        given = self.text(name)[:100]
        return RequestRefusedError(f'Invalid value for webhdfs parameter "{name}": {rule}, not {given!r}')
