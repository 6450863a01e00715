"""Convert URLs to and from Hadoop's form: percent-encoded, ``s3a`` for ``s3``, ``file:/path`` for ``file:///path``.

In Holdfast's URLs every character is literal (`holdfast.stores.registry`). Hadoop uses Java's ``URI``, where
``file:///data/out put`` is ``file:/data/out%20put``. The set of encoded characters was checked against Hadoop 3.5.0.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from holdfast.commit.codec import BadFieldError, require_valid

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
# Characters that java.net.URI allows in a path: unreserved, punctuation, and everything beyond ASCII except spaces.
_PLAIN = r"!$&'()*+,\-./:;=@_~A-Za-z0-9\u00a1-\ud7ff\ue000-\U0010ffff"
_QUOTED = re.compile(rf"[^{_PLAIN}]|\s")
_URI = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]*):(?://([A-Za-z0-9._-]*))?((?:/(?:[{_PLAIN}]|%[0-9A-Fa-f]{{2}})*)?)")
_S3 = ("s3", "s3a", "s3n")


def _normalize_store(scheme: str, authority: str | None) -> tuple[str, str]:
    scheme = scheme.lower()
    return "s3a" if scheme in _S3 else scheme, authority or ""


def _split_url(url: str) -> tuple[tuple[str, str], str]:
    """Split one of Holdfast's URLs into (store, path without a trailing slash)."""
    if (found := _URL.fullmatch(url)) is None:
        raise BadFieldError(f"the destination is not a url: {url!r}")
    return _normalize_store(found[1], found[2]), found[3].rstrip("/")


def _split_encoded_uri(uri: str) -> tuple[tuple[str, str], str]:
    """Split a URI into (store, decoded path)."""
    if (found := _URI.fullmatch(uri)) is None or uri.split() != [uri]:  # it contains white space
        raise BadFieldError(f"not a uri: {uri!r}")
    return _normalize_store(found[1], found[2]), unquote(found[3], errors="strict")


def encode_uri(url: str, path: str = "") -> str:
    """Return the URI of `path` below a destination.

    Args:
        url: the destination's URL, in the form of `Destination.url`, not encoded.
        path: relative to the destination, not encoded; empty for the destination itself.
    """
    (scheme, authority), base = _split_url(url)
    whole = f"{base}/{path}" if path else base or "/"
    encoded = _QUOTED.sub(lambda found: quote(found[0]), whole)
    return f"{scheme}://{authority}{encoded}" if authority else f"{scheme}:{encoded}"


def check_uri(uri: str) -> None:
    """Raise `BadFieldError` or `ValueError` if Java cannot parse `uri` as the URI of a file."""
    _split_encoded_uri(uri)


def path_below(uri: str, url: str) -> str:
    """Return the decoded path of `uri` relative to the destination `url`; empty if they are equal.

    The path itself is not checked.

    Raises:
        BadFieldError, ValueError: `uri` is not a URI, or belongs to another destination.
    """
    store, path = _split_encoded_uri(uri)
    own_store, base = _split_url(url)
    require_valid(
        store == own_store and (path == base or path.startswith(f"{base}/")), f"outside the destination: {uri!r}"
    )
    return path[len(base) + 1 :]
