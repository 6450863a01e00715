"""Find the process that holds the write lock of an SQLite file, for a message: only it can give the lock up.

A process that is stopped, by Ctrl-Z for example, keeps the lock, and nothing else shows why all others wait.

Source: the SQLite manual, "WAL-mode File Format", 2.3 (the locks are bytes of the file ``-shm``); proc_locks(5). To ask
by fcntl, the file would have to be opened, and closing it would give up this process's own locks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["lock_holder"]

_WRITE_LOCK = 120
"""The byte of the file ``-shm`` that writers lock."""


def lock_holder(path: str) -> str:
    """Return a clause about the process that holds the write lock, with the next act; empty if it is unknown.

    It is unknown on systems other than Linux, and if the process is in another container.
    """
    with suppress(OSError, ValueError, IndexError):
        status = os.stat(f"{os.path.realpath(path)}-shm")
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1:4] == ["POSIX", "ADVISORY", "WRITE"] and fields[5] == place and _covers(fields[6], fields[7]):
                return _about(int(fields[4]))
    return ""


def _covers(first: str, last: str) -> bool:
    return int(first) <= _WRITE_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK)


def _about(pid: int) -> str:
    if pid <= 0 or pid == os.getpid():
        return ""
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    if rest.split()[0] in "Tt":
        return (
            f"process {pid} ({name}) is stopped and has locked the database: let it go on (kill -CONT {pid}) or end it"
        )
    return f"process {pid} ({name}) has locked the database: let it finish or end it"
