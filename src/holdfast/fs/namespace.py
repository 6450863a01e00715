"""Implement fsspec's filesystem interface over namespaces, without a server."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from datetime import datetime, timezone
from glob import has_magic
from typing import Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.spec import AbstractFileSystem

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.fs.arguments import (
    FileRange,
    as_path_list,
    explain_unexpanded_pattern,
    list_tree_infos,
    make_placeholder_directory_info,
    parse_moves,
    read_ranges,
    read_slice,
    refuse_pattern_names,
    split_namespace_path,
    status_to_info,
)
from holdfast.fs.files import (
    NamespaceTransaction,
    ReadingNamespaceFile,
    WritingNamespaceFile,
    open_append,
    open_binary_or_text,
)
from holdfast.fs.opening import FileSystemOptions, SharedNamespace, forget_lost_namespace, get_shared_namespace
from holdfast.namespace import Namespace
from holdfast.namespace.catalog import SCHEME, read_catalog
from holdfast.namespace.errors import (
    FeatureUnsupportedError,
    InvalidPathError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
    PathNotFoundError,
)
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import FILE_MODE
from holdfast.namespace.paths import NsPath
from holdfast.runtime import Environment


class NamespaceFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """An fsspec filesystem for ``holdfast://name/path``. To fsspec, a path begins with the name of its namespace.

    Guarantee: a file appears as a whole when it is closed; a reader sees it as it was when the reader opened it. A
    rename and a recursive deletion take one step, however large the tree. Listings are never cached. Errors are also
    the built-in ones that Python programs expect, such as `FileNotFoundError`.

    A filesystem may be used by several threads, and after a fork. A pickled one contains its options, including
    passwords, so that Dask and Spark can send it to their workers; `repr` and `to_json` never show them.

    Args:
        database: URL of the database, such as ``sqlite:///directory/ns.db``; None for what the catalog or the
            environment knows under the name of the namespace.
        user, groups: who calls; None for the user of this process, and the groups of that user.
        endpoint, access_key, …: how to reach the object store: the options of stores, in snake case.

    Raises:
        InvalidRequestError: an option is unknown; the message suggests the nearest one.
    """

    protocol = SCHEME
    root_marker = ""
    transaction_type = NamespaceTransaction

    def __init__(
        self,
        *,
        database: str | None = None,
        user: str | None = None,
        groups: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self._options = FileSystemOptions.parse(database, user, groups, options)
        super().__init__(**self._options.of_fsspec)
        self._environment = Environment()
        self._held: dict[str, SharedNamespace] = {}
        self._is_bound = False

    @classmethod
    def over(cls, namespace: Namespace) -> NamespaceFileSystem:
        """Return a filesystem that serves only the given open namespace, which the caller closes. It cannot be
        pickled.
        """
        filesystem: NamespaceFileSystem = cls(skip_instance_cache=True)
        filesystem._held = {namespace.configuration.name: SharedNamespace(namespace, close=False)}
        filesystem._is_bound = True
        filesystem._fs_token_ = f"{id(filesystem):x}"  # fsspec compares tokens: this one equals only itself
        return filesystem

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return the path as fsspec writes it. Slashes that follow each other count as one, as in HDFS."""
        stripped = super()._strip_protocol(path)
        if isinstance(stripped, list):
            return stripped
        return re.sub("//+", "/", stripped)

    # --- identity -----------------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        shown = {"over": ", ".join(self._held)} if self._is_bound else self._options.shown()
        return f"NamespaceFileSystem({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __reduce__(self) -> Any:
        if self._is_bound:
            raise UnsupportedError("a filesystem over an open namespace cannot be pickled: create it there")
        return super().__reduce__()

    def to_dict(self, **_options: Any) -> dict[str, Any]:
        """Return the dictionary for `from_dict`, without credentials: the reader's environment has to supply them."""
        cls = type(self)
        public = self._options.public(self.storage_options)
        return {"cls": f"{cls.__module__}:{cls.__name__}", "protocol": SCHEME, "args": (), **public}

    def to_json(self, **_options: Any) -> str:
        """Return the JSON for `from_json`, without credentials, like `to_dict`."""
        return json.dumps(self.to_dict())

    # --- places -------------------------------------------------------------------------------------------------------
    def namespace(self, path: str) -> tuple[Namespace, str]:
        """Return the open `Namespace` of a path, and the path in it, for calls that fsspec lacks.

        Raises:
            InvalidRequestError: the path names no namespace, or not the one in the database of this filesystem.
            NotFoundError: neither the catalog nor the environment has a namespace of this name.
        """
        _, namespace, inner = self._locate(path)
        return namespace, inner

    def _locate(self, path: str) -> tuple[str, Namespace, str]:
        name, inner = split_namespace_path(self._strip_protocol(path))
        held = self._held.get(name)
        if held is None:
            if self._is_bound:
                raise InvalidRequestError("this filesystem serves only one namespace: create another", name=name)
            held = self._held.setdefault(name, get_shared_namespace(self._options.address(name)))
        return name, held.namespace, inner

    def _locate_for_reading(self, path: str) -> tuple[str, Namespace, str]:
        """Locate what a call reads. Nothing can be at an impossible path: fsspec's users expect that it is missing."""
        name, namespace, inner = self._locate(path)
        try:
            NsPath.parse(inner)
        except InvalidPathError as error:
            raise PathNotFoundError(error.message, **error.variables) from error
        return name, namespace, inner

    def _list_namespace_names(self) -> list[str]:
        """Return the names of the namespaces that this filesystem can find without being told a name."""
        if self._is_bound:
            return list(self._held)
        if self._options.database is None:
            return sorted(read_catalog())
        return [get_shared_namespace(self._options.only_address(self._options.database)).namespace.configuration.name]

    def invalidate_cache(self, path: str | None = None) -> None:
        """Drop open namespaces whose database was replaced or has lost them, so that the next call reopens them.

        There is no other cache. Files that are still open cannot be published.
        """
        for name, held in [] if self._is_bound else list(self._held.items()):
            if forget_lost_namespace(held):
                self._held.pop(name, None)

    # --- listing ------------------------------------------------------------------------------------------------------
    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """Return a dictionary that describes the file or directory at `path`: ``type``, ``size``, ``mtime``, ``mode``,
        ``owner`` and others.

        The mode is that of `os.stat`, with the bits of the type: `stat.S_IMODE` returns the permissions alone.

        Raises:
            FileNotFoundError: nothing is at `path`.
        """
        if not self._strip_protocol(path):
            return make_placeholder_directory_info("")
        name, namespace, inner = self._locate_for_reading(path)
        return status_to_info(name, namespace.status(inner))

    def exists(self, path: str, **_options: Any) -> bool:
        """Return whether a file or a directory is at `path`.

        Raises:
            HoldfastError: the answer is unknown, because the database cannot be reached or a permission is missing.
        """
        return self._find_type(path) is not None

    def isdir(self, path: str) -> bool:
        """Return whether `path` is a directory."""
        return self._find_type(path) == "directory"

    def isfile(self, path: str) -> bool:
        """Return whether `path` is a file."""
        return self._find_type(path) == "file"

    def _find_type(self, path: str) -> str | None:
        try:
            return str(self.info(path)["type"])
        except PathNotFoundError:
            return None

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        """List a directory in the order of the names: info dictionaries, or only paths without `detail`; of a file, the
        file itself.

        Guarantee: each batch of a thousand entries is a consistent snapshot.

        Raises:
            FileNotFoundError: nothing is at `path`.
        """
        if not self._strip_protocol(path):
            entries = [make_placeholder_directory_info(name) for name in self._list_namespace_names()]
        else:
            name, namespace, inner = self._locate_for_reading(path)
            entries = [status_to_info(name, status) for status in namespace.list(inner)]
        return entries if detail else [entry["name"] for entry in entries]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_options: Any
    ) -> Any:
        """Return the paths of all files below `path`, sorted; with `detail`, their info dictionaries by path.

        Guarantee: without `maxdepth`, the result is a consistent snapshot.

        Raises:
            PermissionError: a directory may not be listed: the result would be incomplete.
        """
        root = self._strip_protocol(path)
        found = self._find_whole_tree(root) if root and maxdepth is None else list_tree_infos(root, self.ls, maxdepth)
        if not withdirs:
            found = {name: entry for name, entry in found.items() if entry["type"] != "directory"}
        elif root and self.isdir(root):
            found[root] = self.info(root)  # as the command find does
        return dict(sorted(found.items())) if detail else sorted(found)

    def _find_whole_tree(self, root: str) -> dict[str, dict[str, Any]]:
        name, namespace, inner = self._locate(root)
        try:
            top = self.info(root)
            if top["type"] == "file":
                return {root: top}
            return {(entry := status_to_info(name, status))["name"]: entry for status in namespace.walk(inner)}
        except (PathNotFoundError, ParentNotDirectoryError):
            return {}

    def du(
        self, path: str, total: bool = True, maxdepth: int | None = None, withdirs: bool = False, **_options: Any
    ) -> Any:
        """Return the size in bytes of all files below `path`; without `total`, a dictionary of the size of each."""
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True)
        sizes = {name: entry["size"] for name, entry in found.items()}
        return sum(sizes.values()) if total else sizes

    def expand_path(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
        **_options: Any,
    ) -> list[str]:
        """Return the paths that match the given paths and patterns, sorted. A path that exists is never taken for a
        pattern.
        """
        if maxdepth is not None and maxdepth < 1:
            raise InvalidRequestError("the depth must be at least 1: leave maxdepth out for all", maxdepth=maxdepth)
        found: set[str] = set()
        for one in map(self._strip_protocol, as_path_list(path)):
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

    # --- attributes ---------------------------------------------------------------------------------------------------
    def modified(self, path: str) -> datetime:
        """Return when a file, or the entries of a directory, last changed, in UTC."""
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    def created(self, path: str) -> datetime:
        """Raise `FeatureUnsupportedError`: like HDFS, the namespace keeps no creation times."""
        raise FeatureUnsupportedError("the namespace keeps no creation times: use modified", path=path)

    def ukey(self, path: str) -> str:
        """Return a text that changes whenever the content of a file does, and survives a rename."""
        try:
            identity = repr([(one.blob, one.length) for one in self._open_reader(path).inode.extents])
        except PathIsDirectoryError:
            identity = repr(self.info(path))
        return hashlib.sha256(identity.encode()).hexdigest()

    def checksum(self, path: str) -> int:
        """Return an integer that identifies the content of a file: it changes whenever the content does."""
        return int(self.ukey(path), 16)

    def set_permission(self, path: str, mode: int) -> None:
        """Change the permission bits of a file or directory, such as ``0o640``; only the owner and the superuser may.

        Like `os.chmod`, this ignores the type of a file: the ``mode`` that `info` returns can be given back.
        """
        namespace, inner = self.namespace(path)
        namespace.set_permission(inner, stat.S_IMODE(mode))

    def set_owner(self, path: str, owner: str | None = None, group: str | None = None) -> None:
        """Change the owner (only the superuser may) or the group (to one of the owner's) of a file or directory."""
        namespace, inner = self.namespace(path)
        namespace.set_owner(inner, owner, group)

    def set_times(self, path: str, mtime_s: float | None = None, atime_s: float | None = None) -> None:
        """Change modification and access time of a file or directory, seconds since the epoch; None leaves a time as it
        is.
        """
        namespace, inner = self.namespace(path)
        mtime_ms, atime_ms = (None if time_s is None else int(time_s * 1000) for time_s in (mtime_s, atime_s))
        namespace.set_times(inner, mtime_ms, atime_ms)

    # --- reading ------------------------------------------------------------------------------------------------------
    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_options: Any) -> bytes:
        """Return the bytes of a file, from `start` to `end`, which have the meaning of a Python slice."""
        return read_slice(self._open_reader(path), start, end)

    def _open_reader(self, path: str) -> FileReader:
        _, namespace, inner = self._locate_for_reading(path)
        return namespace.open(inner)

    def cat_ranges(
        self, paths: Any, starts: Any, ends: Any, max_gap: int | None = None, on_error: str = "return", **_options: Any
    ) -> list[Any]:
        """Return the bytes of ranges of files, read several at a time. All ranges of one file are from the same version
        of it.
        """
        if max_gap is not None:
            raise FeatureUnsupportedError("ranges are read as they are given: leave max_gap out", max_gap=max_gap)
        if not isinstance(paths, list):
            raise TypeError("paths must be a list")
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("there must be as many starts and ends as paths")
        ranges = [FileRange(*one) for one in zip(paths, starts, ends, strict=True)]
        return read_ranges(self._open_reader, ranges, self._environment.runner, keep_errors=on_error == "return")

    # --- opening ------------------------------------------------------------------------------------------------------
    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """Open a file in mode ``r``, ``w``, ``x`` or ``a``, binary or text; see fsspec for the options.

        ``w`` replaces a file when it is closed. ``x`` refuses a file that exists now, and one that exists when it is
        closed. ``a`` takes the lease of the file, so there is one writer at a time; it creates a missing file at once.
        The option `permission` is the mode of a new file, such as ``0o640``.

        Raises:
            FileNotFoundError, FileExistsError, IsADirectoryError, PermissionError: as Python's `open`.
            BeingWrittenError: another writer appends to the file.
        """
        return open_binary_or_text(super().open, path, mode, options)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> ReadingNamespaceFile | WritingNamespaceFile:
        name, namespace, inner = self._locate(path)
        if mode == "rb":
            reader = self._open_reader(path)
            details = status_to_info(name, reader.status(inner))
            caching = {**options, "block_size": block_size or "default", "cache_options": cache_options}
            return ReadingNamespaceFile(self, path, reader, details, **caching)
        permission = options.get("permission", FILE_MODE)
        if mode == "ab":
            writer = open_append(namespace, inner, permission, waits=not autocommit)
        elif mode in ("wb", "xb"):
            writer = namespace.create(inner, overwrite=mode == "wb", mode=permission)
        else:
            raise FeatureUnsupportedError("a file is opened to read (r), write (w, x) or append (a)", mode=mode)
        prepare = None if autocommit else self.transaction.prepare if self._intrans else FileWriter.prepare
        return WritingNamespaceFile(self, path, mode, namespace, writer, prepare)

    def start_transaction(self) -> NamespaceTransaction:
        """Begin a transaction that ends with `end_transaction`; ``with fs.transaction`` does both.

        Raises:
            InvalidRequestError: a transaction is open already; it goes on.
        """
        transaction: NamespaceTransaction = self.transaction
        transaction.start()
        return transaction

    # --- writing ------------------------------------------------------------------------------------------------------
    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **options: Any) -> None:
        """Write a whole file, in one transaction; ``mode="create"`` refuses one that exists."""
        with self.open(path, _parse_write_mode(mode), **options) as file:
            file.write(value)

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **options: Any
    ) -> None:
        """Copy a local file, which appears as a whole; ``mode="create"`` refuses one that exists."""
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        with open(lpath, "rb") as source, self.open(rpath, _parse_write_mode(mode), **options) as target:
            callback.set_size(os.fstat(source.fileno()).st_size)
            while data := source.read(self.blocksize):
                callback.relative_update(target.write(data))

    def get(self, rpath: Any, lpath: Any, *args: Any, **options: Any) -> None:
        """Copy files to this machine, one after the other. Refuses a name that looks like a pattern: see `copy`."""
        refuse_pattern_names(rpath, lpath, self.exists)
        super().get(rpath, lpath, *args, **options)

    def put(self, lpath: Any, rpath: Any, *args: Any, **options: Any) -> None:
        """Copy local files, one after the other. Refuses a name that looks like a pattern: see `copy`."""
        refuse_pattern_names(lpath, rpath, os.path.exists, in_lists=True)
        super().put(os.fspath(lpath) if isinstance(lpath, os.PathLike) else lpath, rpath, *args, **options)

    def copy(self, path1: Any, path2: Any, *args: Any, **options: Any) -> None:
        """Copy files, one after the other.

        Raises:
            FeatureUnsupportedError: a file or directory has a name that fsspec would take for a pattern. Give a list of
                sources and a list of targets: those are names.
        """
        refuse_pattern_names(path1, path2, self.exists)
        super().copy(path1, path2, *args, **options)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copy a file, even to another namespace; the copy appears as a whole. A directory is only made, not filled."""
        try:
            reader = self._open_reader(path1)
        except PathIsDirectoryError:
            self.makedirs(path2, exist_ok=True)
            return
        with self.open(path2, "wb", **options) as target:
            for data in reader.chunks():
                target.write(data)

    def touch(self, path: str, truncate: bool = True, **options: Any) -> None:
        """Replace a file by an empty one; without `truncate`, create it if it is missing, or set its time to now."""
        if not truncate:
            namespace, inner = self.namespace(path)
            if namespace.exists(inner):
                namespace.set_times(inner, mtime_ms=int(self._environment.clock.now_s() * 1000))
                return
        with self.open(path, "wb" if truncate else "xb", **options):
            pass

    # --- directories --------------------------------------------------------------------------------------------------
    def mkdir(self, path: str, create_parents: bool = True, **_options: Any) -> None:
        """Make a directory.

        Raises:
            FileExistsError: the path exists.
            FileNotFoundError: the parent is missing, and `create_parents` is False.
        """
        namespace, inner = self.namespace(path)
        if not namespace.mkdirs(inner, parents=create_parents):
            raise PathExistsError("the directory exists already: choose another path", path=path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, and the missing ones above it.

        Raises:
            FileExistsError: a file has the path; or a directory, without `exist_ok`.
        """
        namespace, inner = self.namespace(path)
        if not namespace.mkdirs(inner) and not exist_ok:
            raise PathExistsError("the directory exists already: choose another path", path=path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory.

        Raises:
            FileNotFoundError, NotADirectoryError: see the message.
            OSError: the directory is not empty.
            InvalidRequestError: the path is the root of a namespace.
        """
        namespace, inner = self.namespace(path)
        if not namespace.status(inner).is_directory:
            raise ParentNotDirectoryError("the path is a file, not a directory: use rm_file", path=path)
        if inner == "/":  # HDFS, and so the namespace, would silently do nothing
            raise InvalidRequestError("the root of a namespace cannot be removed: use rm to empty it", path=path)
        namespace.delete(inner)

    # --- removing and moving ------------------------------------------------------------------------------------------
    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Delete files, or directories with everything below them: each in one step, however large.

        The root of a namespace stays: each of its entries is deleted in a step of its own. If that fails, or the
        process dies, some of them are left: repeat the call.

        Args:
            path: a path, or a list of paths, such as ``fs.glob("lake/*.csv")``: names, never patterns.

        Raises:
            FileNotFoundError: nothing is at a path. Nothing was deleted.
            IsADirectoryError: the path is a directory, and `recursive` is not set. Nothing was deleted.
            InvalidRequestError: a path names no namespace. Nothing was deleted.
        """
        if maxdepth is not None:
            raise FeatureUnsupportedError("a tree is deleted as a whole: leave maxdepth out", maxdepth=maxdepth)
        paths = sorted({self._strip_protocol(one) for one in as_path_list(path)})
        for one in paths:
            with explain_unexpanded_pattern(one):
                is_directory = self.info(one)["type"] == "directory"
            if is_directory and not recursive:
                raise PathIsDirectoryError("the path is a directory: delete it with recursive=True", path=one)
        for namespace, inner in [self.namespace(one) for one in paths]:
            for target in (entry.path for entry in namespace.list("/")) if inner == "/" else (inner,):
                namespace.delete(target, recursive=recursive)

    def rm_file(self, path: str) -> None:
        """Delete a file.

        Raises:
            FileNotFoundError, IsADirectoryError: see the message.
        """
        namespace, inner = self.namespace(path)
        if namespace.status(inner).is_directory:
            raise PathIsDirectoryError("the path is a directory, not a file: use rm", path=path)
        if not namespace.delete(inner):
            raise PathNotFoundError("the file does not exist anymore: check the path", path=path)

    def mv(self, path1: Any, path2: Any, recursive: bool = False, maxdepth: int | None = None, **_options: Any) -> None:
        """Move files and directories: each in one step, however large, replacing a file or an empty directory there.

        If `path2` is a directory, or ends in a slash, `path1` moves into it; if `path1` ends in a slash, it replaces
        `path2`. The paths of a list, such as ``fs.glob("lake/*.csv")``, always move into `path2`; a list of targets
        names each target itself. All of them are names, never patterns.

        Args:
            recursive: makes no difference: a directory moves with everything below it.

        Raises:
            FileNotFoundError: the source, or the parent of the target, does not exist.
            FileExistsError, IsADirectoryError, OSError: something is in the way: see the message.
            FeatureUnsupportedError: the paths are in different namespaces.
        """
        if maxdepth is not None:
            raise FeatureUnsupportedError("a tree moves as a whole: leave maxdepth out", maxdepth=maxdepth)
        for move in parse_moves(path1, path2):
            name, namespace, source = self._locate(move.source)
            other, _, target = self._locate(move.target)
            if name != other:
                raise FeatureUnsupportedError(
                    "nothing moves between namespaces in one step: copy it, then delete it", source=name, target=other
                )
            if source != target:
                with explain_unexpanded_pattern(move.source):
                    namespace.rename(source, target, overwrite=True, into=move.into)


def _parse_write_mode(mode: str) -> str:
    if mode not in ("overwrite", "create"):
        raise InvalidRequestError("the mode is 'overwrite' or 'create': change it", mode=mode)
    return "xb" if mode == "create" else "wb"
