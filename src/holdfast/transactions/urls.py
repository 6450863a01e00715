"""Take the URLs of databases apart, and show them without their secrets."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.errors import InvalidRequestError
from holdfast.wording import is_unicode, nearest

_WITHOUT_LOGIN = ("sqlite", "memory")
_MOST_CONNECTIONS = 1000


def split_url(url: str) -> SplitResult:
    """Split a URL into its parts.

    Raises:
        InvalidRequestError: it has no clear parts: percent-encode what is not meant to separate them. The message does
            not contain the URL, which may have a password in the wrong place.
    """
    if not (url.startswith("sqlite:") or is_unicode(url)):  # the name of a file may be any bytes
        raise InvalidRequestError("the url of a database must be valid Unicode: percent-encode other bytes")
    if "#" in url:
        raise InvalidRequestError("the url of a database has no fragment: write # as %23, also in a password")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidRequestError("the url of the database is not valid: check the host and its brackets") from None
    # An @ elsewhere means that a password contains one of @ / ?, so that the rest of it looks like a host or a path.
    if parts.scheme not in _WITHOUT_LOGIN and (url.count("@") > 1 or ("@" in url and "@" not in parts.netloc)):
        raise InvalidRequestError(
            "the url of the database has an @ in the wrong place: percent-encode special characters in user, password"
            " and options: @ as %40, / as %2F, ? as %3F"
        )
    return parts


def options_of(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query. A plus sign is a plus sign, as in libpq: queries are no HTML forms."""
    pairs = [one.partition("=") for one in query.split("&") if one]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def unknown_option(name: str, known: Iterable[str]) -> InvalidRequestError:
    """Return the error of a URL with an option that its backend does not know."""
    return InvalidRequestError(f"the URL of the database has an unknown option: {nearest(name, known)}", option=name)


def connections_of(text: str) -> int:
    """Parse the option ``connections``: how many a process opens at most.

    Raises:
        InvalidRequestError: it is no such number.
    """
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_CONNECTIONS:
        raise InvalidRequestError(f"connections is a number from 1 to {_MOST_CONNECTIONS}: change the URL", given=text)
    return int(text)


def public_url(url: str) -> str:
    """Return the URL of a database without user, password and options, except the schema: it may be shown and logged.

    Guarantee: nothing before the last ``@`` is shown, even if the URL is not valid.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "(not a url)"
    try:
        urlsplit(url)
    except ValueError:
        return "(not a url)"
    shown = rest if _has_no_login(scheme, rest) else rest.rpartition("@")[2]
    place, _, query = shown.partition("?")
    schema = [value for name, value in options_of(query) if name == "schema" and value.isidentifier()]
    return f"{scheme}://{place}" + (f"?schema={schema[0]}" if len(schema) == 1 else "")


def has_password(url: str) -> bool:
    """Check whether a URL contains a password; in doubt, as if a password contains ``@ / ? #``, it does."""
    scheme, _, rest = url.partition("://")
    login = "" if _has_no_login(scheme, rest) else rest.rpartition("@")[0]
    names = (name.lower() for name, _ in options_of(rest.partition("?")[2]))
    return ":" in login or any(name.endswith(_SECRET_OPTIONS) for name in names)


def _has_no_login(scheme: str, rest: str) -> bool:
    """Check whether an ``@`` in the URL is part of a path."""
    return scheme in _WITHOUT_LOGIN and rest.startswith("/")


_SECRET_OPTIONS = ("password", "passwd")
"""How the names of options end whose values are passwords, such as ``sslpassword``."""
