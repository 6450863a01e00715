"""Implement the durable file operations of `LocalStore`: hidden files, publishing, creating and pruning directories.

Unfinished data is in a hidden entry beside its target, ``.holdfast-<kind>-<token>.<name>``. Publishing is therefore a
rename within one directory. Data that a dead process left can be found by listing, and its name contains the name of
its target.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Clock, SystemClock
from holdfast.stores.base import Create, PutMode, Update
from holdfast.stores.checks import check_key

HIDDEN_PREFIX = ".holdfast-"
_HIDDEN = re.compile(r"\.holdfast-((?:file|upload)-[0-9a-z]+)\.(.+)", re.DOTALL)
_MAX_NAME_BYTES = 255
_MAX_LAST_NAME_BYTES = _MAX_NAME_BYTES - len(".holdfast-upload-0123456789ab.")
MAX_KEY_BYTES = 3500
"""With the root it stays below PATH_MAX, 4096."""
_MAX_ON_DISK = 10_000
_LOCK_S = 60.0
_RACE_RETRIES = 100  # other processes may prune a new directory repeatedly before it is used


def hidden_name(hidden_id: str, name: str) -> str:
    """Return the name of the hidden entry for a target; `hidden_id` is ``file-<token>`` or ``upload-<token>``."""
    return f"{HIDDEN_PREFIX}{hidden_id}.{name}"


def parse_hidden(entry_name: str) -> tuple[str, str] | None:
    """Parse the name of a hidden entry, and return the hidden id and the target's name; None for other names."""
    found = _HIDDEN.fullmatch(entry_name)
    return None if found is None else (found[1], found[2])


def etag_of(status: os.stat_result) -> str:
    """Return an etag made from a file's time, inode and size. Each publication of a file changes the etag."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


def does_etag_match_file(etag: str, status: os.stat_result) -> bool:
    """Check whether an etag belongs to a file, by comparing the time and the size.

    Ignores the inode: a mounted object store assigns different inode numbers on each machine, and changes them over
    time.
    """
    return etag.split("-")[::2] == etag_of(status).split("-")[::2]


def _convert_os_error(error: OSError, key: str) -> HoldfastError:
    code = error.errno
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFullError("the disk or the quota is full: free some space, then repeat", key=key)
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AccessDeniedError(
            "the file system does not allow it: check owner, mode and mount", key=key, path=error.filename
        )
    if code == errno.ENOTDIR:
        return InvalidRequestError(
            "a file stands where a directory is needed: remove it, or write elsewhere", key=key, path=error.filename
        )
    if code in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return InvalidRequestError(
            "a directory stands where a file is needed: remove it, or write elsewhere", key=key, path=error.filename
        )
    if code in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
        return InvalidRequestError("the file system cannot hold this name: choose another", key=key)
    if code == errno.EXDEV:
        return UnsupportedError(
            "a file cannot be renamed to another file system: write to a directory in which none is mounted", key=key
        )
    if code == errno.ENOENT:
        return NotFoundError("no such file: check the key", key=key)
    reason = errno.errorcode.get(code or 0, "unknown")
    return UnavailableError("the file system failed and nothing became visible: repeat later", key=key, reason=reason)


def lock_descriptor(descriptor: int, path: str, limit_s: float, clock: Clock) -> None:
    """Lock an open file or directory against other processes; closing the descriptor, or dying, releases the lock.

    Raises:
        UnavailableError: another process has had the lock for `limit_s`: it hangs, or has much to do; repeat later.
    """
    waited_s, pause_s = 0.0, 0.0005
    while waited_s < limit_s:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            clock.sleep(pause_s)
            waited_s += pause_s
            pause_s = min(pause_s * 1.5, 0.02)
    raise UnavailableError(
        f"another process has had this locked for {limit_s:g} s: find the process if it hangs, then repeat", path=path
    )


@contextlib.contextmanager
def convert_os_errors(key: str) -> Iterator[None]:
    """Convert an `OSError` into the error that tells the caller what to do next."""
    try:
        yield
    except OSError as error:
        raise _convert_os_error(error, key) from error


def symlinked_directory_error(key: str) -> InvalidRequestError:
    """Return the error for a key below a symbolic link to a directory, which listings do not follow."""
    return InvalidRequestError(
        "a directory inside the destination is a symbolic link, which Holdfast does not follow: replace it by the "
        "directory that it points to",
        key=key,
    )


@dataclass(frozen=True, slots=True)
class LocalTree:
    """A tree of files below a root directory, which are named by keys.

    Attributes:
        root: absolute path of the directory.
        keep: key of a directory that is never pruned (deleted because it is empty), and whose parents are not pruned
            either; empty for the root itself.
        durable: whether data and directory entries are synced to the disk.
    """

    root: str
    keep: str
    durable: bool
    _on_disk: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    def path(self, key: str) -> str:
        """Return the path of a key.

        Raises:
            InvalidRequestError: the key cannot name a file here, or names a hidden entry.
        """
        path = self.directory_path(key)
        if len(os.path.basename(path).encode()) > _MAX_LAST_NAME_BYTES:
            raise InvalidRequestError(
                f"the last segment of the key is longer than {_MAX_LAST_NAME_BYTES} bytes: shorten it", key=key
            )
        return path

    def directory_path(self, key: str) -> str:
        """Return the path for the key of a directory. The key's last segment may be longer than that of a file's key.

        Raises:
            InvalidRequestError: see `path`.
        """
        check_key(key, MAX_KEY_BYTES)
        for name in key.split("/"):
            if name in ("", ".", ".."):
                raise InvalidRequestError(
                    "a key on a file system must not have an empty, '.' or '..' segment: change it", key=key
                )
            if len(name.encode()) > _MAX_NAME_BYTES:
                raise InvalidRequestError("a segment of the key is longer than 255 bytes: shorten it", key=key)
            if name.startswith(HIDDEN_PREFIX):
                raise InvalidRequestError(
                    f"names that start with {HIDDEN_PREFIX!r} are reserved: choose another", key=key
                )
        return os.path.join(self.root, key)

    def hidden_path(self, key: str, hidden_id: str) -> str:
        """Return the path of the hidden entry beside a key's file."""
        directory, name = os.path.split(self.path(key))
        return os.path.join(directory, hidden_name(hidden_id, name))

    # --- creating -----------------------------------------------------------------------------------------------------
    def make_directory(self, path: str) -> None:
        """Create a directory and its parents durably; do nothing if it exists."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        for _ in range(_RACE_RETRIES):
            self.make_directory(parent)
            try:
                with contextlib.suppress(FileExistsError):  # another process created it at the same time
                    os.mkdir(path)
                if not stat.S_ISDIR(os.lstat(path).st_mode) and not os.path.isdir(path):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                self._sync_path(parent)
                self._remember_synced_directory(path)
            except FileNotFoundError:
                continue  # another process pruned the empty directory, or its parent, in between
            return
        raise UnavailableError("other processes delete the directory as fast as it is created: repeat later", path=path)

    def _sync_entries_above(self, directory: str) -> None:
        """Sync the directory entries on the path to a directory, if another process may have just created it.

        If that process died between creating the directory and syncing it, a power failure could lose files in the
        directory that other processes have reported as durable. Requires: the directory is not empty, so that no
        process prunes it meanwhile.
        """
        device = os.stat(directory).st_dev
        while self.durable and directory != "/":
            status, parent = os.stat(directory), os.path.dirname(directory)
            if os.stat(parent).st_dev != device:
                return  # a mount point, which Holdfast did not create; directories above it may not support sync
            if self._on_disk.get(directory) != (status.st_dev, status.st_ino):
                with contextlib.suppress(PermissionError):  # without permission, no process of this user created it
                    self._sync_path(parent)
                self._remember_synced_directory(directory)
            directory = parent

    def _remember_synced_directory(self, directory: str) -> None:
        if len(self._on_disk) >= _MAX_ON_DISK:
            self._on_disk.clear()
        status = os.stat(directory)
        self._on_disk[directory] = (status.st_dev, status.st_ino)

    def open_hidden(self, key: str, hidden_id: str) -> tuple[int, str]:
        """Open a new hidden file beside a key's file; return a descriptor for writing and the path."""
        path = self.hidden_path(key, hidden_id)
        for _ in range(_RACE_RETRIES):
            self.make_directory(os.path.dirname(path))
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), path
            except FileNotFoundError:
                continue  # pruned in between; it cannot be pruned once the hidden file exists
        raise UnavailableError("other processes delete the directory as fast as it is created: repeat later", key=key)

    def make_hidden_directory(self, key: str, hidden_id: str) -> None:
        """Create a hidden directory beside a key's file, durably."""
        path = self.hidden_path(key, hidden_id)
        for _ in range(_RACE_RETRIES):
            self.make_directory(os.path.dirname(path))
            try:
                os.mkdir(path)
            except FileNotFoundError:
                continue
            self._sync_path(os.path.dirname(path))
            self._sync_entries_above(os.path.dirname(path))
            return
        raise UnavailableError("other processes delete the directory as fast as it is created: repeat later", key=key)

    # --- publishing ---------------------------------------------------------------------------------------------------
    def publish(self, source: str, key: str, mode: PutMode) -> os.stat_result:
        """Rename a finished, synced file to its key atomically and durably, if `mode` allows; return its status.

        The lock on the directory makes the check of an `Update` and the rename one step for all processes on this
        machine. A `Create` needs no lock: creating a hard link fails if the name exists.
        """
        target = self.path(key)
        with self._lock_directory(os.path.dirname(target)) as directory:
            if isinstance(mode, Create):
                self._link_file(source, target, key)
            else:
                if isinstance(mode, Update) and self._read_etag(target) != mode.etag:
                    raise PreconditionError("the file is not the expected one: read it, then decide", key=key)
                os.replace(source, target)
            status = os.stat(target)
            self._sync_published(directory, key)
        return status

    def _read_etag(self, path: str) -> str | None:
        try:
            return etag_of(os.stat(path))
        except FileNotFoundError:
            return None

    def _link_file(self, source: str, target: str, key: str) -> None:
        try:
            os.link(source, target)
        except FileExistsError as error:
            if os.path.isdir(target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target) from error
            raise PreconditionError("the file exists: read it, then decide", key=key) from error
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM):
                raise UnsupportedError("the file system has no hard links: write to another one", key=key) from error
            raise
        os.unlink(source)

    def refuse_directory(self, target: str) -> None:
        """Raise an error if a key is a directory, or a file there could not be renamed within the destination.

        Raises:
            IsADirectoryError: the key is a directory.
            InvalidRequestError: a directory on its path is a symbolic link: listings do not follow links, and what is
                written through one could be in another destination, or on another file system.
            OSError: a directory on its path is on another file system (EXDEV).
        """
        path = self.path(target)
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        directory = os.path.dirname(path)
        self._refuse_link(directory, target)
        kept = self._format_kept_directory_with_slash()
        while directory.startswith(kept):
            try:
                if os.stat(directory).st_dev != os.stat(kept).st_dev:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), directory)
                break
            except (FileNotFoundError, NotADirectoryError):
                directory = os.path.dirname(directory)

    def _format_kept_directory_with_slash(self) -> str:
        """Return the path of the kept directory, with a slash at its end, also if it is the root of the machine."""
        return os.path.join(self.root, self.keep).rstrip("/") + "/"

    def _refuse_link(self, directory: str, key: str) -> None:
        """Reject a directory if a symbolic link is on the path to it from the destination, or from the root."""
        kept = self._format_kept_directory_with_slash()
        home = kept if f"{directory}/".startswith(kept) else self.root
        below = os.path.relpath(directory, home)
        if os.path.realpath(directory) != os.path.normpath(os.path.join(os.path.realpath(home), below)):
            raise symlinked_directory_error(key)

    def require_creatable_file(self, target: str) -> None:
        """Raise `OSError` or `InvalidRequestError` if no file can be created at a key now."""
        self.refuse_directory(target)
        path = self.path(target)
        if os.path.islink(path) and not os.path.exists(path):
            raise InvalidRequestError("a dangling symbolic link is in the way of a file: remove it", key=target)
        _refuse_unusable_place(path)

    def move(self, source: str, target: str) -> None:
        """Rename one file atomically and durably, and replace the target."""
        if os.path.isfile(self.path(source)):  # if it is gone, NotFoundError is the answer: it may have been moved
            self.require_creatable_file(target)
        self._move_path(self.path(source), self.path(target), os.path.isfile, os.replace, source, target)

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory that is not empty to a free key, atomically and durably.

        Raises:
            InvalidRequestError: the source or the target is below a symbolic link, or the source is one.
        """
        from_path, to_path = self.directory_path(source), self.directory_path(target)
        self._refuse_link(from_path, source)
        self._refuse_link(os.path.dirname(to_path), target)
        try:
            self._move_path(from_path, to_path, _is_nonempty_directory, _rename_directory_to_free_path, source, target)
        except FileExistsError as error:
            raise PreconditionError("the target exists: inspect it, then decide", key=target) from error

    def _move_path(
        self,
        from_path: str,
        to_path: str,
        is_there: Callable[[str], bool],
        rename: Callable[[str, str], None],
        source: str,
        target: str,
    ) -> None:
        for _ in range(_RACE_RETRIES):
            if not is_there(from_path):
                raise NotFoundError("nothing exists at the source: it may have been renamed before", key=source)
            self.make_directory(os.path.dirname(to_path))
            try:
                with self._lock_directory(os.path.dirname(to_path)) as directory:
                    rename(from_path, to_path)
                    self._sync_published(directory, target)
            except FileNotFoundError:
                continue  # the source was moved, or the target's directory was pruned: check again
            if os.path.dirname(from_path) != os.path.dirname(to_path):
                with contextlib.suppress(FileNotFoundError):  # pruned by another process, and its entry with it
                    self._sync_path(os.path.dirname(from_path))
            return
        raise UnavailableError(
            "other processes delete the directory as fast as it is created: repeat later", key=target
        )

    @contextlib.contextmanager
    def _lock_directory(self, path: str) -> Iterator[int]:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock_descriptor(descriptor, path, _LOCK_S, SystemClock())
            yield descriptor
        finally:
            os.close(descriptor)

    def lock_upload_directory(self, path: str) -> contextlib.AbstractContextManager[int]:
        """Lock an upload's directory, so that it is completed once; raise `FileNotFoundError` if it does not exist."""
        return self._lock_directory(path)

    def _sync_published(self, directory: int, key: str) -> None:
        try:
            self.sync_descriptor(directory)
            self._sync_entries_above(os.path.dirname(self.directory_path(key)))
        except OSError as error:
            raise OutcomeUnknownError(
                "the file is published, but the disk did not confirm it: read before repeating", key=key
            ) from error

    def sync_descriptor(self, descriptor: int) -> None:
        """Sync a file or a directory to the disk, if this tree is durable."""
        if self.durable:
            os.fsync(descriptor)

    def _sync_path(self, directory: str) -> None:
        if not self.durable:
            return
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # --- removing -----------------------------------------------------------------------------------------------------
    def remove(self, key: str) -> None:
        """Delete a key's file and the directories that become empty; do nothing if it does not exist.

        If the file itself is a link, deletes only the link.
        """
        path = self.path(key)
        try:
            with self._lock_directory(os.path.dirname(path)) as directory:
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    return
                os.unlink(path)
                self.sync_descriptor(directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        self.remove_empty_directories(os.path.dirname(path))

    def remove_empty_directories(self, directory: str) -> None:
        """Delete a directory and its parents as long as they are empty, except the kept directory and its parents.

        Deletes neither symbolic links nor the directories that they point to.
        """
        kept = self._format_kept_directory_with_slash()
        while directory.startswith(kept):
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass  # another process pruned it, and may have died here: continue with the parent
            except OSError:
                return  # not empty, a mount point, or not permitted: a remaining directory does no harm
            directory = os.path.dirname(directory)


def _refuse_unusable_place(path: str) -> None:
    """Raise `OSError` if the directory of a path cannot be created or used, even while others create and prune it."""
    problem: OSError | None = None
    for _ in range(_RACE_RETRIES):
        directory = os.path.dirname(path)
        while not os.path.lexists(directory):
            directory = os.path.dirname(directory)
        try:
            before = os.lstat(directory)
            problem = _explain_unusable_directory(directory, path)
            after = os.lstat(directory)
        except FileNotFoundError:
            continue  # pruned in the meantime: check again
        if problem is None:
            return
        if (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns):
            break  # it did not change during the check
    if problem is not None:
        raise problem


def _explain_unusable_directory(directory: str, path: str) -> OSError | None:
    if not os.path.isdir(directory):
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    # Publishing locks and syncs the directory, so it must be readable as well.
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK) or _is_protected_by_sticky_bit(directory, path):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
    return None


def _is_protected_by_sticky_bit(directory: str, path: str) -> bool:
    """Check whether a file belongs to another user and is in a directory like /tmp: only its owner may replace it."""
    status = os.stat(directory)
    if not status.st_mode & stat.S_ISVTX or os.geteuid() in (0, status.st_uid):
        return False
    try:
        return os.lstat(path).st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def _is_nonempty_directory(directory: str) -> bool:
    """Check whether a path is a directory that is not empty."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _rename_directory_to_free_path(source: str, target: str) -> None:
    """Rename a directory; raise `FileExistsError` if the target is a file or a directory that is not empty."""
    try:
        os.rename(source, target)
    except OSError as error:
        taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR) and os.path.lexists(target)
        if taken:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
        raise
