"""Record what HDFS answers to the cases in ``tests/unit/namespace/recorded``, for the default tests.

``python -m tests.integration.record_hdfs [file]`` needs ``HOLDFAST_HDFS_JARS``: a folder with the jars of
``org.apache.hadoop:hadoop-client-minicluster`` and its dependencies. It starts a name node and a data node in one JVM,
runs the calls of each case through Hadoop's client, and writes the answers behind the calls.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.patience import wait_until
from tests.unit.namespace.hdfs_cases import FILES, GROUPS, NOT_OPEN, SUPERUSER, Case, Step, read_cases

_BLOCK_BYTES = 128 * 1024 * 1024


class Hdfs:
    """A real HDFS: one client for each user."""

    def __init__(self, jvm: Any, scratch: str) -> None:
        self._jvm = jvm
        hadoop = self._hadoop = jvm.org.apache.hadoop
        conf = hadoop.conf.Configuration()
        settings = {
            "hdfs.minidfs.basedir": scratch,
            "fs.permissions.umask-mode": "000",
            "dfs.namenode.fs-limits.min-block-size": "512",
            "dfs.blocksize": str(_BLOCK_BYTES),
            "dfs.namenode.accesstime.precision": "3600000",
            "dfs.replication": "1",
            "dfs.namenode.lease-recheck-interval-ms": "200",
            "dfs.heartbeat.interval": "1",
        }
        for name, value in settings.items():
            conf.set(name, value)
        self.cluster = hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(1).build()
        self.cluster.waitActive()
        self._clients: dict[str, Any] = {}
        for user, groups in GROUPS.items():
            identity = hadoop.security.UserGroupInformation.createUserForTesting(user, _strings(jvm, groups))
            self._clients[user] = hadoop.hdfs.DFSTestUtil.getFileSystemAs(identity, conf)
        self._handles: dict[str, Any] = {}

    def clear(self) -> None:
        """Make the file system empty."""
        self._handles.clear()
        fs = self._clients[SUPERUSER]
        root = self._path("/")
        for status in fs.listStatus(root):
            if status.isDirectory():
                fs.setQuota(status.getPath(), -1, -1)
            fs.delete(status.getPath(), True)
        fs.setPermission(root, self._mode("755"))
        fs.setOwner(root, SUPERUSER, "supergroup")

    def answer(self, step: Step) -> str:
        """Run a call; return its value, or the class of its exception."""
        call: Callable[..., object] = getattr(self, "do_" + step.operation)
        if step.operation in ("put", "sync", "close") and step.arguments[0] not in self._handles:
            return NOT_OPEN
        try:
            value = call(self._clients[step.user], *step.arguments)
        except Py4JJavaError as error:
            return self._told(error.java_exception)
        if value is None:
            return "ok"
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _told(self, error: Any) -> str:
        name = str(error.getClass().getName())
        if name.endswith("RemoteException"):
            name = str(error.getClassName())
        if "-v" in sys.argv:
            print("   ", name, str(error.getMessage()).splitlines()[:1])
        return name.rpartition(".")[2].rpartition("$")[2]

    def _path(self, path: str) -> Any:
        return self._hadoop.fs.Path(path)

    def _mode(self, octal: str) -> Any:
        return self._hadoop.fs.permission.FsPermission.createImmutable(int(octal, 8))

    # --- calls --------------------------------------------------------------------------------------------------------
    def do_mkdirs(self, fs: Any, path: str, mode: str = "755") -> None:
        fs.getClient().getNamenode().mkdirs(path, self._mode(mode), True)

    def do_mkdir(self, fs: Any, path: str, mode: str = "755") -> None:
        fs.getClient().getNamenode().mkdirs(path, self._mode(mode), False)

    def do_write(self, fs: Any, path: str, text: str, *flags: str) -> None:
        stream = self._create(fs, path, flags)
        stream.write(text.encode())
        stream.close()

    def do_repeat(self, fs: Any, path: str, text: str, times: str, *flags: str) -> None:
        stream = self._create(fs, path, flags)
        data = text.encode() * int(times)
        stream.write(data)
        stream.close()

    def _create(self, fs: Any, path: str, flags: tuple[str, ...]) -> Any:
        options = dict(flag.partition("=")[::2] for flag in flags)
        kinds = self._jvm.org.apache.hadoop.fs.CreateFlag
        wanted = self._jvm.java.util.EnumSet.of(kinds.CREATE)
        if "overwrite" in options:
            wanted.add(kinds.OVERWRITE)
        client = fs.getClient()
        output = client.create(
            path,
            self._mode(options.get("mode", "644")),
            wanted,
            "noparents" not in options,
            int(options.get("repl", "1")),
            int(options.get("bs", str(_BLOCK_BYTES))),
            None,
            4096,
            None,
        )
        return client.createWrappedOutputStream(output, None)

    def do_open(self, fs: Any, handle: str, path: str, *flags: str) -> None:
        self._handles[handle] = self._create(fs, path, flags)

    def do_append(self, fs: Any, handle: str, path: str) -> None:
        self._handles[handle] = fs.append(self._path(path))

    def do_put(self, fs: Any, handle: str, text: str) -> None:
        self._handles[handle].write(text.encode())

    def do_sync(self, fs: Any, handle: str) -> None:
        self._handles[handle].hflush()

    def do_close(self, fs: Any, handle: str) -> None:
        self._handles[handle].close()

    def do_read(self, fs: Any, path: str) -> str:
        stream = fs.open(self._path(path))
        try:
            found = bytearray()
            while True:
                one = stream.read()
                if one < 0:
                    return repr(found.decode())
                found.append(one)
        finally:
            stream.close()

    def do_rename(self, fs: Any, source: str, target: str) -> bool:
        return bool(fs.getClient().getNamenode().rename(source, target))

    def do_rename2(self, fs: Any, source: str, target: str, flag: str = "none") -> None:
        kind = getattr(self._jvm.org.apache.hadoop.fs.Options.Rename, flag.upper())
        options = self._jvm.java.lang.reflect.Array.newInstance(kind.getClass(), 1)
        options[0] = kind
        fs.getClient().getNamenode().rename2(source, target, options)

    def do_delete(self, fs: Any, path: str, flag: str = "") -> bool:
        return bool(fs.getClient().getNamenode().delete(path, flag == "recursive"))

    def do_concat(self, fs: Any, target: str, *sources: str) -> None:
        fs.getClient().getNamenode().concat(target, _strings(self._jvm, list(sources)))

    def do_truncate(self, fs: Any, path: str, length: str) -> None:
        if not fs.getClient().truncate(path, int(length)):
            wait_until(lambda: fs.isFileClosed(self._path(path)), "the last block was not recovered")

    def do_list(self, fs: Any, path: str, flag: str = "") -> str:
        found = []
        start = self._jvm.org.apache.hadoop.hdfs.protocol.HdfsFileStatus.EMPTY_NAME
        page = fs.getClient().listPaths(path, start)
        if page is None:
            return "FileNotFoundException"
        for status in page.getPartialListing():
            name = str(status.getLocalName())
            found.append(name + ("/" if status.isDirectory() else "") or "(itself)")
        return str(len(found)) if flag == "count" else " ".join(found) or "(nothing)"

    def do_stat(self, fs: Any, path: str) -> str:
        status = fs.getClient().getFileInfo(path)
        if status is None:
            return "FileNotFoundException"
        kind = "dir" if status.isDirectory() else "file"
        mode = f"{status.getPermission().toShort():o}"
        told = f"{kind} {mode} {status.getOwner()}:{status.getGroup()}"
        if status.isDirectory():
            return told
        return f"{told} {status.getLen()} bytes x{status.getReplication()}"

    def do_exists(self, fs: Any, path: str) -> bool:
        return bool(fs.exists(self._path(path)))

    def do_chmod(self, fs: Any, path: str, mode: str) -> None:
        fs.getClient().getNamenode().setPermission(path, self._mode(mode))

    def do_chown(self, fs: Any, path: str, owner: str) -> None:
        user, _, group = owner.partition(":")
        fs.getClient().getNamenode().setOwner(path, user or None, group or None)

    def do_times(self, fs: Any, path: str, mtime: str, atime: str) -> None:
        fs.getClient().getNamenode().setTimes(path, *(-1 if one == "-" else int(one) for one in (mtime, atime)))

    def do_when(self, fs: Any, path: str) -> str:
        status = fs.getClient().getFileInfo(path)
        return f"{status.getModificationTime()} {status.getAccessTime()}"

    def do_setrep(self, fs: Any, path: str, replication: str) -> bool:
        return bool(fs.getClient().getNamenode().setReplication(path, int(replication)))

    def do_summary(self, fs: Any, path: str) -> str:
        found = fs.getContentSummary(self._path(path))
        quotas = ["-" if one < 0 else str(one) for one in (found.getQuota(), found.getSpaceQuota())]
        counts = (found.getFileCount(), found.getDirectoryCount(), found.getLength(), found.getSpaceConsumed())
        return f"{counts[0]} files {counts[1]} dirs {counts[2]} bytes {counts[3]} space, quotas {' '.join(quotas)}"

    def do_setx(self, fs: Any, path: str, name: str, value: str, flag: str = "") -> None:
        kinds = self._jvm.org.apache.hadoop.fs.XAttrSetFlag
        flags = self._jvm.java.util.EnumSet.allOf(kinds.CREATE.getClass())
        if flag:
            flags = self._jvm.java.util.EnumSet.of(getattr(kinds, flag.upper()))
        fs.setXAttr(self._path(path), name, value.encode(), flags)

    def do_setmany(self, fs: Any, path: str, count: str) -> None:
        for number in range(int(count)):
            self.do_setx(fs, path, f"user.{number}", "v")

    def do_setlong(self, fs: Any, path: str, name: str, length: str) -> None:
        self.do_setx(fs, path, name, "v" * int(length))

    def do_getx(self, fs: Any, path: str) -> str:
        found = fs.getXAttrs(self._path(path))
        return (
            " ".join(sorted(f"{name}={bytes(value or b'').decode()}" for name, value in found.items())) or "(nothing)"
        )

    def do_rmx(self, fs: Any, path: str, name: str) -> None:
        fs.removeXAttr(self._path(path), name)

    def do_quota(self, fs: Any, path: str, names: str, space: str) -> None:
        fs.getClient().setQuota(path, *(-1 if one == "-" else int(one) for one in (names, space)))

    def do_access(self, fs: Any, path: str, bits: str) -> None:
        action = self._jvm.org.apache.hadoop.fs.permission.FsAction
        wanted = action.NONE
        for letter, one in (("r", action.READ), ("w", action.WRITE), ("x", action.EXECUTE)):
            if letter in bits:
                wanted = getattr(wanted, "or")(one)
        fs.access(self._path(path), wanted)

    def do_checksum(self, fs: Any, path: str) -> str:
        found = fs.getFileChecksum(self._path(path))
        value = bytes(found.getBytes())[: found.getLength()]
        return f"{found.getAlgorithmName()} {value.hex()} {found.getLength()}"

    def do_recover(self, fs: Any, path: str) -> str:
        target = self._path(path)
        fs.recoverLease(target)
        wait_until(lambda: fs.isFileClosed(target), "the lease was not recovered")
        return "ok"

    def do_trash(self, fs: Any) -> str:
        return str(fs.getTrashRoot(self._path("/a/b")).toUri().getPath())


def _strings(jvm: Any, values: list[str]) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.String"), len(values))
    for number, value in enumerate(values):
        array[number] = value
    return array


def record(hdfs: Hdfs, file: Path) -> None:
    """Write HDFS's answers behind the calls of a file."""
    lines = file.read_text("utf-8").splitlines()
    for case in read_cases(file):
        hdfs.clear()
        _record_case(hdfs, case, lines)
    file.write_text("\n".join(lines) + "\n", "utf-8")


def _record_case(hdfs: Hdfs, case: Case, lines: list[str]) -> None:
    for step in case.steps:
        answer = hdfs.answer(step)
        ours = f" | ours: {step.ours}" if step.ours != step.answer else ""
        lines[step.line - 1] = f"{step.call} -> {answer}{ours}"
        if "-v" in sys.argv:
            print(case.title, "|", lines[step.line - 1], flush=True)


def main(files: list[Path]) -> None:
    os.environ["HADOOP_USER_NAME"] = SUPERUSER
    jars = ":".join(map(str, sorted(Path(os.environ["HOLDFAST_HDFS_JARS"]).glob("*.jar"))))
    with tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere:
        port = launch_gateway(classpath=jars, die_on_exit=True, redirect_stdout=nowhere, redirect_stderr=nowhere)
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True, auto_field=True))
        hdfs = Hdfs(gateway.jvm, scratch)
        try:
            for file in files:
                record(hdfs, file)
        finally:
            hdfs.cluster.shutdown()
            gateway.shutdown()


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if not name.startswith("-")]
    main([file for file in FILES if not named or file.stem in named])
