"""The libraries that write and read tables work on a namespace, through fsspec: `holdfast://name/path`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import duckdb
import fsspec
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyarrow.fs import FileSelector, FileType, FSSpecHandler, PyFileSystem

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, init_namespace
from holdfast.namespace.errors import FeatureUnsupportedError

DIRECTORIES = ["day=1", "with space", "ünï ☃", "%41", "a#b", "a+b&c;d", "100%"]
PATTERNS = ["a?b", "a*b", "[a]"]
"""Names that DuckDB and Dask take for patterns; pyarrow and pandas do not."""

TABLE = pyarrow.table({"number": [1, 2, 3, 4], "kind": ["x", "y z", "%41", "ünï/?#"]})


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Create the namespace `lake`; return the storage options."""
    directory = tmp_path_factory.mktemp("namespace")
    database = f"sqlite:///{directory}/ns.db?synchronous=normal"
    configuration = Configuration(name="lake", data=f"{directory}/data", superuser="me", inline_bytes=500)
    init_namespace(configuration, database, register=False)
    return {"database": database, "user": "me"}


@pytest.fixture
def fs(options: dict[str, str]) -> Iterator[NamespaceFileSystem]:
    fs: NamespaceFileSystem = fsspec.filesystem("holdfast", **options)
    yield fs
    for path in fs.ls("lake", detail=False):
        fs.rm(path, recursive=True)


@pytest.fixture(params=DIRECTORIES)
def directory(request: pytest.FixtureRequest) -> str:
    return f"lake/{request.param}"


@pytest.fixture(params=[*DIRECTORIES, *PATTERNS])
def any_directory(request: pytest.FixtureRequest) -> str:
    return f"lake/{request.param}"


class _Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("halfway")


def _pandas_csv(fs: NamespaceFileSystem, options: dict[str, str]) -> None:
    pandas.DataFrame({"a": [1] * 100_000 + [_Unprintable()]}).to_csv("holdfast://lake/a", storage_options=options)


def _fsspec_files(fs: NamespaceFileSystem, options: dict[str, str]) -> None:
    with fsspec.open_files(["holdfast://lake/a"], "w", **options) as (file,):
        file.write("1")
        raise RuntimeError


def _arrow_stream(fs: NamespaceFileSystem, options: dict[str, str]) -> None:
    with PyFileSystem(FSSpecHandler(fs)).open_output_stream("lake/a") as stream:
        stream.write(b"1" * 100_000)
        raise RuntimeError


def _parquet_writer(fs: NamespaceFileSystem, options: dict[str, str]) -> None:
    with pyarrow.parquet.ParquetWriter("lake/a", TABLE.schema, filesystem=fs) as writer:
        writer.write_table(TABLE)
        raise RuntimeError


@pytest.mark.parametrize("write", [_pandas_csv, _fsspec_files, _arrow_stream, _parquet_writer])
def test_a_library_that_fails_halfway_leaves_the_old_file(
    fs: NamespaceFileSystem, options: dict[str, str], write: Callable[[NamespaceFileSystem, dict[str, str]], None]
) -> None:
    fs.pipe_file("lake/a", b"good")
    with pytest.raises(RuntimeError):
        write(fs, options)
    assert fs.cat_file("lake/a") == b"good"


def _sorted(table: pyarrow.Table) -> pyarrow.Table:
    return table.select(["number", "kind"]).sort_by("number")


def _write_dataset(fs: Any, path: str) -> None:
    partitioning = pyarrow.dataset.partitioning(pyarrow.schema([("kind", pyarrow.string())]), flavor="hive")
    pyarrow.dataset.write_dataset(TABLE, path, format="parquet", partitioning=partitioning, filesystem=fs)


# --- pyarrow ----------------------------------------------------------------------------------------------------------
def test_pyarrow_datasets(fs: NamespaceFileSystem, any_directory: str) -> None:
    _write_dataset(fs, f"{any_directory}/table")
    assert len(fs.find(f"{any_directory}/table")) == 4
    dataset = pyarrow.dataset.dataset(f"{any_directory}/table", filesystem=fs, partitioning="hive")
    assert _sorted(dataset.to_table()) == TABLE
    assert dataset.to_table(filter=pyarrow.dataset.field("kind") == "%41")["number"].to_pylist() == [3]


def test_pyarrow_files(fs: NamespaceFileSystem, any_directory: str) -> None:
    handled = PyFileSystem(FSSpecHandler(fs))
    path = f"{any_directory}/a.parquet"
    pyarrow.parquet.write_table(TABLE, path, filesystem=handled)
    assert pyarrow.parquet.read_table(path, filesystem=handled) == TABLE
    info = handled.get_file_info(path)
    assert (info.type, info.size, info.mtime) == (FileType.File, fs.size(path), fs.modified(path))
    handled.create_dir(f"{any_directory}/deep/er")
    handled.move(path, f"{any_directory}/deep/b.parquet")
    if any_directory.removeprefix("lake/") in PATTERNS:  # pyarrow passes it on as one string
        with pytest.raises(FeatureUnsupportedError, match="give two lists"):
            handled.copy_file(f"{any_directory}/deep/b.parquet", f"{any_directory}/c.parquet")
        fs.copy([f"{any_directory}/deep/b.parquet"], [f"{any_directory}/c.parquet"])
    else:
        handled.copy_file(f"{any_directory}/deep/b.parquet", f"{any_directory}/c.parquet")
    found = handled.get_file_info(FileSelector(any_directory, recursive=True))
    assert sorted(one.path.removeprefix(f"{any_directory}/") for one in found) == [
        "c.parquet",
        "deep",
        "deep/b.parquet",
        "deep/er",
    ]
    assert handled.get_file_info(f"{any_directory}/none").type == FileType.NotFound
    handled.delete_dir_contents(f"{any_directory}/deep")
    handled.delete_file(f"{any_directory}/c.parquet")
    assert [one.path for one in handled.get_file_info(FileSelector(any_directory))] == [f"{any_directory}/deep"]


def test_a_whole_dataset_appears_in_one_step(fs: NamespaceFileSystem) -> None:
    with fs.transaction:
        _write_dataset(fs, "lake/table")
        assert fs.find("lake/table") == []
    assert _sorted(pyarrow.dataset.dataset("lake/table", filesystem=fs, partitioning="hive").to_table()) == TABLE

    def fails() -> None:
        with fs.transaction:
            _write_dataset(fs, "lake/failed")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert fs.find("lake/failed") == []


# --- pandas -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "json", "parquet", "pkl"])
def test_pandas_files(any_directory: str, options: dict[str, str], fs: NamespaceFileSystem, kind: str) -> None:
    frame, url = TABLE.to_pandas(), f"holdfast://{any_directory}/a.{kind}"
    match kind:
        case "csv" | "csv.gz":
            frame.to_csv(url, index=False, storage_options=options)
            again = pandas.read_csv(url, storage_options=options)
        case "json":
            frame.to_json(url, storage_options=options)
            again = pandas.read_json(url, storage_options=options)
        case "parquet":
            frame.to_parquet(url, storage_options=options)
            again = pandas.read_parquet(url, storage_options=options)
        case _:
            frame.to_pickle(url, storage_options=options)
            again = pandas.read_pickle(url, storage_options=options)
    assert again.equals(frame) and fs.find("lake") == [f"{any_directory}/a.{kind}"]


def test_pandas_partitions(any_directory: str, options: dict[str, str], fs: NamespaceFileSystem) -> None:
    url = f"holdfast://{any_directory}/table"
    TABLE.to_pandas().to_parquet(url, partition_cols=["kind"], storage_options=options)
    again = pandas.read_parquet(url, storage_options=options).sort_values("number")
    assert list(again["number"]) == [1, 2, 3, 4] and list(again["kind"]) == TABLE["kind"].to_pylist()
    with pytest.raises(FileNotFoundError):
        pandas.read_csv(f"holdfast://{any_directory}/none.csv", storage_options=options)


# --- DuckDB -----------------------------------------------------------------------------------------------------------
def test_duckdb(fs: NamespaceFileSystem, directory: str) -> None:
    url = f"holdfast://{directory}"
    with duckdb.connect() as connection:
        connection.register_filesystem(fs)
        connection.execute("CREATE TABLE numbers AS SELECT i, i % 3 AS part FROM range(100) AS t(i)")
        connection.execute(f"COPY numbers TO '{url}/a.parquet' (FORMAT parquet)")
        connection.execute(f"COPY numbers TO '{url}/a.csv' (FORMAT csv)")
        connection.execute(f"COPY numbers TO '{url}/table' (FORMAT parquet, PARTITION_BY (part))")
        assert len(fs.find(f"{directory}/table")) == 3
        for source in (f"'{url}/a.parquet'", f"'{url}/a.csv'", f"'{url}/table/*/*.parquet'"):
            assert connection.execute(f"SELECT count(*), sum(i) FROM {source}").fetchone() == (100, 4950)
        query = f"SELECT part, count(*) FROM read_parquet('{url}/table/**/*.parquet', hive_partitioning=true)"
        assert connection.execute(f"{query} GROUP BY part ORDER BY part").fetchall() == [(0, 34), (1, 33), (2, 33)]
        with pytest.raises(duckdb.Error):
            connection.execute(f"SELECT * FROM '{url}/none.parquet'")


# --- Dask -------------------------------------------------------------------------------------------------------------
@pytest.fixture
def _dask_threads() -> Iterator[None]:
    """Let Dask work in threads that end with the test; each gets a filesystem of its own from fsspec."""
    with ThreadPoolExecutor(2) as pool, dask.config.set(scheduler="threads", pool=pool):
        yield


@pytest.mark.usefixtures("_dask_threads")
def test_dask(directory: str, options: dict[str, str], fs: NamespaceFileSystem) -> None:
    url = f"holdfast://{directory}"
    frame = pandas.DataFrame({"number": range(20), "part": list("xy") * 10})
    parts = dask.dataframe.from_pandas(frame, npartitions=4)
    parts.to_parquet(f"{url}/table", storage_options=options)
    again = dask.dataframe.read_parquet(f"{url}/table", storage_options=options)
    assert again.npartitions == 4 and list(again.compute()["number"]) == list(range(20))
    parts.to_parquet(f"{url}/partitions", partition_on=["part"], storage_options=options)
    assert {path.split("/")[-2] for path in fs.find(f"{directory}/partitions")} == {"part=x", "part=y"}
    again = dask.dataframe.read_parquet(f"{url}/partitions", filters=[("part", "==", "x")], storage_options=options)
    assert sorted(again.compute()["number"]) == list(range(0, 20, 2))
    parts.to_csv(f"{url}/lines/*.csv", index=False, storage_options=options)
    again = dask.dataframe.read_csv(f"{url}/lines/*.csv", blocksize=30, storage_options=options)
    assert sorted(again.compute()["number"]) == list(range(20))


# --- polars -----------------------------------------------------------------------------------------------------------
def test_polars_takes_open_files_and_datasets(fs: NamespaceFileSystem, any_directory: str) -> None:
    """It has readers of its own for URLs, which know nothing about fsspec."""
    frame = polars.from_arrow(TABLE)
    assert isinstance(frame, polars.DataFrame)
    for kind in ("parquet", "csv", "ipc"):
        with fs.open(f"{any_directory}/a.{kind}", "wb") as file:
            getattr(frame, f"write_{kind}")(file)
        with fs.open(f"{any_directory}/a.{kind}", "rb") as file:
            assert getattr(polars, f"read_{kind}")(file).equals(frame)
    _write_dataset(fs, f"{any_directory}/table")
    dataset = pyarrow.dataset.dataset(f"{any_directory}/table", filesystem=fs, partitioning="hive")
    found = polars.scan_pyarrow_dataset(dataset).filter(polars.col("number") > 2).sort("number").collect()
    assert found["kind"].to_list() == TABLE["kind"].to_pylist()[2:]


def test_a_file_of_this_machine_goes_there_and_back(fs: NamespaceFileSystem, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.parquet")
    fs.put(str(tmp_path / "a.parquet"), "lake/dir/")
    fs.get("lake/dir/a.parquet", str(tmp_path / "b.parquet"))
    assert pyarrow.parquet.read_table(tmp_path / "b.parquet") == TABLE
