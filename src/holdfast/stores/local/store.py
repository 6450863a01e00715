"""Store objects in a directory of a local (or mounted POSIX) file system.

Renames use the file system's own rename; a multipart upload is a hidden directory of parts.

Worked composition::

    store = LocalStore("/data")
    file = store.open_write("t/_attempt/a")
    file.write(b"rows")
    file.close()                                # durable and visible at its key, which must be free
    store.rename("t/_attempt/a", "t/a")         # durable again when this returns

Published files and directories are ordinary ones that any program can read. Names of unfinished files start with
``.holdfast-``; `LocalStore.list_uploads_page` lists them, even if the writer has died.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.runtime import Clock, Ids, Moment, SystemClock, SystemIds
from holdfast.runtime.process import ForkInProgress, register_fork_listener
from holdfast.stores.base import (
    Capabilities,
    Create,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    Support,
    UploadPage,
    replaced,
)
from holdfast.stores.checks import check_delete, check_move, check_part_number, check_parts, check_range, page_size
from holdfast.stores.local.tree import MAX_KEY_BYTES, LocalTree, convert_os_errors, does_etag_match_file, etag_of
from holdfast.stores.local.walk import PagedTreeListing, walk_pending_uploads

_UPLOAD_ID = re.compile(r"(?:file|upload)-[0-9a-z]+")
_WHOLE = "whole"
_LIMITS = MultipartLimits(min_part_size_bytes=1, max_parts=100_000)
_WRITE_BUFFER_BYTES = 1024 * 1024
_WRITEBACK_BYTES = 16 * 1024 * 1024
_DATED_EVERY_S = 60.0
_COPY_BYTES = 1 << 30
_COPY_BUFFER_BYTES = 1024 * 1024
_COPY_RANGE_REFUSED = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
_CAN_ADVISE = hasattr(os, "posix_fadvise")  # Linux; elsewhere the sync at the end writes everything


class LocalStore:
    """A `MultipartStore` and `RenameStore` over a directory.

    Guarantee: a published file is complete and, if `durable`, survives a power failure. If
    several processes on this machine attempt the same conditional write (`Create` or `Update`), exactly one succeeds.
    Metadata is not stored.

    Args:
        root: the directory; the first write creates it.
        keep: key of a directory that is not deleted when it becomes empty; its parents and the root are not deleted
            either.
        durable: False lets the operating system decide when data reaches the disk: safe if processes die, but not if
            the power fails.
        ids: supplies the names of hidden files and the ids of uploads.
        clock: tells when a file that is being written needs a new date.
    """

    def __init__(
        self, root: str, *, keep: str = "", durable: bool = True, ids: Ids | None = None, clock: Clock | None = None
    ) -> None:
        self._tree = LocalTree(os.path.abspath(root), keep.strip("/"), durable)
        self._listings = PagedTreeListing(self._tree.root)
        self._ids = ids or SystemIds()
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"LocalStore({self._tree.root!r})"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            conditional_put=Support.YES,
            multipart=_LIMITS,
            rename=True,
            rename_dir=True,
            lists_uploads=Support.YES,
        )

    @property
    def retries(self) -> int:
        return 0  # there is no network whose failures could be retried

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        file = self._open_file(key, mode)
        try:
            file.write(data)
            file.close()
        except BaseException:
            file.discard()
            raise
        return _object_info(key, file.published)

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        check_range(start, length)
        with _convert_read_errors(key), open(self._tree.path(key), "rb") as file:
            status = os.fstat(file.fileno())
            if etag and not does_etag_match_file(etag, status):
                raise replaced(key)
            if start >= status.st_size:
                return b""  # not every file system can seek so far
            file.seek(start)
            return file.read() if length is None else file.read(min(length, status.st_size))

    def head(self, key: str) -> ObjectInfo:
        with _convert_read_errors(key):
            status = os.stat(self._tree.path(key))
        if not stat.S_ISREG(status.st_mode):
            raise NotFoundError("no such file: check the key", key=key)
        return _object_info(key, status)

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        with convert_os_errors(prefix):
            return self._listings.page(prefix, start_after, page_size(max_keys), token)

    def delete(self, key: str) -> None:
        with convert_os_errors(key):
            self._tree.remove(key)

    def delete_many(self, keys: Sequence[str]) -> None:
        check_delete(keys)
        for key in keys:
            self.delete(key)

    def close(self) -> None:
        self._listings.close()

    # --- rename -------------------------------------------------------------------------------------------------------
    def open_write(self, key: str) -> _HiddenLocalFile:
        return self._open_file(key, Create())

    def _open_file(self, key: str, mode: PutMode) -> _HiddenLocalFile:
        return _HiddenLocalFile(self._tree, key, self._ids, mode, self._clock)

    def rename(self, source: str, target: str) -> None:
        with convert_os_errors(target):
            self._tree.move(source, target)
            self._tree.remove_empty_directories(os.path.dirname(self._tree.path(source)))

    def check_targets(self, targets: Sequence[str]) -> None:
        for target in targets:
            with convert_os_errors(target):
                self._tree.require_creatable_file(target)

    def rename_dir(self, source: str, target: str) -> None:
        check_move(source, target, MAX_KEY_BYTES)
        with convert_os_errors(target):
            self._tree.move_directory(source, target)
            self._tree.remove_empty_directories(os.path.dirname(self._tree.directory_path(source)))

    # --- uploads ------------------------------------------------------------------------------------------------------
    # An upload is a hidden directory. Its states: parts only; then a file 'whole' joined from them, and part 1 deleted;
    # then 'whole' renamed to the key, and the directory deleted. If part 1 and 'whole' are both missing, the upload was
    # published before. A second completion, even after a crash, can therefore never publish again.
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        upload_id = f"upload-{self._ids.token()}"
        with convert_os_errors(key):
            self._tree.refuse_directory(key)
            self._tree.make_hidden_directory(key, upload_id)
        return upload_id

    def _upload_path(self, key: str, upload_id: str) -> str:
        if not _UPLOAD_ID.fullmatch(upload_id):
            raise NotFoundError("no such upload: this is not an upload id of this store", key=key, upload_id=upload_id)
        return self._tree.hidden_path(key, upload_id)

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        check_part_number(key, number, _LIMITS.max_parts)
        directory = self._upload_path(key, upload_id)
        hidden = os.path.join(directory, f"{number}.{self._ids.token()}")
        with convert_os_errors(key):
            try:
                descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise _no_upload_error(key, upload_id) from error
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    self._tree.sync_descriptor(file.fileno())
                    status = os.fstat(file.fileno())
                os.replace(hidden, os.path.join(directory, str(number)))
            except FileNotFoundError as error:
                raise _no_upload_error(key, upload_id) from error  # aborted in the meantime
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(hidden)  # a full disk needs the space
                raise
        return Part(number, etag_of(status), status.st_size)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        directory = self._upload_path(key, upload_id)
        check_parts(key, parts)
        with convert_os_errors(key):
            try:
                with self._tree.lock_upload_directory(directory) as held:
                    if os.path.exists(os.path.join(directory, "1")):
                        self._assemble_parts(key, directory, parts)
                        self._tree.sync_descriptor(held)
                    status = self._tree.publish(os.path.join(directory, _WHOLE), key, Overwrite())
                    shutil.rmtree(directory, ignore_errors=True)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise _no_upload_error(key, upload_id) from error
        return _object_info(key, status)

    def _assemble_parts(self, key: str, directory: str, parts: Sequence[Part]) -> None:
        paths = [os.path.join(directory, str(part.number)) for part in parts]
        for part, path in zip(parts, paths, strict=True):
            if not os.path.exists(path) or etag_of(os.stat(path)) != part.etag:
                raise InvalidRequestError("a part is missing or has another etag", key=key, number=part.number)
        whole = os.path.join(directory, _WHOLE)
        if len(parts) == 1:
            os.rename(paths[0], whole)
            return
        joined = os.path.join(directory, f"{_WHOLE}.{self._ids.token()}")
        try:
            with open(joined, "xb", buffering=0) as target:
                for path in paths:
                    with open(path, "rb", buffering=0) as part_file:
                        _append_rest_of_file(part_file.fileno(), target.fileno())
                self._tree.sync_descriptor(target.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(joined)  # a full disk needs the space
            raise
        os.replace(joined, whole)
        os.unlink(paths[0])

    def abort_upload(self, key: str, upload_id: str) -> None:
        path = self._upload_path(key, upload_id)
        with convert_os_errors(key):
            try:
                if upload_id.startswith("file-"):
                    os.unlink(path)
                else:
                    with self._tree.lock_upload_directory(path):
                        _remove_upload(path)
            except (FileNotFoundError, NotADirectoryError):
                return
            self._tree.remove_empty_directories(os.path.dirname(path))

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        """List all pending uploads and unfinished files (of `put` and `open_write`), including those of dead writers.

        `abort_upload` deletes an unfinished file like an upload; another process cannot complete an unfinished file.
        """
        with convert_os_errors(prefix):
            return UploadPage(list(walk_pending_uploads(self._tree.root, prefix)), None)


class _HiddenLocalFile:
    """A `WritableFile` in a hidden file, which is renamed to its key when it is closed.

    The date of the hidden file is that of the last write, to within a minute: so others can tell that its writer is
    alive, however little it writes.
    """

    def __init__(self, tree: LocalTree, key: str, ids: Ids, mode: PutMode, clock: Clock) -> None:
        self._tree = tree
        self._key = key
        self._mode = mode
        self._clock = clock
        self._written = self._handed_over = 0
        with convert_os_errors(key):
            tree.refuse_directory(key)
            descriptor, self._hidden = tree.open_hidden(key, f"file-{ids.token()}")
        self._file = open(descriptor, "wb", buffering=_WRITE_BUFFER_BYTES)  # noqa: SIM115  # close and discard close it
        self.published: os.stat_result = os.fstat(descriptor)
        self._dated = Moment.of(clock)
        self._is_discarded = False
        register_fork_listener(self)

    def before_fork(self, fork: ForkInProgress) -> bool:
        """Flush the buffer: a child would write its copy of the bytes again, when it drops the file or ends."""
        with contextlib.suppress(OSError, ValueError):  # the bytes stay, and the next call fails; or it is closed
            self._file.flush()
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Do nothing."""

    def write(self, data: bytes | memoryview, /) -> int:
        if self._file.closed:
            raise InvalidRequestError("the file is closed: open another", key=self._key)
        with convert_os_errors(self._key):
            written = self._file.write(data)
            self._start_writeback(written)
            self._refresh_file_date()
        return written

    def _start_writeback(self, written: int) -> None:
        """Start to write data to the disk early, so that the final sync takes less time."""
        self._written += written
        if self._tree.durable and self._written - self._handed_over >= _WRITEBACK_BYTES and _CAN_ADVISE:
            self._file.flush()
            length = self._written - self._handed_over
            os.posix_fadvise(self._file.fileno(), self._handed_over, length, os.POSIX_FADV_DONTNEED)
            self._handed_over = self._written

    def _refresh_file_date(self) -> None:
        """Write out what is buffered, once a minute, so that the file gets a new date."""
        if self._dated.age_s(self._clock) > _DATED_EVERY_S:
            self._file.flush()
            self._dated = Moment.of(self._clock)

    def close(self) -> ObjectInfo:
        if self._is_discarded:
            raise InvalidRequestError("the file was discarded: open another", key=self._key)
        if self._file.closed:
            return _object_info(self._key, self.published)
        try:
            with convert_os_errors(self._key):
                self._file.flush()
                self._tree.sync_descriptor(self._file.fileno())
                self._require_same_hidden_file(os.fstat(self._file.fileno()))
                self._file.close()
                self.published = self._tree.publish(self._hidden, self._key, self._mode)
        except BaseException:
            self.discard()
            raise
        return _object_info(self._key, self.published)

    def _require_same_hidden_file(self, status: os.stat_result) -> None:
        """Check that the hidden file is the one that was written: its directory may have been replaced by a copy.

        Raises:
            NotFoundError: it is not.
        """
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if does_etag_match_file(etag_of(status), os.stat(self._hidden)):
                return
        raise NotFoundError(
            "the directory of the file was replaced or removed while it was open: write it again", key=self._key
        )

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()  # flushing to a full disk fails again; the bytes are not needed
        with convert_os_errors(self._key):
            try:
                os.unlink(self._hidden)
            except FileNotFoundError:
                return  # published, or discarded before
            self._is_discarded = True
            self._tree.remove_empty_directories(os.path.dirname(self._hidden))


def _object_info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(key, status.st_size, etag_of(status), status.st_mtime)


def _no_upload_error(key: str, upload_id: str) -> NotFoundError:
    return NotFoundError("no such upload: it was completed or aborted, or never existed", key=key, upload_id=upload_id)


@contextlib.contextmanager
def _convert_read_errors(key: str) -> Iterator[None]:
    """Raise `NotFoundError` if a read finds a directory at the key, or a file in place of one of its directories."""
    with convert_os_errors(key):
        try:
            yield
        except (NotADirectoryError, IsADirectoryError) as error:
            raise NotFoundError("no such file: check the key", key=key) from error


def _remove_upload(directory: str) -> None:
    """Delete an upload's directory, repeatedly if parts are still arriving."""
    while True:
        try:
            shutil.rmtree(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return


def _append_rest_of_file(source: int, target: int) -> None:
    """Append the rest of one open file to another: inside the kernel if possible, else through a buffer."""
    copied = 1
    try:
        while copied:
            copied = os.copy_file_range(source, target, _COPY_BYTES)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _COPY_RANGE_REFUSED:
            raise
    # Some file systems report the end of the file too early (such as those with made-up sizes), so continue reading.
    with open(source, "rb", closefd=False) as content, open(target, "wb", closefd=False) as file:
        shutil.copyfileobj(content, file, _COPY_BUFFER_BYTES)
