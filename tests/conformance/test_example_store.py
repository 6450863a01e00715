"""Test the store of examples/sqlite-store as another package's: the whole suite, a job, and the page about it."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.commit import TWO_PHASE, SaveMode, open_context, read_history, read_snapshot, recover
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.options.write import parse_write_options
from holdfast.stores import registry
from holdfast.stores.base import iter_uploads, multipart
from holdfast.stores.conformance import run_conformance
from holdfast.stores.registry import open_destination
from tests.patience import PATIENCE_S
from tests.tidy.source_tree import ROOT

EXAMPLE = ROOT / "examples" / "sqlite-store"
PAGE = ROOT / "docs" / "how-to" / "write-a-store.md"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a directory with the module and the metadata of its build, as pip would install them."""
    directory = tmp_path_factory.mktemp("site")
    for file in ("pyproject.toml", "holdfast_sqlite.py"):
        shutil.copy(EXAMPLE / file, directory)
    program = "from setuptools.build_meta import prepare_metadata_for_build_wheel as build; build('.')"
    subprocess.run([sys.executable, "-c", program], cwd=directory, check=True, capture_output=True, timeout=PATIENCE_S)
    shutil.rmtree(directory / "holdfast_sqlite.egg-info")
    return directory


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(registry, "_by_scheme", dict(registry._by_scheme))
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "holdfast_sqlite", raising=False)
    return importlib.import_module("holdfast_sqlite")


def test_the_store_passes_every_check(installed: ModuleType, tmp_path: Path) -> None:
    options = installed.SqliteOptions(durable=False)
    store, other = (installed.SqliteStore(str(tmp_path / "suite.db"), options) for _ in range(2))
    report = run_conformance(store, other)
    assert report.passed, str(report)
    assert len(report.results) > 80


def test_a_job_of_two_phase(installed: ModuleType, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/lake.db/flights"
    given = parse_write_options({"path": url, "lockTimeout": "5", "durable": "false"}, overwrite=False)
    assert given.store.store_options == (installed.SqliteOptions(lock_timeout_s=5.0, durable=False),)
    ctx = open_context(url, store_options=given.store.store_options)
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})
    reports = []
    for task in range(3):
        with TWO_PHASE.setup_task(ctx, job, task) as attempt:
            sink = attempt.open(attempt.file_name(".txt"))
            sink.write(f"rows of {task}\n".encode())
            sink.close()
            reports.append(attempt.commit())
    assert read_snapshot(ctx).files == ()
    assert len(list(iter_uploads(multipart(ctx.store), ctx.prefix))) == 3
    assert TWO_PHASE.commit_job(ctx, job, reports, 3).committed
    files = read_snapshot(ctx).files
    assert sorted(ctx.store.get(ctx.key(file.path)) for file in files) == [
        b"rows of 0\n",
        b"rows of 1\n",
        b"rows of 2\n",
    ]
    assert list(iter_uploads(multipart(ctx.store), ctx.prefix)) == []

    lost = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})
    with TWO_PHASE.setup_task(ctx, lost, 0) as attempt:
        attempt.open(attempt.file_name(".txt")).close()
    assert [found.record.job for found in read_history(ctx).open_jobs if found.record] == [lost.job]
    recover(ctx)
    assert read_history(ctx).open_jobs == []
    assert read_snapshot(ctx).files == files


def test_urls_and_mistakes(installed: ModuleType, tmp_path: Path) -> None:
    assert open_destination("sqlite:///data/lake.db/a/b/").url == "sqlite:///data/lake.db/a/b"
    assert open_destination("sqlite:///data/lake.db").prefix == ""
    for url in ("sqlite://lake.db/t", "sqlite:///data/lake/t"):
        with pytest.raises(InvalidRequestError, match="names no database file"):
            open_destination(url)
    with pytest.raises(InvalidRequestError, match="not a number of seconds"):
        parse_write_options({"path": "sqlite:///a.db/t", "lockTimeout": "soon"}, overwrite=False)
    missing = open_destination(f"sqlite://{tmp_path}/missing/lake.db/t").store
    with pytest.raises(InvalidRequestError, match="directory does not exist"):
        missing.put("a", b"1")
    (tmp_path / "text.db").write_text("no database\n" * 100)
    with pytest.raises(CorruptDataError, match="not a SQLite database"):
        open_destination(f"sqlite://{tmp_path}/text.db/t").store.head("a")


def test_a_read_creates_no_file(installed: ModuleType, tmp_path: Path) -> None:
    store = open_destination(f"sqlite://{tmp_path}/missing/lake.db/t").store
    assert store.list_page("").objects == [] and list(iter_uploads(multipart(store), "")) == []
    with pytest.raises(NotFoundError):
        store.head("a")
    with pytest.raises(NotFoundError):
        store.get("a")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_too_long_is_refused_before_its_last_part(
    installed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when it is completed: its job would be decided by then."""
    monkeypatch.setattr(installed, "_MAX_BYTES", 10)
    store = installed.SqliteStore(str(tmp_path / "lake.db"))
    upload = store.create_upload("a")
    parts = [store.upload_part("a", upload, number, b"12345") for number in (1, 2, 2)]
    with pytest.raises(InvalidRequestError, match="longer than SQLite allows"):
        store.upload_part("a", upload, 3, b"1")
    assert store.complete_upload("a", upload, parts[:2]).size_bytes == 10
    with pytest.raises(InvalidRequestError, match="longer than SQLite allows"):
        store.put("b", b"12345678901")


def test_the_page_shows_the_example_as_it_is(
    installed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each block of the page is an excerpt of the example, or runs as it is."""
    sources = [(EXAMPLE / file).read_text() for file in ("holdfast_sqlite.py", "pyproject.toml")]
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    programs = [text for _language, text in blocks if not any(text in source for source in sources)]
    assert len(blocks) - len(programs) >= 6
    assert len(programs) == 2
    monkeypatch.chdir(tmp_path)
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok ") for line in printed[:-1])
    assert re.fullmatch(r"\['part-00000-.*\.txt'\]", printed[-1])
