"""Compare each operation with the answers that a real HDFS gave to the same calls (see `hdfs_cases`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace import FileStatus, Namespace
from holdfast.namespace.file_writer import FileWriter
from tests.namespace_world import World
from tests.unit.namespace.hdfs_cases import FILES, GROUPS, NOT_OPEN, SUPERUSER, Case, Step, read_cases

CASES = {f"{file.stem}: {case.title}": case for file in FILES for case in read_cases(file)}


_BAD_ARGUMENT = {"HadoopIllegalArgumentException", "IllegalArgumentException"}
"""What HDFS's server and its client raise for a bad argument: one is a subclass of the other."""


class Client:
    """Runs the calls of the cases on a namespace."""

    def __init__(self, world: World, locks: bool) -> None:
        self._namespaces = {user: world.client(user, groups, locks=locks) for user, groups in GROUPS.items()}
        self._handles: dict[str, FileWriter] = {}

    def answer(self, step: Step) -> str:
        call: Callable[..., object] = getattr(self, "do_" + step.operation)
        if step.operation in ("put", "sync", "close") and step.arguments[0] not in self._handles:
            return NOT_OPEN
        try:
            value = call(self._namespaces[step.user], *step.arguments)
        except Exception as error:
            java_class = getattr(error, "java_class", None)
            if java_class is not None:
                return str(java_class).rpartition(".")[2].rpartition("$")[2]
            if type(error) is InvalidRequestError:
                return "HadoopIllegalArgumentException"
            raise
        if value is None:
            return "ok"
        return str(value).lower() if isinstance(value, bool) else str(value)

    # --- calls --------------------------------------------------------------------------------------------------------
    def do_mkdirs(self, ns: Namespace, path: str, mode: str = "755") -> None:
        ns.mkdirs(path, mode=int(mode, 8))

    def do_mkdir(self, ns: Namespace, path: str, mode: str = "755") -> None:
        ns.mkdirs(path, mode=int(mode, 8), parents=False)

    def do_write(self, ns: Namespace, path: str, text: str, *flags: str) -> None:
        with ns.create(path, **_options(flags)) as file:  # type: ignore[arg-type]  # by name
            file.write(text.encode())

    def do_repeat(self, ns: Namespace, path: str, text: str, times: str, *flags: str) -> None:
        self.do_write(ns, path, text * int(times), *flags)

    def do_open(self, ns: Namespace, handle: str, path: str, *flags: str) -> None:
        self._handles[handle] = ns.create_with_lease(path, **_options(flags))  # type: ignore[arg-type]  # by name

    def do_append(self, ns: Namespace, handle: str, path: str) -> None:
        self._handles[handle] = ns.append(path)

    def do_put(self, ns: Namespace, handle: str, text: str) -> None:
        self._handles[handle].write(text.encode())

    def do_sync(self, ns: Namespace, handle: str) -> None:
        self._handles[handle].sync()

    def do_close(self, ns: Namespace, handle: str) -> None:
        self._handles[handle].close()

    def do_read(self, ns: Namespace, path: str) -> str:
        return repr(ns.open(path).read().decode())

    def do_rename(self, ns: Namespace, source: str, target: str) -> bool:
        return ns.rename_into(source, target)

    def do_rename2(self, ns: Namespace, source: str, target: str, flag: str = "") -> None:
        ns.rename(source, target, overwrite=flag == "overwrite")

    def do_delete(self, ns: Namespace, path: str, flag: str = "") -> bool:
        return ns.delete(path, recursive=flag == "recursive")

    def do_concat(self, ns: Namespace, target: str, *sources: str) -> None:
        ns.concat(target, sources)

    def do_truncate(self, ns: Namespace, path: str, length: str) -> None:
        ns.truncate(path, int(length))

    def do_list(self, ns: Namespace, path: str, flag: str = "") -> str:
        found = list(ns.list(path))
        if flag == "count":
            return str(len(found))
        if len(found) == 1 and found[0].path == path:
            return "(itself)"
        return " ".join(one.name + ("/" if one.is_directory else "") for one in found) or "(nothing)"

    def do_stat(self, ns: Namespace, path: str) -> str:
        return _told(ns.status(path))

    def do_exists(self, ns: Namespace, path: str) -> bool:
        return ns.exists(path)

    def do_chmod(self, ns: Namespace, path: str, mode: str) -> None:
        ns.set_permission(path, int(mode, 8))

    def do_chown(self, ns: Namespace, path: str, owner: str) -> None:
        user, _, group = owner.partition(":")
        ns.set_owner(path, user or None, group or None)

    def do_times(self, ns: Namespace, path: str, mtime: str, atime: str) -> None:
        ns.set_times(path, *(None if one == "-" else int(one) for one in (mtime, atime)))

    def do_when(self, ns: Namespace, path: str) -> str:
        status = ns.status(path)
        return f"{status.mtime_ms} {status.atime_ms}"

    def do_setrep(self, ns: Namespace, path: str, replication: str) -> bool:
        return ns.set_replication(path, int(replication))

    def do_summary(self, ns: Namespace, path: str) -> str:
        found = ns.content_summary(path)
        quotas = ["-" if one is None else str(one) for one in (found.names_quota, found.space_quota)]
        counts = f"{found.files} files {found.directories} dirs {found.size} bytes {found.space} space"
        return f"{counts}, quotas {' '.join(quotas)}"

    def do_setx(self, ns: Namespace, path: str, name: str, value: str, flag: str = "") -> None:
        ns.set_xattr(path, name, value.encode(), create=flag != "replace", replace_existing=flag != "create")

    def do_setmany(self, ns: Namespace, path: str, count: str) -> None:
        for number in range(int(count)):
            ns.set_xattr(path, f"user.{number}", b"v")

    def do_setlong(self, ns: Namespace, path: str, name: str, length: str) -> None:
        ns.set_xattr(path, name, b"v" * int(length))

    def do_getx(self, ns: Namespace, path: str) -> str:
        found = ns.xattrs(path)
        return " ".join(sorted(f"{name}={value.decode()}" for name, value in found.items())) or "(nothing)"

    def do_rmx(self, ns: Namespace, path: str, name: str) -> None:
        ns.remove_xattr(path, name)

    def do_quota(self, ns: Namespace, path: str, names: str, space: str) -> None:
        limits = [None if one == "-" else int(one) for one in (names, space)]
        ns.set_quota(path, names=limits[0], space=limits[1])

    def do_access(self, ns: Namespace, path: str, bits: str) -> None:
        ns.check_access(path, sum(bit for letter, bit in zip("rwx", (4, 2, 1), strict=True) if letter in bits))

    def do_checksum(self, ns: Namespace, path: str) -> str:
        found = ns.checksum(path)
        return f"{found.algorithm} {found.value.hex()} {len(found.value)}"

    def do_recover(self, ns: Namespace, path: str) -> str:
        return "ok" if ns.recover_lease(path) else "not yet"

    def do_trash(self, ns: Namespace) -> str:
        return ns.trash_root()


def _options(flags: tuple[str, ...]) -> dict[str, object]:
    given = dict(flag.partition("=")[::2] for flag in flags)
    numbers = {"mode": ("mode", 8), "repl": ("replication", 10), "bs": ("block_size", 10)}
    options: dict[str, object] = {
        name: int(given[short], base) for short, (name, base) in numbers.items() if short in given
    }
    return options | {"overwrite": "overwrite" in given, "parents": "noparents" not in given}


def _told(status: FileStatus) -> str:
    told = f"{'dir' if status.is_directory else 'file'} {status.mode:o} {status.owner}:{status.group}"
    return told if status.is_directory else f"{told} {status.size} bytes x{status.replication}"


def _run(case: Case, *, inline_bytes: int = 65536, locks: bool = False) -> None:
    client = Client(World(inline_bytes=inline_bytes, superuser=SUPERUSER), locks)
    wrong = []
    for step in case.steps:
        answer = client.answer(step)
        if answer != step.ours and not {answer, step.ours} <= _BAD_ARGUMENT:
            wrong.append(f"{step.call} -> {answer}, and HDFS {step.ours}")
    assert wrong == []


@pytest.mark.parametrize("title", CASES)
def test_small_files(title: str) -> None:
    """Contents are records of the database."""
    _run(CASES[title])


@pytest.mark.parametrize("title", CASES)
def test_large_files(title: str) -> None:
    """Contents are blobs, written in parts."""
    _run(CASES[title], inline_bytes=0)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_operations_that_lock_answer_the_same(file: Path) -> None:
    for case in read_cases(file):
        _run(case, locks=True)
