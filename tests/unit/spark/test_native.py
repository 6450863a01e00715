"""What Spark's own reader is given, without Spark: which paths, looked at twice, and with which options."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from holdfast.commit import TWO_PHASE, SaveMode, Snapshot, open_context
from holdfast.errors import InvalidRequestError, NotFoundError, UnavailableError
from holdfast.formats import get_format
from holdfast.options.location import LocationOptions
from holdfast.options.read import ReadOptions
from holdfast.options.values import Condition
from holdfast.spark import native
from holdfast.spark.file_format import DestinationFormat
from holdfast.spark.hadoop_path import find_hadoop_path
from holdfast.spark.native import explain_unsupported_columns, explain_unsupported_options
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.s3 import S3Options
from holdfast.table.contract import TableRecord
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash

SESSION: Any = SimpleNamespace(version="4.3.0", conf=SimpleNamespace(get=lambda _name, default="": default))


# --- which files ------------------------------------------------------------------------------------------------------
def run_job(url: Path, name: str, mode: SaveMode = SaveMode.APPEND, *faults: Fault) -> None:
    """A job with one file in each of two directories, which hold its name."""
    record = TableRecord(
        fields=[{"name": name, "type": kind} for name, kind in (("value", "string"), ("k", "long"))],
        file_format="parquet",
        partition_by=("k",),
        reader_options={},
    )
    ctx = replace(open_context(str(url), threads=1), contract=lambda *_: record.encode())
    job = TWO_PHASE.setup_job(ctx, mode, {})
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        for number in range(2):
            path = f"k={number}/{attempt.file_name('.txt')}"
            sink = attempt.open(path)
            sink.write(name.encode())
            sink.close()
            attempt.record_rows(path, 1)
        message = attempt.commit()
    with contextlib.suppress(SimulatedCrash):
        TWO_PHASE.commit_job(replace(ctx, store=InterceptedStore(ctx.store, Faulty(*faults))), job, [message], 1)
    ctx.close()


def read(monkeypatch: pytest.MonkeyPatch, url: Path, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
    """What the files hold that Spark would read; `meanwhile` happens while it lists, between two directories."""

    def load(*given: Any) -> list[str]:
        paths: list[str] = given[-1]
        files: list[Path] = []
        for path in (Path(one.removeprefix("file://")) for one in paths):
            if path.is_file():
                files.append(path)
            else:
                files += path.glob("k=0/part-*")
                meanwhile()
                files += path.glob("k=1/part-*")
        return sorted(file.read_text() for file in files)

    monkeypatch.setattr(native, "load_frame", load)
    monkeypatch.setattr(native, "mismatch_reason", lambda *_: "")
    monkeypatch.setattr(native, "select_requested_columns", lambda frame, *_: frame)
    monkeypatch.setattr(native, "find_hadoop_path", lambda *_: (f"file://{url}", ""))
    found: Any = native.make_native_dataframe(SESSION, ReadOptions(store=LocationOptions(url=str(url))))
    return list(found)


def test_what_is_decided_while_spark_lists_is_seen_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first listing has half of it: Spark lists again."""
    run_job(tmp_path, "old")
    jobs = iter(["new"])

    def meanwhile() -> None:
        for name in jobs:
            run_job(tmp_path, name)

    assert read(monkeypatch, tmp_path, meanwhile) == ["new", "new", "old", "old"]


def test_a_destination_that_never_rests_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "_ATTEMPTS", 3)
    run_job(tmp_path, "old")
    with pytest.raises(UnavailableError, match="read again"):
        read(monkeypatch, tmp_path, lambda: run_job(tmp_path, "new"))


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
@pytest.mark.parametrize("mark", ["visible", "done"])
def test_while_a_decision_waits_spark_gets_the_files_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: SaveMode, mark: str
) -> None:
    """A driver died before its job was visible, or before what it replaces was gone: a directory shows both."""
    run_job(tmp_path, "old")
    run_job(tmp_path, "new", mode, Fault(FaultMode.CRASH_BEFORE, key=f"*.{mark}"))
    old, new = ["old"] * 2, ["new"] * 2
    added = sorted(old + new) if mode is SaveMode.APPEND else new
    assert read(monkeypatch, tmp_path) == (old if mark == "visible" else added)


@pytest.mark.parametrize("reader", ["auto", "native"])
def test_files_that_spark_does_not_find(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reader: str) -> None:
    """Whoever asked for Spark's reader hears so; else the Python reader may find them."""
    run_job(tmp_path, "old")

    def load(*_: object) -> None:
        raise NotFoundError("there is nothing to read: check the URL", url="file:///t")

    monkeypatch.setattr(native, "load_frame", load)
    monkeypatch.setattr(native, "find_hadoop_path", lambda *_: (f"file://{tmp_path}", ""))
    options = ReadOptions(store=LocationOptions(url=str(tmp_path)), reader=reader)
    if reader == "auto":
        assert native.make_native_dataframe(SESSION, options) is None
    else:
        with pytest.raises(NotFoundError, match="there is nothing to read"):
            native.make_native_dataframe(SESSION, options)


# --- with which options -----------------------------------------------------------------------------------------------
def spark_options(file_format: str, **options: str) -> dict[str, str]:
    record = TableRecord(
        fields=[{"name": "t", "type": "timestamp"}, {"name": "id", "type": "long"}],
        file_format=file_format,
        reader_options=get_format(file_format).reader_options(get_format(file_format).default_options),
        partition_by=("t",),
    )
    snapshot = Snapshot(head=1, files=(), table=record.encode())
    read = ReadOptions(store=LocationOptions(url="/data"), file_format=file_format, format_options=options)
    return native.spark_options(DestinationFormat.of(read, snapshot))


def test_files_are_read_with_the_options_that_they_were_written_with() -> None:
    """The table keeps them; a call that says otherwise is refused, and those of another format count nothing."""
    record = TableRecord(fields=[{"name": "a", "type": "long"}], file_format="csv", reader_options={"sep": ";"})
    snapshot = Snapshot(head=1, files=(), table=record.encode())

    def chosen(file_format: str | None = None, **options: str) -> tuple[str, Any]:
        read = ReadOptions(store=LocationOptions(url="/data"), file_format=file_format, format_options=options)
        choice = DestinationFormat.of(read, snapshot)
        return choice.name, choice.option_strings.get("sep")

    assert chosen() == ("csv", ";")
    assert chosen(SEP=";") == ("csv", ";")
    with pytest.raises(InvalidRequestError, match="another value of a format option: leave the option out"):
        chosen(SEP="|")
    assert chosen("json") == ("json", None)


def test_values_of_a_table_are_what_was_written_whatever_the_session_says() -> None:
    """As in the files of others that note nothing else, today's calendar."""
    assert spark_options("parquet")["datetimeRebaseMode"] == "CORRECTED"
    assert spark_options("parquet")["int96RebaseMode"] == "CORRECTED"
    assert spark_options("orc")["__globPaths__"] == "false", "a path is a path"


# --- the place --------------------------------------------------------------------------------------------------------
class Missing(Py4JJavaError):
    """What py4j raises where Hadoop finds no file."""

    def __init__(self) -> None:
        self.java_exception = SimpleNamespace(
            getClass=lambda: SimpleNamespace(getName=lambda: "java.io.FileNotFoundException")
        )

    def __str__(self) -> str:
        return "no such file"


class HadoopFiles:
    """A file system of Hadoop's that holds some files."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def _bytes(self, path: str) -> bytes:
        if path not in self._files:
            raise Missing
        return self._files[path]

    def open(self, path: HadoopPath) -> Any:
        data = self._bytes(path.path)
        return SimpleNamespace(readAllBytes=lambda: data, close=lambda: None)

    def close(self) -> None:
        """Nothing is open."""


class HadoopPath:
    """A path of Hadoop's."""

    def __init__(self, path: str, files: HadoopFiles) -> None:
        self.path = path
        self._files = files

    def getFileSystem(self, _settings: object) -> HadoopFiles:
        return self._files

    def toUri(self) -> str:
        return self.path


def place(
    url: str, files: dict[str, bytes], s3: S3Options | None = None, hadoop: dict[str, str] | None = None
) -> str | None:
    """Where Spark finds a destination with these files, which through Holdfast's store has `ENTRY`."""
    system = HadoopFiles(files)
    fs = SimpleNamespace(
        Path=lambda path: HadoopPath(path, system),
        FileSystem=SimpleNamespace(newInstance=lambda _uri, _settings: system),
    )
    settings = SimpleNamespace(set=lambda _name, _value: None, get=(hadoop or {}).get)
    spark: Any = SimpleNamespace(
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=fs)))),
        _jsparkSession=SimpleNamespace(sessionState=lambda: SimpleNamespace(newHadoopConf=lambda: settings)),
    )
    ctx: Any = SimpleNamespace(url=url, key=lambda path: path, store=SimpleNamespace(get=lambda _key: b"decided"))
    return find_hadoop_path(spark, ctx, LocationOptions(url=url, store_options=(s3,) if s3 else ()), 3)[0]


ENTRY = "_holdfast/log/00000000000000000003.json"


def test_spark_has_to_see_the_newest_decision() -> None:
    """A directory of that name may be there on the driver's machine too, or in another server's bucket of that name."""
    assert place("file:///data/t", {f"file:///data/t/{ENTRY}": b"decided"}) == "file:///data/t"
    assert place("file:///data/t", {f"file:///data/t/{ENTRY}": b"decided otherwise"}) is None
    assert place("file:///data/t", {}) is None
    assert place("s3://bucket/t/", {f"s3a://bucket/t/{ENTRY}": b"decided"}) == "s3a://bucket/t"
    assert place("memory://t", {f"memory://t/{ENTRY}": b"decided"}) is None


def test_spark_is_not_asked_with_other_keys_than_the_calls() -> None:
    known = {f"s3a://bucket/t/{ENTRY}": b"decided"}
    assert place("s3://bucket/t", known) == "s3a://bucket/t"
    assert place("s3://bucket/t", known, s3=S3Options(endpoint_url="http://127.0.0.1:9")) is None


def test_spark_is_not_asked_where_a_filter_keeps_files_from_it() -> None:
    known = {f"file:///data/t/{ENTRY}": b"decided"}
    assert (
        place("file:///data/t", known, hadoop={"mapreduce.input.pathFilter.class": "org.example.NoTemporaries"}) is None
    )


# --- what only the Python reader reads --------------------------------------------------------------------------------
OPTIONS = ReadOptions(store=LocationOptions(url="/data/t"))


def session(version: str = "4.3.0", **settings: str) -> Any:
    """Spark with settings, two underscores for a dot."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return SimpleNamespace(version=version, conf=SimpleNamespace(get=lambda name, default="": named.get(name, default)))


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("orc", "spark__sql__caseSensitive", "TRUE"),
        ("parquet", "spark__sql__files__ignoredPathSegmentRegex", "^[.]"),
        ("parquet", "spark__sql__parquet__int96TimestampConversion", "true"),
        ("orc", "spark__sql__orc__impl", "hive"),
    ],
)
def test_settings_under_which_spark_reads_otherwise(name: str, setting: str, value: str) -> None:
    choice = DestinationFormat(name)
    assert explain_unsupported_options(session(), OPTIONS, choice) == ""
    assert f"{setting.replace('__', '.')}=" in explain_unsupported_options(session(**{setting: value}), OPTIONS, choice)


@pytest.mark.parametrize("name", ["csv", "json", "text", "avro", "arrow"])
def test_text_and_what_stock_spark_does_not_know_are_read_here(name: str) -> None:
    assert "reads Parquet and ORC only" in explain_unsupported_options(session(), OPTIONS, DestinationFormat(name))


def test_filters_are_applied_here() -> None:
    options = ReadOptions(store=LocationOptions(url="/data/t"), conditions=(Condition("a", "=", 1),))
    assert "filter the DataFrame" in explain_unsupported_options(session(), options, DestinationFormat("parquet"))


@pytest.mark.parametrize("name", ["", "x`y"])
@pytest.mark.parametrize("depth", range(5))
def test_names_that_spark_does_not_find_in_orc(name: str, depth: int) -> None:
    inner = StructType([StructField("a", LongType()), StructField(name, LongType())])
    kinds: list[DataType] = [inner, ArrayType(inner), MapType(LongType(), inner), MapType(inner, LongType())]
    schema = inner if depth == 0 else StructType([StructField("s", kinds[depth - 1])])
    assert "not find ORC columns" in explain_unsupported_columns(session(), DestinationFormat("orc"), schema)
    assert explain_unsupported_columns(session(), DestinationFormat("parquet"), schema) == ""


def test_timestamps_in_orc_need_a_spark_that_knows_the_type() -> None:
    instants = StructType([StructField("s", ArrayType(TimestampType()))])
    others = StructType([StructField("s", TimestampNTZType())])
    old = session(version="4.1.0")
    assert "Spark 4.1.0 cannot read timestamps in ORC" in explain_unsupported_columns(
        old, DestinationFormat("orc"), instants
    )
    assert explain_unsupported_columns(old, DestinationFormat("parquet"), instants) == ""
    assert explain_unsupported_columns(old, DestinationFormat("orc"), others) == ""
    assert explain_unsupported_columns(session(), DestinationFormat("orc"), instants) == ""


def test_field_ids_count_only_if_the_session_reads_by_them() -> None:
    field = StructField("x", LongType(), metadata={"parquet.field.id": 7})
    schema = StructType([StructField("s", ArrayType(StructType([field])))])
    by_ids = session(spark__sql__parquet__fieldId__read__enabled="true")
    assert "by ids" in explain_unsupported_columns(by_ids, DestinationFormat("parquet"), schema)
    assert explain_unsupported_columns(session(), DestinationFormat("parquet"), schema) == ""
    assert explain_unsupported_columns(by_ids, DestinationFormat("orc"), schema) == ""
