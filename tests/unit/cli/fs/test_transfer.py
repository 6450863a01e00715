"""A copy that is interrupted, or that fails halfway, leaves only complete files."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli.fs.items import PathErrors
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.cli.fs.places import Failed, FileOrDirectory, NamespacePlace, Sink
from holdfast.cli.fs.plan import CopySource, CopyTarget, make_copy_plan
from holdfast.cli.fs.transfer import transfer_files
from holdfast.cli.output import Output
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.namespace import Namespace, open_namespace
from holdfast.runtime import SystemIds
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.registry import open_destination
from tests.interceptors import Fault, FaultMode, Faulty
from tests.patience import PATIENCE_S, wait_until
from tests.unit.cli.fs.trees import fill, run_fs, shown


class _Shelf:
    """A place in memory. Reading ``endless`` ends only when somebody stops; reading ``bang`` raises its error."""

    has_directories = True

    def __init__(
        self,
        *names: str,
        bang: BaseException = UnavailableError("the store is gone"),  # noqa: B008  # never changed
        ready: Callable[[], bool] = lambda: True,
        ended: Callable[[], bool] = lambda: True,
    ) -> None:
        self.names = names
        self.bang = bang
        self.ready = ready
        self.ended = ended
        self.files: dict[str, bytes] = {}
        self.discarded: set[str] = set()
        self.reading = threading.Event()

    def location(self, path: str) -> str:
        return f"shelf-{id(self)}:{path}"

    def name(self, path: str) -> str:
        return path

    def join(self, directory: str, relative: str) -> str:
        return relative

    def parent(self, path: str) -> str:
        return ""

    def find(self, path: str) -> FileOrDirectory | None:
        return FileOrDirectory(path, is_directory=True) if path == "" else None

    def walk_below(self, path: str, failed: Failed) -> Iterator[FileOrDirectory]:
        for name in self.names:
            yield FileOrDirectory(name, is_directory=False, relative=name, size=4)

    def read(self, entry: FileOrDirectory, readers: int = 1) -> Iterator[bytes]:
        yield b"data"
        while entry.path == "endless":
            self.reading.set()
            yield b"more"  # until somebody stops
        if entry.path == "bang":
            wait_until(self.ready, "the other files are not copied")
            self.explode()

    def explode(self) -> None:
        """Raise the error, or press Ctrl-C until somebody notices."""
        if not isinstance(self.bang, KeyboardInterrupt):
            raise self.bang
        presses = itertools.count()

        def noticed() -> bool:
            if self.ended():
                return True
            if next(presses) % 100 == 0:  # the main thread may overlook a signal if it falls asleep at that moment
                os.kill(os.getpid(), signal.SIGINT)
            return False

        wait_until(noticed, "nobody stops")

    def create(self, path: str, *, overwrite: bool) -> Sink:
        return _Item(self, path)

    def make_directory(self, path: str) -> None:
        pass


class _Item:
    """A new file on a shelf."""

    def __init__(self, shelf: _Shelf, path: str) -> None:
        self.shelf = shelf
        self.path = path
        self.content = b""

    def write(self, data: bytes, /) -> None:
        self.content = data

    def close(self) -> None:
        self.shelf.files[self.path] = self.content

    def discard(self) -> None:
        self.shelf.discarded.add(self.path)


def _transfer(source: _Shelf, target: _Shelf) -> None:
    out = Output()
    problems = PathErrors(out)
    goal = CopyTarget(target, "", in_directory=False, overwrite=False)
    plan = make_copy_plan([CopySource(source, FileOrDirectory("", is_directory=True))], goal, problems)
    transfer_files(plan, goal, problems, out, threads=4)


def test_ctrl_c_gives_up_files_in_hand_and_keeps_complete_ones(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    target = _Shelf()
    shelf = _Shelf(
        *("done", "endless", "bang"),
        bang=KeyboardInterrupt(),
        ready=lambda: "done" in target.files and shelf.reading.is_set(),
        ended=lambda: "endless" in target.discarded,
    )
    try:
        with pytest.raises(KeyboardInterrupt):
            _transfer(shelf, target)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert "endless" in target.discarded and "endless" not in target.files
    assert target.files["done"] == b"data"
    assert "no other file is there in part" in capsys.readouterr().err


def test_an_error_of_the_store_ends_the_copy(capsys: pytest.CaptureFixture[str]) -> None:
    shelf = _Shelf(
        "done", "bang", *(f"later-{number}" for number in range(100)), bang=UnavailableError("the store is gone")
    )
    target = _Shelf()
    with pytest.raises(UnavailableError):
        _transfer(shelf, target)
    assert "bang" in target.discarded
    assert len(target.files) < 101
    assert f"copied {len(target.files)} of 102 files" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_put_of_standard_input_leaves_nothing(tmp_path: Path, number: int) -> None:
    """In a process of its own, so on SQLite; the content is already in the store when the signal comes."""
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job of a shell ignores SIGINT
        "from holdfast.cli import main\n"
        "sys.argv[1:] = sys.argv[2:]\n"
        "main()\n"
    )
    environment = {**os.environ, "HOLDFAST_NAMESPACES": str(tmp_path / "catalog.json"), "LOGNAME": "root"}
    database, data = f"sqlite://{tmp_path}/ns.db", tmp_path / "data"
    command = [sys.executable, "-c", program, "holdfast"]
    init = ["namespace", "init", "ns", "--database", database, "--data", str(data), "--superuser", "root"]
    subprocess.run([*command, *init], env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
    put = ["fs", "put", "-", "holdfast://ns/big"]
    process = subprocess.Popen(
        [*command, *put], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(bytes(20_000_000))
    process.stdin.flush()
    wait_until(lambda: any(path.is_file() for path in (data / "blobs").rglob("*")), "nothing arrives in the store")
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, b"Traceback" in said) == (128 + number, False)
    with open_namespace("holdfast://ns", database=database, user="root") as namespace:
        assert shown(namespace) == []
    assert [path for path in (data / "blobs").rglob("*") if path.is_file()] == []


def test_a_store_that_fails_leaves_no_file(ns: Namespace, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blob cannot be completed: nothing is visible, and the command ends with the code for stores."""
    (here / "large").write_bytes(bytes(1000))
    monkeypatch.setattr("holdfast.namespace.opening.open_destination", _failing(StoreOperation.FILE_CLOSE))
    result = run_fs("put", "large", ":/large")
    assert (result.exit_code, shown(ns)) == (3, [])
    assert result.stderr == "error: injected fault: repeat later\n"


def _failing(operation: StoreOperation) -> object:
    def opened(url: str, store_options: object = ()) -> object:
        found = open_destination(url)
        return replace(found, store=InterceptedStore(found.store, Faulty(Fault(FaultMode.FAIL, operation, times=99))))

    return opened


def test_a_get_that_fails_leaves_no_local_file(ns: Namespace, here: Path) -> None:
    fill(ns, "/ok")
    ns.write_file("/broken", bytes(1000))
    (blob,) = ns.blobs.store.list_page(ns.blobs.key("")).objects
    ns.blobs.store.put(blob.key, b"")
    result = run_fs("get", ":/ok", ":/broken", ".")
    assert (result.exit_code, [path.name for path in here.iterdir()]) == (1, ["ok"])
    assert "a blob of the file is too short" in result.stderr


def test_a_file_that_appears_in_the_meantime_is_kept(ns: Namespace, here: Path) -> None:
    """The race behind the check of existing files, on both sides."""
    for place, path in ((LocalPlace(SystemIds()), str(here / "x")), (NamespacePlace(ns, "holdfast://ns"), "/x")):
        sinks = [place.create(path, overwrite=False) for _ in range(2)]
        for number, sink in enumerate(sinks):
            sink.write(b"%d" % number)
        sinks[1].close()
        with pytest.raises(HoldfastError, match="has this path"):
            sinks[0].close()
        sinks[0].discard()
    assert ((here / "x").read_bytes(), ns.open("/x").read()) == (b"1", b"1")
    assert [path.name for path in here.iterdir()] == ["x"]
