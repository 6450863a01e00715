"""Diagnose TLS mistakes: distinguish them from network failures, because no retry fixes them.

botocore raises the same `SSLError` for all TLS mistakes and for a connection that broke in the middle of a response:
only the causes of the error distinguish them. Source: OpenSSL's reasons and verify codes
(openssl-verification-options(1)), as the module `ssl` reports them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from botocore.exceptions import SSLError

from holdfast.errors import InvalidRequestError

_NOT_VALID_NOW = frozenset((9, 10))  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
_OTHER_NAME = frozenset((62, 64))  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_READS_CERTIFICATES = frozenset(("PEM", "X509"))  # the parts of OpenSSL that read certificates
_NO_TLS = frozenset(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"))
_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
_PROBE_S = 5.0
_TLS_RECORDS = (b"\x15", b"\x16")  # an alert, a handshake


def tls_mistake(
    error: Exception, endpoint: str, ca_bundle: str | None, *, scheme_is_right: bool
) -> InvalidRequestError | None:
    """Return the error for a mistake in certificates or the URL scheme; None if `error` has another cause.

    Guarantee: returns an error only if the request was not sent, so that nothing happened.

    Args:
        endpoint: URL of the server, as the user gave it.
        ca_bundle: the value of the option; None if it was not given.
        scheme_is_right: whether the server has responded before, so that the URL scheme must be right.
    """
    if not isinstance(error, SSLError):
        return None
    bundle = ca_bundle or os.environ.get("AWS_CA_BUNDLE") or "of this system"
    for cause in _causes(error):
        reason = str(getattr(cause, "reason", None) or "")
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _refused_certificate(cause, endpoint, bundle)
        if type(cause).__name__ == "CertificateError":  # urllib3's own error for the host name
            return _other_name(endpoint)
        if isinstance(cause, _NO_FILE) or getattr(cause, "library", None) in _READS_CERTIFICATES:
            return _unreadable(bundle, cause)
        if reason in _NO_TLS and not scheme_is_right:
            return InvalidRequestError(
                "the server does not speak TLS at this port: write http://, or give its TLS port", endpoint=endpoint
            )
    return None


def refuse_bundle(ca_bundle: str) -> None:
    """Reject a CA bundle that this machine cannot open.

    Raises:
        InvalidRequestError: the file cannot be opened.
    """
    try:
        with open(ca_bundle, "rb"):
            pass
    except OSError as error:
        raise _unreadable(ca_bundle, error) from error


def _unreadable(bundle: str, cause: BaseException) -> InvalidRequestError:
    return InvalidRequestError(
        "the CA bundle cannot be read: name a file of PEM certificates that exists on every machine",
        ca_bundle=bundle,
        reason=os.strerror(cause.errno).lower() if isinstance(cause, OSError) and cause.errno else "no PEM",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, down to OpenSSL's own."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _refused_certificate(cause: ssl.SSLCertVerificationError, endpoint: str, bundle: str) -> InvalidRequestError:
    if cause.verify_code in _OTHER_NAME:
        return _other_name(endpoint)
    if cause.verify_code in _NOT_VALID_NOW:
        return InvalidRequestError(
            "the server's certificate has expired or is not valid yet: renew it, or set this machine's clock",
            endpoint=endpoint,
        )
    return InvalidRequestError(
        "the server's certificate is signed by an unknown authority: give the authority's certificate as "
        "ca_bundle (--ca-bundle, caBundle, AWS_CA_BUNDLE)",
        endpoint=endpoint,
        ca_bundle=bundle,
        reason=cause.verify_message,
    )


def _other_name(endpoint: str) -> InvalidRequestError:
    return InvalidRequestError(
        "the server's certificate is for another host name: use a host name of the certificate in the endpoint url, or "
        "issue a certificate for this one",
        endpoint=endpoint,
    )


def tls_needed(endpoint: str) -> InvalidRequestError:
    """Return the error for an http:// URL of a server that speaks TLS."""
    return InvalidRequestError("the server speaks TLS at this port: write https://", endpoint=endpoint)


def speaks_tls(endpoint: str) -> bool:
    """Check whether the server of an http:// URL responds to the start of a TLS handshake. Sends no request."""
    parts = urlsplit(endpoint)
    if parts.scheme != "http" or not parts.hostname:
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # trusts nothing: only the type of the response counts
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
    with contextlib.suppress(OSError, ValueError):
        with socket.create_connection((parts.hostname, parts.port or 80), timeout=_PROBE_S) as connection:
            connection.sendall(hello.read())
            connection.shutdown(socket.SHUT_WR)  # so that a server that is waiting for the rest of a request gives up
            return connection.recv(1) in _TLS_RECORDS
    return False
