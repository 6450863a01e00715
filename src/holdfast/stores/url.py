"""Urls of destinations, parsed once, at the edge.

    s3://bucket/key    s3a://, s3n://      an S3 bucket; the key is taken literally, as Spark users write it
    file:///path       file:/path, path    a directory of this machine, absolute or relative; links are resolved
    memory://name/key                      a store of this process, for tests

Worked composition::

    destination = open_destination("s3://bucket/my table/year=2013")
    destination.store.put(destination.key("_SUCCESS"), b"{}")
"""

from __future__ import annotations

import difflib
import os
import re
import threading
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast.stores.base import ObjectStore
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory.store import MemoryStore
from holdfast.stores.s3.options import S3Options

__all__ = ["LOST_SLASH", "Destination", "absolute_url", "memory_store", "open_destination"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
LOST_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""How a url begins of which a path, or a person, has made one slash of two."""
_S3_SCHEMES = ("s3", "s3a", "s3n")
_SCHEMES = (*_S3_SCHEMES, "file", "memory")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")  # AWS's rule, and what older and compatible servers accept


@dataclass(frozen=True, slots=True)
class Destination:
    """A directory in a store.

    Attributes:
        store: the store.
        prefix: key of the directory, without a slash at either end; empty for the whole store.
        url: canonical, without credentials; `open_destination` of it gives the same destination.
    """

    store: ObjectStore
    prefix: str
    url: str

    def key(self, relative: str) -> str:
        """The key of a name below the destination; of ``""`` the prefix for listing what is below."""
        return f"{self.prefix}/{relative}" if self.prefix else relative


def open_destination(url: str, s3: S3Options | None = None) -> Destination:
    """The store and directory that a url names. Makes no request: a missing bucket shows at the first call.

    Args:
        url: see the top of this module. Percent signs, spaces, ``+``, ``#`` and ``?`` stand for themselves.
        s3: how to reach S3; None for the environment's settings.

    Raises:
        InvalidRequestError: the url cannot be right; says what to write instead. Never repeats credentials.
    """
    if not url or not url.strip():
        raise InvalidRequestError("the destination is empty: give a url or a path")
    found = _SCHEME.match(url)
    if found is None:
        if refusal := _why_no_path(url):
            raise InvalidRequestError(refusal, url=_without_credentials(url))
        return _open_path(_without_file(url), url)
    scheme, rest = found[1].lower(), url[found.end() :]
    if scheme not in _SCHEMES:
        near = difflib.get_close_matches(scheme, _SCHEMES, 1, 0.3)
        raise InvalidRequestError(
            f"no store has this url scheme: use {near[0] if near else 's3'}://",
            scheme=scheme,
            known=", ".join(_SCHEMES),
        )
    authority, _, path = rest.partition("/")
    if "@" in authority or (scheme in _S3_SCHEMES and ":" in authority):
        raise InvalidRequestError(
            "credentials do not belong into a url, where logs would show them: give them as options", scheme=scheme
        )
    if scheme == "file":
        if authority not in ("", "localhost"):
            raise InvalidRequestError("a file url names no host: write file:///path", url=url)
        return _open_path(f"/{path}", url)
    prefix = path.strip("/")
    if scheme == "memory":
        return Destination(memory_store(authority), prefix, _joined(f"memory://{authority}", prefix))
    return _open_s3(authority, prefix, url, s3)


def _open_s3(bucket: str, prefix: str, url: str, options: S3Options | None) -> Destination:
    from holdfast.stores.s3.store import S3Store  # boto3 is imported only by those who use S3

    if not bucket:
        raise InvalidRequestError("the url names no bucket: write s3://bucket/key", url=_without_credentials(url))
    if not _BUCKET.fullmatch(bucket):
        raise InvalidRequestError("this cannot be the name of a bucket: write s3://bucket/key", bucket=bucket)
    return Destination(S3Store(bucket, options or S3Options()), prefix, _joined(f"s3://{bucket}", prefix))


def _open_path(path: str, given: str) -> Destination:
    if "\0" in path or not path:
        raise InvalidRequestError("this cannot be a path: give another", url=given)
    absolute = _absolute(path, given)
    if os.path.islink(absolute) and not os.path.exists(absolute):
        raise InvalidRequestError("the path is a link to nowhere: make the directory that it names", url=given)
    # One directory, one name: what lies above it is then what lies above it, not above a link to it.
    prefix = os.path.realpath(absolute).strip("/")
    return Destination(LocalStore("/", keep=prefix), prefix, f"file:///{prefix}")


def absolute_url(url: str) -> str:
    """The url as another process has to be given it, which may work in another directory and for another user.

    Guarantee: it names what `url` names in this process now. Only a path that is relative or begins with ``~`` is
    changed; what is no url at all is left to `open_destination` to refuse.

    Raises:
        InvalidRequestError: the path is relative to a working directory that is gone.
    """
    path = _without_file(url)
    if _SCHEME.match(url) or _why_no_path(url):
        return url
    if not path.strip() or os.path.isabs(path):
        return url
    return url[: len(url) - len(path)] + _absolute(path, url)


def _without_file(url: str) -> str:
    return url[len("file:") :] if url[: len("file:")].lower() == "file:" else url


def _without_credentials(url: str) -> str:
    """The url as an error may show it: what is before an @ could be ``key:secret``."""
    before, _, behind = url.rpartition("@")
    return f"…@{behind}" if ":" in before else url


def _why_no_path(url: str) -> str:
    """Why a text without a scheme's two slashes is no path either; empty if it is one."""
    scheme = url.partition(":")[0].lower()
    if scheme in (*_S3_SCHEMES, "memory"):
        return f"two slashes follow the scheme: write {scheme}://bucket/key"
    if _SCHEME.match(url.lstrip()):
        return "a blank stands before the url: take it out"
    if scheme != "file" and LOST_SLASH.match(url):
        return f"no store has the url scheme {scheme}: use s3://bucket/key, or write ./ before a directory of this name"
    return ""


def _absolute(path: str, given: str) -> str:
    try:
        return os.path.abspath(os.path.expanduser(path))
    except FileNotFoundError as error:
        raise InvalidRequestError(
            "the path is relative and the working directory is gone: give an absolute path", url=given
        ) from error


def _joined(base: str, prefix: str) -> str:
    return f"{base}/{prefix}" if prefix else base


_memory_stores: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()


def memory_store(name: str) -> MemoryStore:
    """The store behind ``memory://name``: the same one for the same name as long as this process lives."""
    with _memory_lock:
        return _memory_stores.setdefault(name, MemoryStore())
