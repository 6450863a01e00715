"""Copy files from and to an object store, which has no directories."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.fs.places.base import Entry, Failed, Sink, read_pieces
from holdfast.commit import CommitContext
from holdfast.commit.context import Place as StoreRoot
from holdfast.commit.sinks import PartBudget
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.fs.files import PlainSink, WritingFile
from holdfast.namespace.errors import PathNotFoundError
from holdfast.stores.base import check_key, is_marker, iter_objects


class StorePlace:
    """The store of a URL; paths are keys.

    Args:
        ctx: opened at the URL.
    """

    has_directories = False

    def __init__(self, ctx: CommitContext) -> None:
        self.path = ctx.prefix.rstrip("/")
        self._root = ctx.url[: len(ctx.url) - len(self.path)].rstrip("/") if self.path else ctx.url.rstrip("/")
        self._ctx = ctx.at(StoreRoot(store=ctx.store, prefix="", url=self._root))

    def url(self, path: str) -> str:
        """See `Place`."""
        return f"{self._root}/{path}"

    def name(self, path: str) -> str:
        """See `Place`."""
        return path.rpartition("/")[2]

    def join(self, directory: str, relative: str) -> str:
        """See `Place`."""
        key = f"{directory}/{relative}" if directory else relative
        check_key(key)
        return key

    def parent(self, path: str) -> str:
        """See `Place`."""
        return path.rpartition("/")[0]

    def find(self, path: str) -> Entry | None:
        """See `Place`. A key below which there are others is a directory, unless it is an object too."""
        if path:
            try:
                info = self._ctx.store.head(path)
            except NotFoundError:
                pass  # a missing bucket is reported by the listing
            else:
                return Entry(
                    path,
                    is_directory=False,
                    size=info.size_bytes,
                    mtime_ms=int(info.modified_at_s * 1000),
                    etag=info.etag,
                )
        prefix = f"{path}/" if path else ""
        page = self._ctx.store.list_page(prefix, max_keys=1)
        is_directory = not path or any(info.key.startswith(prefix) for info in page.objects)
        return Entry(path, is_directory=True) if is_directory else None

    def below(self, path: str, failed: Failed) -> Iterator[Entry]:
        """See `Place`. The marker of an empty directory is a directory."""
        prefix = f"{path}/" if path else ""
        for info in iter_objects(self._ctx.store, prefix, markers=True):
            relative = info.key[len(prefix) :]
            if is_marker(info):
                relative = relative.removesuffix("_$folder$").rstrip("/")
                if relative:
                    yield Entry(info.key, is_directory=True, relative=relative)
            elif relative.endswith("/"):
                error = InvalidRequestError("the key ends in a slash and is no directory: rename it", key=info.key)
                failed(self.url(info.key), error)
            else:
                yield Entry(
                    info.key,
                    is_directory=False,
                    relative=relative,
                    size=info.size_bytes,
                    mtime_ms=int(info.modified_at_s * 1000),
                    etag=info.etag,
                )

    def read(self, entry: Entry, readers: int = 1) -> Iterator[bytes]:
        """See `Place`. All pieces come from the object that was listed."""

        def piece(start: int, length: int) -> bytes:
            try:
                found = self._ctx.store.get(entry.path, start, length, entry.etag)
            except NotFoundError as error:
                raise PathNotFoundError("the object is gone: list again", key=entry.path) from error
            if len(found) != length:
                raise PathNotFoundError("the object is shorter than it was: list again", key=entry.path)
            return found

        return read_pieces(piece, entry.size or 0, readers)

    def create(self, path: str, source: Entry, *, overwrite: bool, preserve: bool) -> Sink:
        """See `Place`. Whether something has the key was checked before: not every store can write conditionally."""
        background = self._ctx.runner.background()
        budget = PartBudget(self._ctx.settings.part_buffer_bytes)
        return WritingFile(PlainSink(self._ctx, path, background=background, budget=budget), background)

    def make_directory(self, path: str) -> None:
        """Do nothing: a directory is there as long as there is a key below it."""
