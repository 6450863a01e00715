"""Find the process that has locked an SQLite file, for a message: only it can give the lock up.

A process that is stopped, by Ctrl-Z for example, keeps its locks, and nothing else shows why all others wait. Mostly it
is the write lock. But a process that is the last one to close the file, or that recovers the log, keeps others from
opening it; and one that is stopped just while it begins to read keeps others from reading.

Source: the SQLite manual, "WAL-mode File Format", 2.3 (the locks are bytes of the file ``-shm``), and os.h of SQLite
(those of the file itself); proc_locks(5). To ask by fcntl, the file would have to be opened, and closing it would give
up this process's own locks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LOCKS = (
    ("-shm", range(120, 121)),  # to write
    ("-shm", range(122, 128)),  # to recover the log; marks of readers. Byte 121 is that of checkpoints: nobody waits
    ("", range(1 << 30, (1 << 30) + 512)),  # to close the file, or to change how it is used
)
"""What keeps others waiting while somebody has it alone: the end of a file's name, and bytes of this file."""


def lock_holder(path: str) -> str:
    """Return a clause about the process that has locked a file, with the next act; empty if it is unknown.

    It is unknown on systems other than Linux, and if the process is in another container.
    """
    with suppress(OSError, ValueError, IndexError):
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        alone = [fields for fields in locks if fields[1:4] == ["POSIX", "ADVISORY", "WRITE"]]
        for ending, wanted in _LOCKS:
            status = os.stat(f"{os.path.realpath(path)}{ending}")
            place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            holders = [int(one[4]) for one in alone if one[5] == place and _overlaps(one[6], one[7], wanted)]
            for clause in filter(None, map(_about, holders)):
                return clause
    return ""


def _overlaps(first: str, last: str, wanted: range) -> bool:
    return int(first) < wanted.stop and (last == "EOF" or int(last) >= wanted.start)


def _about(pid: int) -> str:
    if pid <= 0 or pid == os.getpid():
        return ""
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    if rest.split()[0] in "Tt":
        return (
            f"process {pid} ({name}) is stopped and has locked the database: let it go on (kill -CONT {pid}) or end it"
        )
    return f"process {pid} ({name}) has locked the database: let it finish or end it"
