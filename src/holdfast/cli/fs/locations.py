"""Turn the arguments of a copy into sources and a target."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from holdfast.cli.fs.items import find_items, find_spot, is_namespace_url
from holdfast.cli.fs.places.base import Place
from holdfast.cli.fs.places.local import STDIN, LocalPlace
from holdfast.cli.fs.places.namespace import NamespacePlace
from holdfast.cli.fs.places.store import StorePlace
from holdfast.cli.fs.plan import Source, Target
from holdfast.cli.session import Session
from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.runtime import SystemIds
from holdfast.stores.registry import scheme_of
from holdfast.stores.url import locate


class Locations:
    """The places that one copy uses. The object stores among them are closed at its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stack = ExitStack()
        self._local = LocalPlace(SystemIds())

    def local_sources(self, paths: Sequence[str]) -> list[Source]:
        """Return what local paths name; ``-`` is standard input.

        Raises:
            PathNotFoundError: a path does not exist.
        """
        return [self._source(self._local, path) for path in dict.fromkeys(paths)]

    def namespace_sources(self, urls: Sequence[str], *, glob: bool) -> list[Source]:
        """Return what URLs, or patterns, name in namespaces; raises what `find_items` raises."""
        return [
            self._source(NamespacePlace(item.namespace, item.base), item.status.path)
            for item in find_items(self._session, urls, glob=glob)
        ]

    def any_sources(self, texts: Sequence[str], *, glob: bool) -> list[Source]:
        """Return what URLs of any kind, and local paths, name; with `glob`, those of namespaces are patterns."""
        found: list[Source] = []
        for text in dict.fromkeys(texts):
            if is_namespace_url(text):
                found += self.namespace_sources([text], glob=glob)
            elif (path := local_path(text)) is not None:
                found += self.local_sources([path])
            else:
                store = self._store(text)
                found.append(self._source(store, store.path))
        return found

    def _source(self, place: Place, path: str) -> Source:
        entry = place.find(path)
        if entry is None:
            raise PathNotFoundError("the source does not exist: check it", path=place.url(path))
        return Source(place, entry)

    def namespace_target(self, url: str, *, overwrite: bool) -> Target:
        """Return the target that a URL names in a namespace; raises what `find_spot` raises."""
        spot = find_spot(self._session, url)
        return Target(NamespacePlace(spot.namespace, spot.base), spot.path, spot.in_directory, overwrite)

    def local_target(self, path: str, *, overwrite: bool) -> Target:
        """Return the target that a local path names."""
        return Target(self._local, path, path.endswith("/"), overwrite)

    def any_target(self, text: str, *, overwrite: bool) -> Target:
        """Return the target that a URL of any kind, or a local path, names."""
        if is_namespace_url(text):
            return self.namespace_target(text, overwrite=overwrite)
        path = local_path(text)
        if path is not None:
            return self.local_target(path, overwrite=overwrite)
        store = self._store(text)
        return Target(store, store.path, text.endswith("/"), overwrite)

    def _store(self, url: str) -> StorePlace:
        ctx = self._session.reach.open(url)
        self._stack.callback(ctx.close)
        return StorePlace(ctx)

    def __enter__(self) -> Locations:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()


def local_path(text: str) -> str | None:
    """Return the path that a URL or an argument names on this machine; None if it names another store.

    Raises:
        InvalidRequestError: it is neither a path nor a URL.
    """
    if text == STDIN:
        raise InvalidRequestError("standard input and output belong to fs put and fs get: use one of them")
    scheme = scheme_of(text)
    if scheme not in ("", "file"):
        return None
    locate(text)  # refuses hosts, and urls that have lost a slash
    if scheme:
        return "/" + text[len("file://") :].partition("/")[2]
    return text[len("file:") :] if text.lower().startswith("file:") else text
