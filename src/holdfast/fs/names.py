"""Decide what paths mean to fsspec's calls: which are names, and which are patterns.

fsspec takes every path that contains one of ``*?[`` for a pattern. Here, a path that exists is a name; and what removes
or moves takes names only, so a call that is repeated can never reach a file that nobody named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import has_magic
from typing import Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.implementations.local import LocalFileSystem, make_path_posix
from fsspec.spec import AbstractFileSystem
from fsspec.utils import other_paths

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import BUILT_IN, installed_providers, parse_store_options
from holdfast.wording import nearest


class NamingFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A filesystem whose `cat`, `copy`, `get` and `put` take a path for a pattern only if nothing has that path."""

    def names(self, path: Any) -> list[str]:
        """Return a path, or the paths of a list, as names: sorted, none twice."""
        return sorted({self._strip_protocol(one) for one in _listed(path)})

    def expand_path(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
        **_options: Any,
    ) -> list[str]:
        """Return the paths that patterns match. A path that exists is never taken for a pattern."""
        if maxdepth is not None and maxdepth < 1:
            raise InvalidRequestError("the depth must be at least 1: leave maxdepth out for all", maxdepth=maxdepth)
        found: set[str] = set()
        for one in map(self._strip_protocol, _listed(path)):
            starts, depth = [one], maxdepth
            if not assume_literal and has_magic(one) and not self.exists(one):
                starts, depth = self.glob(one, maxdepth=maxdepth), None if maxdepth is None else maxdepth - 1
                found.update(starts)
            if not recursive:
                found.update(starts)
            elif depth is None or depth > 0:
                found.update(name for start in starts for name in self.find(start, maxdepth=depth, withdirs=True))
        if not found:
            raise PathNotFoundError("nothing has such a path: check it", path=str(path))
        return sorted(found)

    def get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Copy files to this machine, one after the other. A path that exists is never taken for a pattern."""
        local = make_path_posix(lpath) if isinstance(lpath, str | os.PathLike) else lpath
        copies = _Copies(self.exists, self.isdir, self.expand_path, os.path.isdir)
        rpath, lpath = copies.of(rpath, local, recursive, maxdepth)
        super().get(rpath, lpath, recursive, callback, maxdepth, **options)

    def put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Copy local files, one after the other. A path that exists is never taken for a pattern."""
        local = make_path_posix(lpath) if isinstance(lpath, str | os.PathLike) else lpath
        copies = _Copies(os.path.exists, os.path.isdir, _expand_local, self.isdir)
        lpath, rpath = copies.of(local, rpath, recursive, maxdepth)
        super().put(lpath, rpath, recursive, callback, maxdepth, **options)

    def copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **options: Any,
    ) -> None:
        """Copy files, one after the other. A path that exists is never taken for a pattern.

        Args:
            on_error: ``ignore`` skips files that disappear meanwhile: the default if `recursive`; or ``raise``.
        """
        on_error = on_error or ("ignore" if recursive else "raise")
        copies = _Copies(self.exists, self.isdir, self.expand_path, self.isdir)
        path1, path2 = copies.of(path1, path2, recursive, maxdepth)
        super().copy(path1, path2, recursive, maxdepth, on_error, **options)

    def mv(self, path1: Any, path2: Any, recursive: bool = False, maxdepth: int | None = None, **options: Any) -> None:
        """Copy files, then delete them where they were: names, or lists of names, never patterns."""
        if path1 == path2:
            return
        for one in self.names(path1):
            with named(one):
                self.info(one)
        copies = _Copies(lambda _path: True, self.isdir, partial(self.expand_path, assume_literal=True), self.isdir)
        sources, targets = copies.of(path1, path2, recursive, maxdepth)
        super().copy(sources, targets, recursive, maxdepth, "raise", **options)
        self.rm(path1, recursive)


@contextmanager
def named(path: str) -> Iterator[None]:
    """Say how to name what a pattern matches, if something that looks like one is missing."""
    try:
        yield
    except FileNotFoundError as error:
        if not has_magic(path):
            raise
        message = "nothing has this name, and only names are removed and moved: pass fs.glob(…) if it is a pattern"
        raise PathNotFoundError(message, path=path) from error


def _listed(path: Any) -> Sequence[Any]:
    return [path] if isinstance(path, str | os.PathLike) else path


def _expand_local(path: Any, recursive: bool, maxdepth: int | None) -> list[str]:
    local = LocalFileSystem()
    return sorted(
        name
        for one in map(make_path_posix, _listed(path))
        for name in local.expand_path([one], recursive, maxdepth, assume_literal=os.path.exists(one))
    )


@dataclass(frozen=True, slots=True)
class _Copies:
    """Finds the source and the target of each copy where fsspec would take a name for a pattern.

    Attributes:
        expand: returns the paths that a path, a pattern or a list means; with True, also what is below them, down to a
            depth.
        is_directory: whether a target is a directory.
    """

    exists: Callable[[str], bool]
    isdir: Callable[[str], bool]
    expand: Callable[[Any, bool, int | None], list[str]]
    is_directory: Callable[[str], bool]

    def of(self, source: Any, target: Any, recursive: bool, maxdepth: int | None) -> tuple[Any, Any]:
        """Return source and target, as lists, which fsspec takes literally, if a name looks like a pattern."""
        odd = any(has_magic(one) and self.exists(one) for one in map(os.fspath, _listed(source)))
        if not odd or not isinstance(target, str):
            return source, target
        found = self.expand(source, recursive, maxdepth)
        is_list = not isinstance(source, str)
        if not is_list and (not recursive or maxdepth is not None):
            found = [one for one in found if not self.isdir(one)]
        if any(".." in one.split("/") for one in found):
            raise InvalidRequestError("a name contains .., which leads out of the target: copy by lists", target=target)
        into = not is_list and (target.endswith("/") or self.is_directory(target)) and not source.endswith("/")
        return found, other_paths(found, target, exists=into, flatten=is_list) if found else []


# --- keywords ---------------------------------------------------------------------------------------------------------
OF_FSSPEC = ("asynchronous", "loop", "batch_size", "use_listings_cache", "listings_expiry_time", "max_paths")
"""Keywords that fsspec's own base class takes."""


def parse_keywords(
    given: Mapping[str, Any], others: Collection[str]
) -> tuple[tuple[StoreOptions, ...], frozenset[str]]:
    """Parse the keywords into options for each type of store; also return the keywords whose values are secret.

    Args:
        others: the keywords that the filesystem takes for itself; an unknown keyword may be a misspelled one of them.

    Raises:
        InvalidRequestError: an option is unknown or invalid.
    """
    providers = BUILT_IN
    if not given.keys() <= {spec.keyword for provider in providers for spec in provider.specs}:
        providers = installed_providers()
    specs = {spec.keyword: spec for provider in providers for spec in provider.specs}
    for name in given:
        if name not in specs:
            raise InvalidRequestError(f"unknown option: {nearest(name, (*specs, *others))}", option=name)
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return parse_store_options(texts, providers), frozenset(name for name, spec in specs.items() if spec.secret)
