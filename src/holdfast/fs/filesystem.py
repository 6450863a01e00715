"""Implement an fsspec filesystem in which a file below a magic path is a pending upload to its final path.

With this filesystem, programs that know nothing about commits can write through the committer `magic`. Give such a
program the directory of a running task attempt (``task.work_path``): the files that it writes below this directory
become visible when the job commits, or never (paper 000, VI.A).

All other paths behave as in an ordinary object store: a path is a key, and a directory is a common prefix of keys.

A canonical path has no ``://``, because some users of fsspec split and join paths at every slash::

    s3://bucket/a/b, s3a://…, s3n://…    bucket/a/b
    memory://name/a/b                    memory:name/a/b
    file:///data/a                       file:/data/a
    other://name/a/b                     other:name/a/b, for the store of another package

Each of these paths may start with ``holdfast-magic://``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from fsspec.utils import stringify_path

from holdfast.commit.context import CommitContext, CommitSettings, Measure
from holdfast.commit.hadoop.completion import abort_all
from holdfast.commit.hadoop.magic.files import load_pending, open_magic_file
from holdfast.commit.hadoop.pending import MAGIC_JOB_PREFIX, is_magic, is_pending, is_pendingset, pending_path
from holdfast.commit.ids import JobId
from holdfast.commit.sinks import PartBudget
from holdfast.errors import InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.fs.files import PlainSink, ReadingFile, WritingFile, open_layers
from holdfast.fs.names import OF_FSSPEC, NamingFileSystem, named, parse_keywords
from holdfast.stores.base import ObjectInfo, ObjectStore, batched_keys, iter_objects
from holdfast.stores.registry import find_provider
from holdfast.stores.url import open_destination

# --- paths ------------------------------------------------------------------------------------------------------------
PROTOCOL = "holdfast-magic"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_FILE = "file:/"
_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class Location:
    """The store and the key that a path names.

    Attributes:
        root: the canonical path of the store.
        key: the key in the store; empty for the whole store.
    """

    root: str
    key: str

    @property
    def url(self) -> str:
        """The url of the store."""
        if self.root == _FILE:
            return "file:///"
        scheme, colon, rest = self.root.partition(":")
        return f"{scheme}://{rest}" if colon else f"s3://{self.root}"

    def path(self, key: str) -> str:
        """Return the canonical path of another key in the same store."""
        if not key:
            return self.root
        return f"{self.root}{key}" if self.root == _FILE else f"{self.root}/{key}"


def canonical(path: str) -> str:
    """Return the canonical form of a path or url; percent signs and spaces are taken literally.

    Raises:
        InvalidRequestError: no store has the url's scheme, or the path contains credentials, which the message does not
            repeat.
    """
    path = path.removeprefix(f"{PROTOCOL}://")
    found = _URL.fullmatch(path)
    if found is not None:
        scheme, rest = found[1].lower(), found[2]
        if scheme in ("s3", "s3a", "s3n"):
            path = rest
        elif scheme == "memory":
            path = f"{_MEMORY}{rest}"
        elif scheme == "file":
            path = f"{_FILE}{rest.lstrip('/')}"
        else:
            path = f"{find_provider(scheme).schemes[0]}:{rest}"
    if path.startswith(_FILE):
        return _FILE + path.removeprefix(_FILE).strip("/")
    if "@" in path.partition("/")[0]:
        raise InvalidRequestError(
            "credentials do not belong in a path, where logs would show them: give them as options"
        )
    return path.strip("/")


def locate(path: str) -> Location:
    """Return the store and the key of a canonical path.

    Raises:
        InvalidRequestError: the path names no store.
    """
    if path.startswith(_FILE):
        return Location(_FILE, path.removeprefix(_FILE))
    scheme, colon, rest = path.partition(":")
    if colon and "/" not in scheme and scheme not in ("memory", "file"):
        found = find_provider(scheme).locate(rest)
        return Location(f"{scheme}:{found.root}", found.prefix)
    root, _, key = path.partition("/")
    if root in ("", _MEMORY, "file:"):
        raise InvalidRequestError("the path names no bucket: write bucket/key, or a url", path=path)
    return Location(root, key)


def split_magic(key: str) -> tuple[str, str] | None:
    """Split a key in a magic directory into destination prefix and relative path; return None for any other key."""
    if not is_magic(key):
        return None
    segments = key.split("/")
    magic = next(index for index, segment in enumerate(segments) if is_magic(segment))
    return "".join(f"{segment}/" for segment in segments[:magic]), "/".join(segments[magic:])


# --- the filesystem ---------------------------------------------------------------------------------------------------
class MagicFileSystem(NamingFileSystem):
    """The stores of ``s3://``, ``file://`` and ``memory://`` urls, with magic paths.

    Guarantee: a file that was closed below a magic path is pending: it is invisible at its final path, and appears as
    an empty file at the magic path, as in Hadoop. Deleting this empty file aborts the upload. A file at any other path
    becomes visible, as a whole, when it is closed. A file whose ``with`` block ends with an error is discarded. But
    ``fsspec.open`` and pyarrow close their files even after an error; such a file is dropped only if its task fails.

    `repr` and `to_json` never show credentials. A pickled filesystem contains them, so that Spark and Dask can send it
    to their workers. Listings are not cached.

    Args:
        endpoint: endpoint of an S3 server other than AWS, as ``http://host:port``.
        region: S3 region; None for boto3's default.
        ca_bundle: path of the CA certificates to verify the server with; None for AWS_CA_BUNDLE or boto3's default.
        access_key, secret_key, session_token: credentials; None for boto3's credential chain.
        path_style: whether the bucket's name is part of the path; None for boto3's default.
        part_size_bytes: size of an upload's parts, and of a file's buffer in memory.

    Raises:
        InvalidRequestError: an option is unknown; the message suggests the nearest one.
    """

    protocol = PROTOCOL
    root_marker = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{name: options[name] for name in OF_FSSPEC if name in options})
        default = CommitSettings()
        part_size_bytes = options.get("part_size_bytes") or default.part_size_bytes
        self._settings = replace(default, part_size_bytes=part_size_bytes)
        of_stores = {name: value for name, value in options.items() if name not in (*OF_FSSPEC, "part_size_bytes")}
        self._store_options, self._secrets = parse_keywords(of_stores, ("part_size_bytes",))
        self._contexts: dict[str, CommitContext] = {}
        self._bound = ""

    @classmethod
    def over(cls, ctx: CommitContext) -> MagicFileSystem:
        """Return a filesystem for only the store of an open context, with that context's clock, ids and settings.

        The filesystem cannot be pickled. The caller closes the context.
        """
        filesystem: MagicFileSystem = cls(skip_instance_cache=True)
        filesystem._bound = locate(canonical(ctx.url)).root
        filesystem._contexts = {filesystem._bound: replace(ctx, prefix="", url=locate(canonical(ctx.url)).url)}
        filesystem._fs_token_ = f"{id(filesystem):x}"  # fsspec compares tokens: this one equals only itself
        return filesystem

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._shown().items())
        return f"MagicFileSystem({shown})"

    def __reduce__(self) -> Any:
        if self._bound:
            raise UnsupportedError("a filesystem over an open store cannot be pickled: create it in the other process")
        return super().__reduce__()

    def to_dict(self, **_options: Any) -> dict[str, Any]:
        """Return the arguments for `from_dict`, without credentials: a process that calls it must have its own."""
        name = f"{type(self).__module__}:{type(self).__name__}"
        return {"cls": name, "protocol": PROTOCOL, "args": [], **self._shown()}

    def _shown(self) -> dict[str, Any]:
        return {name: value for name, value in self.storage_options.items() if name not in self._secrets}

    def to_json(self, **_options: Any) -> str:
        """Return the JSON for `from_json`, without credentials, like `to_dict`."""
        return json.dumps(self.to_dict())

    # --- places -------------------------------------------------------------------------------------------------------
    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return canonical(stringify_path(path))

    def _locate(self, path: str) -> tuple[Location, CommitContext]:
        """Return the location of a path, and a context for its whole store."""
        where = locate(self._strip_protocol(path))
        if where.root not in self._contexts:
            if self._bound:
                raise InvalidRequestError("this filesystem serves only one store: create another", store=where.url)
            store = open_destination(where.url, self._store_options).store
            self._contexts[where.root] = CommitContext(store=store, prefix="", url=where.url, settings=self._settings)
        return where, self._contexts[where.root]

    def _store(self, path: str) -> tuple[Location, ObjectStore]:
        where, ctx = self._locate(path)
        return where, ctx.store

    # --- listing ------------------------------------------------------------------------------------------------------
    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """Describe the file or directory at `path`. Costs one HEAD; for a directory, also a listing of one key.

        Raises:
            FileNotFoundError: nothing is at `path`.
        """
        where, store = self._store(path)
        if where.key:
            try:
                return _entry(where, store.head(where.key))
            except NotFoundError as error:
                below = where.key + "/"
                if not any(found.key.startswith(below) for found in store.list_page(below, max_keys=1).objects):
                    raise FileNotFoundError(where.path(where.key)) from error
        return _directory(where, where.key)

    def exists(self, path: str, **_options: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        """List a directory. Costs a listing of everything below it.

        Raises:
            FileNotFoundError: neither a file nor a directory is at `path`.
        """
        where, _store = self._store(path)
        found = {entry["name"]: entry for entry in self._below(where, depth=1)}
        if not found and where.key:
            entry = self.info(path)
            found = {entry["name"]: entry} if entry["type"] == "file" else {}
        return [found[name] for name in sorted(found)] if detail else sorted(found)

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_options: Any
    ) -> Any:
        """Find every file below `path`, in one pass over the store's listing."""
        if maxdepth is not None and maxdepth < 1:
            raise InvalidRequestError("the depth must be at least 1: leave maxdepth out for all", maxdepth=maxdepth)
        where, _store = self._store(path)
        found = {
            entry["name"]: entry for entry in self._below(where, depth=maxdepth) if withdirs or entry["type"] == "file"
        }
        if not found and where.key and self.exists(path):
            entry = self.info(path)
            found = {entry["name"]: entry} if entry["type"] == "file" else {}
        return dict(sorted(found.items())) if detail else sorted(found)

    def _below(self, where: Location, depth: int | None) -> Iterator[dict[str, Any]]:
        """Yield the entries of files and directories, at most `depth` levels down; directories may occur twice."""
        _where, store = self._store(where.path(where.key))
        prefix = f"{where.key}/" if where.key else ""
        for found in iter_objects(store, prefix, markers=True):
            names = found.key[len(prefix) :].split("/")
            for level in range(1, len(names)):
                if depth is None or level <= depth:
                    yield _directory(where, prefix + "/".join(names[:level]))
            if names[-1] and (depth is None or len(names) <= depth):
                yield _entry(where, found)

    def modified(self, path: str) -> datetime:
        """Return when a file was last written."""
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    # --- reading and writing ------------------------------------------------------------------------------------------
    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_options: Any) -> bytes:
        where, store = self._store(path)
        if (start or 0) < 0 or (end or 0) < 0:
            size_bytes = self.info(path)["size"]
            start = max(0, size_bytes + start) if start is not None and start < 0 else start
            end = max(0, size_bytes + end) if end is not None and end < 0 else end
        length = None if end is None else end - (start or 0)
        if length is not None and length <= 0:
            return b""
        try:
            return store.get(where.key, start or 0, length)
        except NotFoundError as error:
            raise FileNotFoundError(where.path(where.key)) from error

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """Open a file in mode ``r`` or ``w``, binary or text; see fsspec for the options."""
        return open_layers(super().open, path, mode, options)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> ReadingFile | WritingFile:
        where, ctx = self._locate(path)
        if mode == "rb":
            canonical_path = where.path(where.key)
            return ReadingFile(
                self, canonical_path, mode, block_size or "default", True, cache_options=cache_options, **options
            )
        if mode != "wb" or not autocommit:
            raise UnsupportedError(
                "a file can only be written as a whole: open it with 'wb', below a magic path if it must wait for a "
                "commit",
                mode=mode,
            )
        if not where.key:
            raise InvalidRequestError("the path names a bucket, not a file: add a file name", path=path)
        background = ctx.runner.background()
        budget = PartBudget(ctx.settings.part_buffer_bytes)
        magic = split_magic(where.key)
        if magic is None or is_pending(where.key) or is_pendingset(where.key):
            return WritingFile(PlainSink(ctx, where.key, background=background, budget=budget), background)
        prefix, relative = magic
        sink = open_magic_file(Measure(_below_root(ctx, prefix)), relative, background=background, budget=budget)
        records = [pending_path(where.key), where.key]
        return WritingFile(sink, background, lambda: ctx.store.delete_many(records))

    # --- changing -----------------------------------------------------------------------------------------------------
    def cp_file(self, path1: str, path2: str, **_options: Any) -> None:
        """Copy a file, even to another store; the copy becomes visible as a whole. Directories need not be copied."""
        if self.isdir(path1):
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            shutil.copyfileobj(source, target, self._settings.part_size_bytes)

    def mkdir(self, path: str, create_parents: bool = True, **_options: Any) -> None:
        """Do nothing: a directory exists while a file is in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing, like `mkdir`."""

    def rmdir(self, path: str) -> None:
        """Do nothing: a directory without files does not exist."""

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Delete files, or everything below directories. Deleting a magic file aborts its upload.

        Args:
            path: a path, or a list of paths, such as ``fs.glob("bucket/*.csv")``: names, never patterns.

        Raises:
            FileNotFoundError: nothing is at the path. Nothing was deleted.
            IsADirectoryError: the path is a directory, and `recursive` is not set. Nothing was deleted.
        """
        if maxdepth is not None:
            raise UnsupportedError("a directory can only be deleted as a whole: leave maxdepth out", maxdepth=maxdepth)
        kinds = {}
        for one in self.names(path):
            with named(one):
                kinds[one] = self.info(one)["type"]
            if kinds[one] == "directory" and not recursive:
                raise IsADirectoryError(one)
        for one, kind in kinds.items():
            if kind == "file":
                self.rm_file(one)
                continue
            where, ctx = self._locate(one)
            for keys in batched_keys(found.key for found in iter_objects(ctx.store, f"{where.key}/", markers=True)):
                _abort_uploads(ctx, keys)
                ctx.store.delete_many(keys)

    def rm_file(self, path: str) -> None:
        """Delete one file; a missing file is not an error. Deleting a magic file aborts its upload."""
        where, ctx = self._locate(path)
        keys = [where.key]
        if split_magic(where.key) is not None and not is_pending(where.key):
            keys.append(pending_path(where.key))
        _abort_uploads(ctx, keys)
        ctx.store.delete_many(keys)


def _entry(where: Location, found: ObjectInfo) -> dict[str, Any]:
    return {
        "name": where.path(found.key),
        "size": found.size_bytes,
        "type": "file",
        "mtime": found.modified_at_s,
        "etag": found.etag,
        "metadata": dict(found.metadata),
    }


def _directory(where: Location, key: str) -> dict[str, Any]:
    return {"name": where.path(key), "size": 0, "type": "directory"}


def _below_root(ctx: CommitContext, prefix: str) -> CommitContext:
    """Return the context of a destination in the store of `ctx`."""
    root = ctx.url if ctx.url.endswith("/") else f"{ctx.url}/"
    return replace(ctx, prefix=prefix, url=root + prefix.rstrip("/"))


def _abort_uploads(ctx: CommitContext, keys: list[str]) -> None:
    """Abort the uploads whose records are among `keys`."""
    for key in keys:
        magic = split_magic(key)
        if magic is None or not is_pending(key):
            continue
        prefix, relative = magic
        measure = Measure(_below_root(ctx, prefix))
        job = relative.partition("/")[0].removeprefix(MAGIC_JOB_PREFIX)
        try:
            pending = load_pending(measure, JobId(job), relative)
        except NotFoundError:
            continue
        abort_all(measure, [pending])
