"""The durable file operations under `LocalStore`: hidden files, publishing them, directories that come and go.

Everything that is not finished lies in a hidden entry beside its target, ``.holdfast-<kind>-<token>.<name>``, so that
publishing is a rename inside one directory, and so that what a dead process left behind is found by listing and says
whose it was.
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
from holdfast.runtime import SystemClock
from holdfast.stores.base import Create, PutMode, Update, check_key
from holdfast.stores.local.links import append, open_source, passes_back

__all__ = ["HIDDEN_PREFIX", "LocalTree", "etag_of", "hidden_name", "is_same_file", "os_errors", "parse_hidden"]

HIDDEN_PREFIX = ".holdfast-"
_HIDDEN = re.compile(r"\.holdfast-((?:file|upload)-[0-9a-z]+)\.(.+)", re.DOTALL)
_MAX_NAME_BYTES = 255
_MAX_LAST_NAME_BYTES = _MAX_NAME_BYTES - len(".holdfast-upload-0123456789ab.")
_MAX_KEY_BYTES = 3500  # with the root it stays under PATH_MAX, 4096
_MAX_ON_DISK = 10_000
_LOCK_S = 60.0
_RACE_RETRIES = 100  # a directory that is pruned again and again between its making and its use


def hidden_name(hidden_id: str, name: str) -> str:
    """The hidden entry for a target's last name; `hidden_id` is ``file-<token>`` or ``upload-<token>``."""
    return f"{HIDDEN_PREFIX}{hidden_id}.{name}"


def parse_hidden(entry_name: str) -> tuple[str, str] | None:
    """The ``(hidden id, target's last name)`` of a hidden entry, None for other entries."""
    found = _HIDDEN.fullmatch(entry_name)
    return None if found is None else (found[1], found[2])


def etag_of(status: os.stat_result) -> str:
    """Changes whenever a file is published: the inode, the time and the size."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


def is_same_file(etag: str, status: os.stat_result) -> bool:
    """Whether an etag is that of a file, whoever looked: by time and size.

    Not by the inode: a mounted object store numbers its files anew on every machine, and after a while on the same one.
    """
    return etag.split("-")[::2] == etag_of(status).split("-")[::2]


def _translated(error: OSError, key: str) -> HoldfastError:
    code = error.errno
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFullError("the disk or the quota is full: free some space and repeat", key=key)
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AccessDeniedError("the file system does not allow it: check owner, mode and mount", key=key)
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
        return UnsupportedError("source and target lie on different file systems: rename within one", key=key)
    if code == errno.ENOENT:
        return NotFoundError("no such file: check the key", key=key)
    reason = errno.errorcode.get(code or 0, "unknown")
    return UnavailableError("the file system failed and nothing became visible: repeat later", key=key, reason=reason)


@contextlib.contextmanager
def os_errors(key: str) -> Iterator[None]:
    """Turn an `OSError` into the error that says what to do next."""
    try:
        yield
    except OSError as error:
        raise _translated(error, key) from error


@dataclass(frozen=True, slots=True)
class LocalTree:
    """Files below a root, named by keys.

    Attributes:
        root: absolute path of the directory.
        keep: key of the directory that is never pruned, nor any above it; empty for the root itself.
        durable: whether data and directory entries are forced to the disk.
    """

    root: str
    keep: str
    durable: bool
    _on_disk: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    def path(self, key: str) -> str:
        """The path of a key.

        Raises:
            InvalidRequestError: the key cannot name a file here, or names one of the hidden entries.
        """
        path = self.directory_path(key)
        if len(os.path.basename(path).encode()) > _MAX_LAST_NAME_BYTES:
            raise InvalidRequestError(f"the last segment is over {_MAX_LAST_NAME_BYTES} bytes: shorten it", key=key)
        return path

    def directory_path(self, key: str) -> str:
        """The path of a key that is a directory: its last name may be as long as any, it needs no hidden entry.

        Raises:
            InvalidRequestError: as `path` does.
        """
        check_key(key, _MAX_KEY_BYTES)
        for name in key.split("/"):
            if name in ("", ".", ".."):
                raise InvalidRequestError("a key on a file system has no empty, '.' or '..' segment", key=key)
            if len(name.encode()) > _MAX_NAME_BYTES:
                raise InvalidRequestError("a segment of the key is over 255 bytes: shorten it", key=key)
            if name.startswith(HIDDEN_PREFIX):
                raise InvalidRequestError(f"names that start with {HIDDEN_PREFIX!r} are reserved", key=key)
        return os.path.join(self.root, key)

    def hidden_path(self, key: str, hidden_id: str) -> str:
        """The path of the hidden entry beside a key's file."""
        directory, name = os.path.split(self.path(key))
        return os.path.join(directory, hidden_name(hidden_id, name))

    # --- making -------------------------------------------------------------------------------------------------------
    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, durably; one that exists is no error."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        for _ in range(_RACE_RETRIES):
            self.make_directory(parent)
            try:
                with contextlib.suppress(FileExistsError):  # another made it at the same moment
                    os.mkdir(path)
                if not stat.S_ISDIR(os.lstat(path).st_mode) and not os.path.isdir(path):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                self._sync_path(parent)
                self._note_on_disk(path)
            except FileNotFoundError:
                continue  # it, or its parent, was empty and pruned by another's delete in between
            return
        raise UnavailableError("a directory vanishes as fast as it is made: repeat later", path=path)

    def _rely_on(self, directory: str) -> None:
        """Force the entries that lead to a directory to the disk, if somebody else may have made it just now.

        A process that dies, or power that fails, between the making of a directory and its sync would take along what
        others have acknowledged in it. Requires: it holds an entry, so that it is not pruned meanwhile.
        """
        device = os.stat(directory).st_dev
        while self.durable and directory != "/":
            status, parent = os.stat(directory), os.path.dirname(directory)
            if os.stat(parent).st_dev != device:
                return  # a mount point, which no process of ours has made; what is above it need not know of syncs
            if self._on_disk.get(directory) != (status.st_dev, status.st_ino):
                with contextlib.suppress(PermissionError):  # then it is none that a process of this user has made
                    self._sync_path(parent)
                self._note_on_disk(directory)
            directory = parent

    def _note_on_disk(self, directory: str) -> None:
        if len(self._on_disk) >= _MAX_ON_DISK:
            self._on_disk.clear()
        status = os.stat(directory)
        self._on_disk[directory] = (status.st_dev, status.st_ino)

    def open_hidden(self, key: str, hidden_id: str) -> tuple[int, str]:
        """Open a new hidden file beside a key's place; returns a descriptor for writing and the path."""
        path = self.hidden_path(key, hidden_id)
        for _ in range(_RACE_RETRIES):
            self.make_directory(os.path.dirname(path))
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), path
            except FileNotFoundError:
                continue  # pruned in between; once the hidden file is there, it cannot be
        raise UnavailableError("a directory vanishes as fast as it is made: repeat later", key=key)

    def make_hidden_directory(self, key: str, hidden_id: str) -> None:
        """Make a hidden directory beside a key's place, durably."""
        path = self.hidden_path(key, hidden_id)
        for _ in range(_RACE_RETRIES):
            self.make_directory(os.path.dirname(path))
            try:
                os.mkdir(path)
            except FileNotFoundError:
                continue
            self._sync_path(os.path.dirname(path))
            self._rely_on(os.path.dirname(path))
            return
        raise UnavailableError("a directory vanishes as fast as it is made: repeat later", key=key)

    # --- publishing ---------------------------------------------------------------------------------------------------
    def publish(self, source: str, key: str, mode: PutMode) -> os.stat_result:
        """Give a finished, synced file its name, atomically and durably, if `mode` allows; returns its status.

        The lock on the directory makes the check of an `Update` and the rename one step, for all processes on this
        machine. A `Create` does not need it: a hard link fails if the name is taken.
        """
        target = self.path(key)
        with self._locked_directory(os.path.dirname(target)) as directory:
            if isinstance(mode, Create):
                self._link(source, target, key)
            else:
                if isinstance(mode, Update) and self._etag(target) != mode.etag:
                    raise PreconditionError("the file is not the expected one: read it, then decide", key=key)
                os.replace(source, target)
            status = os.stat(target)
            self._sync_published(directory, key)
        return status

    def _etag(self, path: str) -> str | None:
        try:
            return etag_of(os.stat(path))
        except FileNotFoundError:
            return None

    def _link(self, source: str, target: str, key: str) -> None:
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
        """Refuse a key that is a directory; `OSError`."""
        path = self.path(target)
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)

    def refuse_target(self, target: str) -> None:
        """Refuse a key at which no file can appear as things are now; `OSError` or `InvalidRequestError`."""
        self.refuse_directory(target)
        path = self.path(target)
        if os.path.islink(path) and not os.path.exists(path):
            raise InvalidRequestError("a link to nowhere stands where a file is needed: remove it", key=target)
        _refuse_place(path)

    def refuse_back(self, target: str) -> None:
        """Refuse a key behind a symbolic link that leads back up: listings show what is there under another key."""
        if passes_back(self.path(target)):
            raise InvalidRequestError("a symbolic link leads back up: work on what it points to", key=target)

    def move(self, source: str, target: str) -> None:
        """Rename one file to a key, atomically and durably, replacing what is there.

        A directory of the target may be a link to another file system: there the file appears as atomically, and is
        gone from its old place right after.
        """
        if os.path.isfile(self.path(source)):  # of one that is gone nothing else is said: it may have been moved
            self.refuse_target(target)
        try:
            self._move(self.path(source), self.path(target), os.path.isfile, os.replace, source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._move_by_copy(source, target)

    def _move_by_copy(self, source: str, target: str) -> None:
        """Who moves the same file at the same moment waits, and finds it gone: it is published once.

        Crash: the file is at one place or at both, and a hidden one beside the target, which the next try takes away.
        """
        from_path, to_path = self.path(source), self.path(target)
        content = open_source(from_path, source)
        try:
            status = os.fstat(content)
            hidden_id = f"file-{status.st_ino:x}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.hidden_path(target, hidden_id))
            descriptor, hidden = self.open_hidden(target, hidden_id)
            try:
                with open(descriptor, "wb") as file:
                    append(content, file.fileno())
                    os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
                    self.sync(file.fileno())
                with self._locked_directory(os.path.dirname(to_path)) as directory:
                    os.replace(hidden, to_path)
                    self._sync_published(directory, target)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(hidden)  # a full disk needs the room
                raise
            os.unlink(from_path)
            self._sync_path(os.path.dirname(from_path))
        finally:
            os.close(content)

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory that holds anything to a key that is free, atomically and durably.

        Raises:
            InvalidRequestError: what would be moved is a symbolic link, or behind one that leads out of the tree.
        """
        from_path, to_path = self.directory_path(source), self.directory_path(target)
        if self._is_outside(os.path.dirname(from_path)) or os.path.islink(from_path):
            raise InvalidRequestError("a symbolic link is no part of the tree: work on what it points to", key=source)
        try:
            self._move(from_path, to_path, _holds_anything, _rename_to_free, source, target)
        except FileExistsError as error:
            raise PreconditionError("the target exists: look at it, then decide", key=target) from error

    def _move(
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
                raise NotFoundError("nothing is there: it may have been renamed before", key=source)
            self.make_directory(os.path.dirname(to_path))
            try:
                with self._locked_directory(os.path.dirname(to_path)) as directory:
                    rename(from_path, to_path)
                    self._sync_published(directory, target)
            except FileNotFoundError:
                continue  # the source went, or the target's directory was pruned: look again
            if os.path.dirname(from_path) != os.path.dirname(to_path):
                with contextlib.suppress(FileNotFoundError):  # pruned by another: then its entry is gone as well
                    self._sync_path(os.path.dirname(from_path))
            return
        raise UnavailableError("a directory vanishes as fast as it is made: repeat later", key=target)

    @contextlib.contextmanager
    def _locked_directory(self, path: str) -> Iterator[int]:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _lock(descriptor, path)
            yield descriptor
        finally:
            os.close(descriptor)

    def locked_upload(self, path: str) -> contextlib.AbstractContextManager[int]:
        """Hold an upload's directory, so that it is completed once; `FileNotFoundError` if it is gone."""
        return self._locked_directory(path)

    def _sync_published(self, directory: int, key: str) -> None:
        try:
            self.sync(directory)
            self._rely_on(os.path.dirname(self.directory_path(key)))
        except OSError as error:
            raise OutcomeUnknownError(
                "it has its name, but the disk did not confirm it: read before repeating", key=key
            ) from error

    def sync(self, descriptor: int) -> None:
        """Force a file or a directory to the disk, if this tree is durable."""
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
        """Remove a key's file and the directories that this empties; one that is missing is no error.

        Where a link leads out of the tree, the file behind it goes, for listings show it; of a file that is a link,
        the link.

        Raises:
            InvalidRequestError: a symbolic link in the key leads back up, where listings do not go.
        """
        path = self.path(key)
        if passes_back(path):
            raise InvalidRequestError("a symbolic link leads back up: work on what it points to", key=key)
        try:
            with self._locked_directory(os.path.dirname(path)) as directory:
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    return
                os.unlink(path)
                self.sync(directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        self.prune(os.path.dirname(path))

    def _is_outside(self, directory: str) -> bool:
        """Whether a symbolic link leads out of the tree on the way to `directory`, or out of what is kept of it."""
        key = os.path.relpath(directory, self.root)
        boundary = os.path.join(self.root, self.keep) if f"{key}/".startswith(f"{self.keep}/") else self.root
        real, real_boundary = os.path.realpath(directory), os.path.realpath(boundary)
        return os.path.commonpath([real, real_boundary]) != real_boundary

    def prune(self, directory: str) -> None:
        """Remove a directory and those above it as long as they are empty, up to what is kept.

        A symbolic link stays, and so does what it leads to.
        """
        kept = os.path.join(self.root, self.keep).rstrip("/") + "/"
        while directory.startswith(kept):
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass  # another pruned it: go on upwards, it may have died there
            except OSError:
                return  # not empty, a mount point, or not ours to remove: it does no harm
            directory = os.path.dirname(directory)


def _lock(descriptor: int, path: str) -> None:
    """Take the lock of an open directory. Who has it keeps it for a rename and a sync; who has died has it no more."""
    clock = SystemClock()
    until_s = clock.elapsed_s() + _LOCK_S
    pause_s = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.elapsed_s() > until_s:
                raise UnavailableError(
                    f"another process has held a directory for {_LOCK_S:.0f} s: look which one hangs there, then "
                    "repeat",
                    path=path,
                ) from None
            clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.02)
        else:
            return


def _refuse_place(path: str) -> None:
    """Refuse a path for whose file no directory can be made or used, which others may be making and pruning."""
    problem: OSError | None = None
    for _ in range(_RACE_RETRIES):
        directory = os.path.dirname(path)
        while not os.path.lexists(directory):
            directory = os.path.dirname(directory)
        try:
            before = os.lstat(directory)
            problem = _problem_with(directory, path)
            after = os.lstat(directory)
        except FileNotFoundError:
            continue  # pruned since: look again
        if problem is None:
            return
        if (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns):
            break  # nobody changed it while it was looked at
    if problem is not None:
        raise problem


def _problem_with(directory: str, path: str) -> OSError | None:
    if not os.path.isdir(directory):
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    # Publishing locks and syncs the directory, so it has to be opened, too.
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK) or _is_anothers(directory, path):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
    return None


def _is_anothers(directory: str, path: str) -> bool:
    """Whether a file is in a directory like /tmp, where nobody replaces what is another's."""
    status = os.stat(directory)
    if not status.st_mode & stat.S_ISVTX or os.geteuid() in (0, status.st_uid):
        return False
    try:
        return os.lstat(path).st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def _holds_anything(directory: str) -> bool:
    """Whether this is a directory with an entry."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _rename_to_free(source: str, target: str) -> None:
    """Rename a directory; `FileExistsError` where a file, or a directory that holds anything, has the name."""
    if os.path.islink(target) and os.path.isdir(target) and not _holds_anything(target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)  # free, but only for single files
    try:
        os.rename(source, target)
    except OSError as error:
        taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR) and os.path.lexists(target)
        if taken:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
        raise
