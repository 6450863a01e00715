"""Parse the URL of a destination and open its store.

    s3://bucket/key    s3a://, s3n://      an S3 bucket; the key is taken literally, as Spark users write it
    file:///path       file:/path, path    a directory of this machine, absolute or relative; links are resolved
    memory://name/key                      a store of this process, for tests
    other://…                              a store of another package, see `holdfast.stores.registry`

Worked composition::

    destination = open_destination("s3://bucket/my table/year=2013")
    destination.store.put(destination.key("_SUCCESS"), b"{}")
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast.stores.base import ObjectStore
from holdfast.stores.provider import Location, StoreOptions, StoreProvider
from holdfast.stores.registry import (
    BUILT_IN,
    LOCAL,
    absolute_path,
    find_provider,
    has_provider,
    locate_path,
    options_of,
    scheme_of,
    why_unsupported,
)

LOST_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""Matches the start of a URL that has lost one of its two slashes through `pathlib` or a typing error."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A directory in a store.

    Attributes:
        store: the store.
        prefix: key of the directory, without a slash at either end; empty for the whole store.
        url: the canonical URL, without credentials; `open_destination` returns the same destination for it.
    """

    store: ObjectStore
    prefix: str
    url: str

    def key(self, relative: str) -> str:
        """Return the key of a name below the destination; for ``""``, the prefix of all keys below the destination."""
        return f"{self.prefix}/{relative}" if self.prefix else relative


def open_destination(url: str, store_options: Iterable[StoreOptions] = ()) -> Destination:
    """Open the store and directory that a URL names. Makes no request: the first call reports a missing bucket.

    Args:
        url: see the top of this module. Percent signs, spaces, ``+``, ``#`` and ``?`` are literal.
        store_options: how to reach the stores; each store uses the entry of its own type, or its defaults if there is
            none.

    Raises:
        InvalidRequestError: the URL is invalid; the message suggests a correction and never repeats credentials.
        UnsupportedError: the package that provides the URL's scheme cannot be used.
    """
    provider, location = locate(url)
    store = provider.open(location, options_of(provider, store_options))
    return Destination(store, location.prefix, provider.url(location))


def locate(url: str) -> tuple[StoreProvider, Location]:
    """Parse a URL into the provider of its store and the location in it.

    Raises:
        InvalidRequestError: see `open_destination`.
        UnsupportedError: see `open_destination`.
    """
    if not url or not url.strip():
        raise InvalidRequestError("the destination is empty: give a url or a path")
    scheme = scheme_of(url)
    if not scheme:
        if refusal := _why_no_path(url):
            raise InvalidRequestError(refusal, url=_without_credentials(url))
        return LOCAL, locate_path(_without_file(url))
    provider = find_provider(scheme)
    rest = url[len(f"{scheme}://") :]
    if "@" in rest.partition("/")[0]:
        raise InvalidRequestError(
            "credentials do not belong in a url, where logs would show them: give them as options", scheme=scheme
        )
    return provider, provider.locate(rest)


def absolute_url(url: str) -> str:
    """Return a URL that means the same to a process with another working directory and another user.

    Guarantee: the result names the same directory as `url` does in this process now. Only a path that is relative or
    begins with ``~`` is changed; a string that is not a URL is returned unchanged, and `open_destination` refuses it.

    Raises:
        InvalidRequestError: the path is relative to a working directory that was deleted.
    """
    path = _without_file(url)
    if scheme_of(url) or _why_no_path(url):
        return url
    if not path.strip() or os.path.isabs(path):
        return url
    return url[: len(url) - len(path)] + absolute_path(path)


def _without_file(url: str) -> str:
    return url[len("file:") :] if url[: len("file:")].lower() == "file:" else url


def _without_credentials(url: str) -> str:
    """Return the URL without the part before an @, which could be ``key:secret`` and must not appear in an error."""
    before, _, after = url.rpartition("@")
    return f"…@{after}" if ":" in before else url


def _why_no_path(url: str) -> str:
    """Return the reason why a string without ``scheme://`` is not a path either; empty if it is a path."""
    scheme = url.partition(":")[0].lower()
    if any(scheme in provider.schemes for provider in BUILT_IN if provider is not LOCAL):
        return f"two slashes must follow the scheme: write {scheme}://bucket/key"
    if scheme_of(url.lstrip()):
        return "the url starts with a space: remove it"
    if scheme != "file" and LOST_SLASH.match(url):
        if has_provider(scheme):
            return f"two slashes must follow the scheme: write {scheme}://"
        if reason := why_unsupported(scheme):
            return f"{reason}, or write ./ before a directory of this name"
        return f"no store has the url scheme {scheme}: use s3://bucket/key, or write ./ before a directory of this name"
    return ""
