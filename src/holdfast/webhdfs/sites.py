"""Refuse what pages of other sites let browsers send: a user who reads them must not change a namespace.

A browser says from which site a page is (Origin, Sec-Fetch-Site). But a site may let its own name lead to this machine,
so that its page counts as one of this server (DNS rebinding). So where ``user.name`` is believed because only this
machine can send requests, the server answers only to names of this machine, and to addresses, which no site can have as
its name.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.webhdfs.failures import SECURITY, RequestRefusedError
from holdfast.webhdfs.settings import ServerSettings, is_loopback


@dataclass(frozen=True, slots=True)
class SiteGate:
    """Says which requests may come in.

    Attributes:
        names: of this server, in lower case; None if it answers to every name.
    """

    names: frozenset[str] | None = None

    @staticmethod
    def of(settings: ServerSettings) -> SiteGate:
        """Return the gate of a server."""
        if settings.believes_names is not None or not is_loopback(settings.host):
            return SiteGate()
        names = ["localhost", settings.host, socket.gethostname()]
        with contextlib.suppress(OSError):
            name, others, _ = socket.gethostbyaddr(settings.host)
            names += [name, *others]
        return SiteGate(frozenset(name.lower() for name in names))

    def check(self, host: str, origin: str, site: str = "") -> None:
        """Check a request.

        Args:
            host: the server as the request names it, with its port.
            origin: the header of that name; empty for none.
            site: the header Sec-Fetch-Site; empty for none.

        Raises:
            RequestRefusedError: a page of another site may have sent it.
        """
        if site in ("cross-site", "same-site") or (origin and origin.partition("://")[2] != host):
            raise RequestRefusedError("a page of another site may not use this server", SECURITY)
        if self.names is not None and not self._is_known(host):
            raise RequestRefusedError(
                "a server on loopback answers to names of this machine only: use localhost, or --trust-user-name",
                SECURITY,
            )

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in (self.names or ()) or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
