"""Run the calls of the recorded cases (`tests.unit.namespace.hdfs_cases`) through Hadoop's client of WebHDFS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.unit.namespace.hdfs_cases import SUPERUSER, Step

__all__ = ["WebHdfsCalls", "java_class_of"]

_OCTAL = 8


def java_class_of(error: Py4JJavaError) -> str:
    """Return the full name of the exception that the server has named, or that the client has raised by itself."""
    raised = error.java_exception
    name = str(raised.getClass().getName())
    return str(raised.getClassName()) if name.endswith("RemoteException") else name


class WebHdfsCalls:
    """Runs calls; an answer is the value, or the class of the exception.

    Args:
        jvm: of py4j.
        clients: a `WebHdfsFileSystem` for each user.
    """

    def __init__(self, jvm: Any, clients: dict[str, Any]) -> None:
        self._jvm = jvm
        self._hadoop = jvm.org.apache.hadoop
        self._clients = clients

    def clear(self) -> None:
        """Make the file system empty."""
        fs, root = self._clients[SUPERUSER], self._path("/")
        for status in fs.listStatus(root):
            if status.isDirectory():
                fs.setQuota(status.getPath(), -1, -1)
            fs.delete(status.getPath(), True)
        fs.setPermission(root, self._mode("755"))
        fs.setOwner(root, SUPERUSER, "supergroup")

    def answer(self, step: Step) -> str:
        """Run a call; return its value, or the class of its exception."""
        call: Callable[..., object] = getattr(self, "do_" + step.operation)
        try:
            value = call(self._clients[step.user], *step.arguments)
        except Py4JJavaError as error:
            return java_class_of(error).rpartition(".")[2].rpartition("$")[2]
        if value is None:
            return "ok"
        return str(value).lower() if isinstance(value, bool) else str(value)

    @classmethod
    def can_run(cls, step: Step) -> bool:
        """Return whether WebHDFS has the call: it writes files in one go, and Java has normal paths and modes only."""
        is_normal = not any(part in argument for argument in step.arguments for part in ("//", "/./", "/.."))
        is_mode = step.operation != "chmod" or int(step.arguments[1], _OCTAL) <= 0o1777
        return hasattr(cls, "do_" + step.operation) and is_normal and is_mode

    def _path(self, path: str) -> Any:
        return self._hadoop.fs.Path(path)

    def _mode(self, octal: str) -> Any:
        return self._hadoop.fs.permission.FsPermission.createImmutable(int(octal, _OCTAL))

    # --- calls --------------------------------------------------------------------------------------------------------
    def do_mkdirs(self, fs: Any, path: str, mode: str = "755") -> None:
        assert fs.mkdirs(self._path(path), self._mode(mode))
        if int(mode, _OCTAL) > 0o777:
            self.do_chmod(fs, path, mode)  # the client drops this bit of a new directory

    def do_write(self, fs: Any, path: str, text: str, *flags: str) -> None:
        self.do_repeat(fs, path, text, "1", *flags)

    def do_repeat(self, fs: Any, path: str, text: str, times: str, *flags: str) -> None:
        options = dict(flag.partition("=")[::2] for flag in flags)
        mode, replication = self._mode(options.get("mode", "644")), int(options.get("repl", "1"))
        block_bytes = int(options.get("bs", str(128 * 1024 * 1024)))
        if "noparents" in options:
            kinds = self._hadoop.fs.CreateFlag
            wanted = self._jvm.java.util.EnumSet.of(kinds.CREATE)
            if "overwrite" in options:
                wanted.add(kinds.OVERWRITE)
            stream = fs.createNonRecursive(self._path(path), mode, wanted, 4096, replication, block_bytes, None)
        else:
            overwrite = "overwrite" in options
            stream = fs.create(self._path(path), mode, overwrite, 4096, replication, block_bytes, None)
        stream.write(text.encode() * int(times))
        stream.close()

    def do_read(self, fs: Any, path: str) -> str:
        stream = fs.open(self._path(path))
        try:
            return repr(bytes(stream.readAllBytes()).decode())
        finally:
            stream.close()

    def do_rename(self, fs: Any, source: str, target: str) -> bool:
        return bool(fs.rename(self._path(source), self._path(target)))

    def do_rename2(self, fs: Any, source: str, target: str, flag: str = "none") -> None:
        kind = getattr(self._hadoop.fs.Options.Rename, flag.upper())
        options = self._jvm.java.lang.reflect.Array.newInstance(kind.getClass(), 1)
        options[0] = kind
        fs.rename(self._path(source), self._path(target), options)

    def do_delete(self, fs: Any, path: str, flag: str = "") -> bool:
        return bool(fs.delete(self._path(path), flag == "recursive"))

    def do_concat(self, fs: Any, target: str, *sources: str) -> None:
        kind = self._path("/").getClass()
        array = self._jvm.java.lang.reflect.Array.newInstance(kind, len(sources))
        for number, source in enumerate(sources):
            array[number] = self._path(source)
        fs.concat(self._path(target), array)

    def do_truncate(self, fs: Any, path: str, length: str) -> None:
        assert fs.truncate(self._path(path), int(length)), "it is done at once"

    def do_list(self, fs: Any, path: str, flag: str = "") -> str:
        wanted = self._path(path)
        found = []
        for status in fs.listStatus(wanted):
            is_itself = status.isFile() and str(status.getPath().toUri().getPath()) == path
            name = "(itself)" if is_itself else str(status.getPath().getName())
            found.append(name + ("/" if status.isDirectory() else ""))
        return str(len(found)) if flag == "count" else " ".join(found) or "(nothing)"

    def do_stat(self, fs: Any, path: str) -> str:
        status = fs.getFileStatus(self._path(path))
        kind = "dir" if status.isDirectory() else "file"
        told = f"{kind} {status.getPermission().toShort():o} {status.getOwner()}:{status.getGroup()}"
        if status.isDirectory():
            return told
        return f"{told} {status.getLen()} bytes x{status.getReplication()}"

    def do_exists(self, fs: Any, path: str) -> bool:
        return bool(fs.exists(self._path(path)))

    def do_chmod(self, fs: Any, path: str, mode: str) -> None:
        fs.setPermission(self._path(path), self._mode(mode))

    def do_chown(self, fs: Any, path: str, owner: str) -> None:
        user, _, group = owner.partition(":")
        fs.setOwner(self._path(path), user or None, group or None)

    def do_times(self, fs: Any, path: str, mtime: str, atime: str) -> None:
        fs.setTimes(self._path(path), *(-1 if one == "-" else int(one) for one in (mtime, atime)))

    def do_when(self, fs: Any, path: str) -> str:
        status = fs.getFileStatus(self._path(path))
        return f"{status.getModificationTime()} {status.getAccessTime()}"

    def do_setrep(self, fs: Any, path: str, replication: str) -> bool:
        return bool(fs.setReplication(self._path(path), int(replication)))

    def do_summary(self, fs: Any, path: str) -> str:
        found = fs.getContentSummary(self._path(path))
        quotas = ["-" if one < 0 else str(one) for one in (found.getQuota(), found.getSpaceQuota())]
        counts = (found.getFileCount(), found.getDirectoryCount(), found.getLength(), found.getSpaceConsumed())
        return f"{counts[0]} files {counts[1]} dirs {counts[2]} bytes {counts[3]} space, quotas {' '.join(quotas)}"

    def do_setx(self, fs: Any, path: str, name: str, value: str, flag: str = "") -> None:
        kinds = self._hadoop.fs.XAttrSetFlag
        flags = self._jvm.java.util.EnumSet.allOf(kinds.CREATE.getClass())
        if flag:
            flags = self._jvm.java.util.EnumSet.of(getattr(kinds, flag.upper()))
        fs.setXAttr(self._path(path), name, value.encode(), flags)

    def do_setmany(self, fs: Any, path: str, count: str) -> None:
        for number in range(int(count)):
            self.do_setx(fs, path, f"user.{number}", "v")

    def do_getx(self, fs: Any, path: str) -> str:
        found = fs.getXAttrs(self._path(path))
        return (
            " ".join(sorted(f"{name}={bytes(value or b'').decode()}" for name, value in found.items())) or "(nothing)"
        )

    def do_rmx(self, fs: Any, path: str, name: str) -> None:
        fs.removeXAttr(self._path(path), name)

    def do_quota(self, fs: Any, path: str, names: str, space: str) -> None:
        fs.setQuota(self._path(path), *(-1 if one == "-" else int(one) for one in (names, space)))

    def do_access(self, fs: Any, path: str, bits: str) -> None:
        action = self._hadoop.fs.permission.FsAction
        wanted = action.NONE
        for letter, one in (("r", action.READ), ("w", action.WRITE), ("x", action.EXECUTE)):
            if letter in bits:
                wanted = getattr(wanted, "or")(one)
        fs.access(self._path(path), wanted)

    def do_checksum(self, fs: Any, path: str) -> str:
        found = fs.getFileChecksum(self._path(path))
        value = bytes(found.getBytes())[: found.getLength()]
        return f"{found.getAlgorithmName()} {value.hex()} {found.getLength()}"

    def do_trash(self, fs: Any) -> str:
        return str(fs.getTrashRoot(self._path("/a/b")).toUri().getPath())
