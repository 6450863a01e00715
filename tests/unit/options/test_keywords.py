"""What a call says about one thing under two names: honoured if it is the same, refused in one sentence if not."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

import holdfast
from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS
from holdfast.options.keywords import (
    as_spark_options,
    join_columns,
    option_from_columns,
    option_from_text,
    option_from_url,
    options_from_mode,
    options_from_values,
)
from holdfast.options.location import collect_options
from holdfast.options.read import READ_KEYS, ReadOptions, parse_read_options
from holdfast.options.write import (
    JOB_KEYS,
    WRITE_KEYS,
    WriteOptions,
    WriteRequest,
    parse_job_options,
    parse_write_options,
    parse_write_request,
)
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.write import run_write
from holdfast.stores.provider import GivenOption, GivenOptions, OptionSource
from tests.unit.cli.destinations import run

SECRETS = {"access_key": "canary", "secret_key": "canary"}
TWICE = "given twice with different values"


class Session:
    """A DataFrame's session that answers what a call asks before Spark is needed."""

    def __init__(self, **settings: str) -> None:
        self.sparkSession = self
        self.conf = self
        self._settings = {"spark.sql.session.timeZone": "UTC"} | {k.replace("__", "."): v for k, v in settings.items()}
        self._jsparkSession = None

    def get(self, name: str) -> str | None:
        return self._settings.get(name)


class Reached(Exception):
    """The call was found right and would have gone to Spark."""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the calls of a test had parsed when they reached for Spark."""
    found: dict[str, Any] = {}

    def stop(session: Session) -> None:
        raise Reached

    for module in ("write", "read"):
        monkeypatch.setattr(f"holdfast.spark.{module}.register_during_call", stop)

    def keep_write(*args: Any) -> WriteRequest:
        request = parse_write_request(*args)
        found["write"] = request.options
        return request

    def keep_read(*args: Any) -> ReadOptions:
        found["read"] = parse_read_options(*args)
        return found["read"]

    monkeypatch.setattr("holdfast.spark.write.parse_write_request", keep_write)
    monkeypatch.setattr("holdfast.spark.read.parse_read_options", keep_read)
    return found


def write(parsed: dict[str, Any], session: Session | None = None, **options: Any) -> WriteOptions:
    with pytest.raises(Reached):
        holdfast.write(session or Session(), "/data/t", **options)  # type: ignore[arg-type]  # never asked for rows
    found: WriteOptions = parsed["write"]
    return found


# --- every option, every spelling -------------------------------------------------------------------------------------
SAMPLES: Mapping[str, tuple[str, str]] = {
    "path": ("/data/t", "/data/u"),
    "endpoint": ("http://a:1", "http://b:1"),
    "region": ("us-east-1", "eu-west-1"),
    "caBundle": ("/a.pem", "/b.pem"),
    "accessKey": ("a", "b"),
    "secretKey": ("a", "b"),
    "sessionToken": ("a", "b"),
    "threads": ("4", "5"),
    "fileFormat": ("csv", "json"),
    "committer": ("two_phase", "magic"),
    "partitionBy": ("a,b", "b,a"),
    "ifExists": ("append", "fail"),
    "partitionOverwriteMode": ("static", "dynamic"),
    "maxRecordsPerFile": ("5", "6"),
    "targetFileSize": ("1m", "2m"),
    "writeId": ("a", "b"),
    "writeToken": ("a", "b"),
    "reader": ("python", "native"),
    "partSize": ("8m", "9m"),
    "logRetention": ("100", "101"),
    "scratchDir": ("/a", "/b"),
    "sharedDir": ("/a", "/b"),
    "reportDir": ("/a", "/b"),
    "columns": ("a", "b"),
    "filters": ('[["a", "=", 1]]', '[["a", "=", 2]]'),
    "splitSize": ("1m", "2m"),
}
CALLS = {
    "write": (WRITE_KEYS, lambda said: parse_write_options(said, overwrite=True)),
    "append": (WRITE_KEYS, lambda said: parse_write_options(said, overwrite=False)),
    "job": (JOB_KEYS, parse_job_options),
    "read": (READ_KEYS, parse_read_options),
}
NEEDED = {"path": "/data/t", "accessKey": "a", "secretKey": "a", "partitionBy": "a,b", "fileFormat": "csv"}


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@given(st.data(), st.sampled_from(sorted(CALLS)))
def test_an_option_under_two_spellings(data: st.DataObject, call: str) -> None:
    """Every option of every call: equal values count once, different ones are refused and both spellings shown."""
    keys, parse = CALLS[call]
    name = data.draw(st.sampled_from(sorted(keys)))
    if (call == "write" and name == "ifExists") or (call == "append" and name == "partitionOverwriteMode"):
        return  # refused at once, whatever it says
    one, other = SAMPLES.get(name, ("true", "false"))
    spellings = st.sampled_from([name, name.lower(), name.upper(), snake(name), snake(name).upper()])
    first, second = data.draw(spellings), data.draw(spellings)
    base = [GivenOption.of(key, text, key) for key, text in NEEDED.items() if key in keys and key != name]
    same = data.draw(st.sampled_from([one] if name in SAMPLES else [one, "TRUE"]))
    once = parse([*base, GivenOption.of(first, one, first)])
    assert parse([*base, GivenOption.of(first, one, first), GivenOption.of(second, same, second)]) == once
    with pytest.raises(InvalidRequestError, match=TWICE) as caught:
        parse([*base, GivenOption.of(first, one, first), GivenOption.of(second, other, second)])
    assert caught.value.variables == {"first": first, "second": second}


@given(st.data(), st.sampled_from(sorted(FORMATS)))
def test_a_format_option_under_two_spellings(data: st.DataObject, name: str) -> None:
    """Also where the format, and so what the option means, comes to light later."""
    key = data.draw(st.sampled_from(sorted(FORMATS[name].parsers)))
    upper = key.upper()
    with pytest.raises(InvalidRequestError, match=TWICE):
        GivenOptions({key: "1", upper: "2"}, ())
    assert GivenOptions({key: "1", upper: "1"}, ()).rest == {key: "1"}
    assert GivenOptions({key: "True", upper: "true"}, ()).rest == {key: "True"}


def test_every_option_has_a_sample() -> None:
    flags = {"pathStyle", "allowUnfenced", "mergeSchema"}
    assert {*WRITE_KEYS, *JOB_KEYS, *READ_KEYS} == {*SAMPLES, *flags}


# --- keywords of write ------------------------------------------------------------------------------------------------
def test_a_keyword_or_the_option_of_that_name(parsed: dict[str, Any]) -> None:
    for options in ({"file_format": "csv"}, {"fileFormat": "csv"}, {"file_format": "csv", "FILEFORMAT": "csv"}):
        assert write(parsed, **options).format.name == "csv"
    for options in ({"partition_by": "k"}, {"partitionBy": "k"}, {"partitionBy": ["k"], "partition_by": ("k",)}):
        assert write(parsed, **options).partition_by == ("k",)
    assert write(parsed, partition_by="a,b").partition_by == ("a,b",), "the keyword takes one name"
    assert write(parsed, partitionBy="a,b").partition_by == ("a", "b"), "the option takes names between commas"
    assert write(parsed, Committer="magic", allow_unfenced=True).committer == "magic"
    assert write(parsed, writeId="a", write_id="a").write_id == "a"
    assert write(parsed, path="/data/t").store.url == "/data/t"
    assert write(parsed, write_id=None).write_id == ""
    assert len({write(parsed).token, write(parsed).token}) == 2, "each call has a token of its own"
    with pytest.raises(InvalidRequestError, match="not a name"):
        holdfast.write(Session(), "/data/t", write_id="")  # type: ignore[arg-type]  # never asked for rows


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        ({"file_format": "parquet", "fileFormat": "csv"}, "file_format", "fileFormat"),
        ({"partition_by": "k", "partitionBy": "v"}, "partition_by", "partitionBy"),
        ({"partition_by": "k,v", "partitionBy": "k,v"}, "partition_by", "partitionBy"),
        ({"mode": "append", "ifExists": "fail"}, "mode", "ifExists"),
        ({"mode": "ignore", "if_exists": "fail"}, "mode", "if_exists"),
        (
            {"mode": "overwrite-partitions", "partitionOverwriteMode": "static", "partition_by": "k"},
            "mode",
            "partitionOverwriteMode",
        ),
        ({"committer": "two_phase", "COMMITTER": "magic"}, "committer", "COMMITTER"),
        ({"path": "/data/u"}, "url", "path"),
        ({"writeId": "a", "write_id": "b"}, "writeId", "write_id"),
        ({"max_records_per_file": 1, "maxRecordsPerFile": 2}, "max_records_per_file", "maxRecordsPerFile"),
        ({"file_format": "csv", "header": True, "HEADER": False}, "header", "HEADER"),
    ],
)
def test_two_different_values_are_refused(
    parsed: dict[str, Any], options: dict[str, Any], first: str, second: str
) -> None:
    with pytest.raises(InvalidRequestError, match=TWICE) as caught:
        holdfast.write(Session(), "/data/t", **options)  # type: ignore[arg-type]  # never asked for rows
    assert caught.value.variables == {"first": first, "second": second}


def test_values_are_not_shown_where_they_differ() -> None:
    with pytest.raises(InvalidRequestError, match=TWICE) as caught:
        parse_read_options(
            option_from_url("s3://b/k") + options_from_values({"secret_key": "canary1", "secretKey": "canary2"})
        )
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(options_from_values({"secret_key": "canary"}))


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, SaveMode.APPEND),
        ({"ifExists": "fail"}, SaveMode.FAIL),
        ({"mode": "error", "ifExists": "fail"}, SaveMode.FAIL),
        ({"mode": "append", "ifExists": "append"}, SaveMode.APPEND),
        ({"mode": "append", "partitionOverwriteMode": "static"}, SaveMode.APPEND),
        ({"mode": "overwrite", "partitionOverwriteMode": "static"}, SaveMode.OVERWRITE),
        (
            {"mode": "overwrite", "partition_overwrite_mode": "dynamic", "partition_by": "k"},
            SaveMode.OVERWRITE_PARTITIONS,
        ),
        ({"mode": "Overwrite_Partitions", "partitionBy": "k"}, SaveMode.OVERWRITE_PARTITIONS),
    ],
)
def test_modes_and_their_options(parsed: dict[str, Any], options: dict[str, Any], mode: SaveMode) -> None:
    assert write(parsed, **options).mode is mode


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "overwrite", "ifExists": "ignore"}, "contradicts mode overwrite"),
        ({"partitionOverwriteMode": "dynamic", "partition_by": "k"}, "choose mode overwrite"),
        ({"mode": "ignore", "partitionOverwriteMode": "dynamic"}, "choose mode overwrite"),
        ({"mode": 3}, "no such mode"),
        ({"partition_by": {"k": 1}}, "columns are given by name"),
        ({"partition_by": {"k", "v"}}, "columns are given by name"),
        ({"partition_by": b"k"}, "columns are given by name"),
        ({"partition_by": ["k", 1]}, "columns are given by name"),
        ({"partition_by": [""]}, "columns are given by name"),
        ({"file_format": ["csv"]}, "expected a string"),
        ({"header": ["true"], "file_format": "csv"}, "options are strings, whole numbers or booleans"),
        ({"secret_key": b"canary"}, "options are strings, whole numbers or booleans"),
        ({"max_records_per_file": 1e6}, "options are strings, whole numbers or booleans"),
        ({"max_records_per_file": {"a": 1}}, "options are strings, whole numbers or booleans"),
    ],
)
def test_what_is_no_option_is_refused(parsed: dict[str, Any], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence) as caught:
        holdfast.write(Session(), "/data/t", **options)  # type: ignore[arg-type]  # never asked for rows
    assert "canary" not in str(caught.value)


def test_the_session_says_dynamic(parsed: dict[str, Any]) -> None:
    """Spark's own writers would keep the partitions that our mode overwrite removes."""
    session = Session(spark__sql__sources__partitionOverwriteMode="DYNAMIC")
    with pytest.raises(InvalidRequestError, match="choose mode overwrite-partitions"):
        holdfast.write(session, "/data/t", mode="overwrite", partition_by="k")  # type: ignore[arg-type]  # never asked for rows
    said = {"mode": "overwrite", "partition_by": "k", "partition_overwrite_mode": "static"}
    assert write(parsed, session, **said).mode is SaveMode.OVERWRITE
    assert write(parsed, session, mode="overwrite").mode is SaveMode.OVERWRITE, "as Spark does without partitions"
    assert write(parsed, session, mode="overwrite-partitions", partition_by="k").mode is SaveMode.OVERWRITE_PARTITIONS


def test_a_write_parses_its_options_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data source parses the strings again, in a process of Spark's; the caller's process does not."""
    parses: list[object] = []

    def counted(options: OptionSource, known: Sequence[str]) -> GivenOptions:
        parses.append(options)
        return collect_options(options, known)

    def stop(session: Session) -> None:
        raise Reached

    monkeypatch.setattr("holdfast.options.write.collect_options", counted)
    monkeypatch.setattr("holdfast.spark.write.register_during_call", stop)
    with pytest.raises(Reached):
        holdfast.write(Session(), "/data/t", file_format="csv", header=True)  # type: ignore[arg-type]  # never asked
    assert len(parses) == 1
    request = parse_write_request(option_from_url("/data/t"), overwrite=False)
    with pytest.raises(Reached):
        run_write(Session(), request)  # type: ignore[arg-type]  # as the command line calls it
    assert len(parses) == 2


def test_a_request_does_not_show_secrets() -> None:
    assert "canary" not in repr(
        parse_write_request(option_from_url("/data/t") + options_from_values(SECRETS), overwrite=False)
    )


# --- read, job, command -----------------------------------------------------------------------------------------------
def test_columns_and_conditions_of_a_read(parsed: dict[str, Any]) -> None:
    def read(**options: Any) -> Any:
        with pytest.raises(Reached):
            holdfast.read(Session(), "/data/t", reader="python", **options)  # type: ignore[arg-type]  # never asked
        return parsed["read"]

    assert read(columns="id").columns == ("id",)
    assert read(columns=["id", "v"], COLUMNS=["id", "v"]).columns == ("id", "v")
    assert (
        read(filters=[("k", "=", 1)], Filters='[["k", "=", 1]]').conditions == read(filters=[("k", "=", 1)]).conditions
    )
    assert read(split_size="1m", splitSize="1m").split_size_bytes == 1024 * 1024
    wrong: list[dict[str, Any]] = [
        {"columns": ["id"], "Columns": "v"},
        {"filters": [("k", "=", 1)], "FILTERS": '[["k", "=", 2]]'},
        {"split_size": "1m", "splitSize": "2m"},
        {"path": "/data/u"},
    ]
    for options in wrong:
        with pytest.raises(InvalidRequestError, match=TWICE):
            holdfast.read(Session(), "/data/t", **options)  # type: ignore[arg-type]  # never asked
    for columns in (b"id", {"id"}, 3, [1]):
        with pytest.raises(InvalidRequestError, match="columns are given by name"):
            holdfast.read(Session(), "/data/t", columns=columns)  # type: ignore[arg-type]  # that is the subject
    for filters in (3, {"k": 1}, b"x", [("k", "=", b"x")], [("k", "=", object())]):
        with pytest.raises(InvalidRequestError):
            holdfast.read(Session(), "/data/t", filters=filters)  # type: ignore[arg-type]  # that is the subject


def test_paths_are_those_of_the_caller(parsed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's processes work in another directory once the caller has changed its own."""
    monkeypatch.chdir(tmp_path)
    places = {"scratchDir": "a", "shared_dir": Path("b"), "reportDir": "file:c"}
    with pytest.raises(Reached):
        holdfast.write(Session(), "x", path="x", **places)  # type: ignore[arg-type]  # never asked for rows
    found = parsed["write"]
    assert found.store.url == f"{tmp_path}/x"
    settings = found.settings
    assert [settings.scratch_dir, settings.shared_dir] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert settings.report_dir == f"file:{tmp_path}/c"
    with pytest.raises(Reached):
        holdfast.read(Session(), Path("x"), reader="python")  # type: ignore[arg-type]  # never asked
    assert parsed["read"].store.url == f"{tmp_path}/x"
    assert HoldfastDataSource({"Path": "x"}).reader(StructType())._options.store.url == f"{tmp_path}/x"
    assert write(parsed, reportDir="s3://bucket/r").settings.report_dir == "s3://bucket/r"


def test_a_schema_and_columns() -> None:
    """``spark.read.schema(...)`` beside the option: Spark hands over the schema alone."""
    schema = StructType([StructField("id", LongType()), StructField("v", LongType())])
    HoldfastDataSource({"path": "/data/t", "columns": "ID,v"}).reader(schema)
    with pytest.raises(InvalidRequestError, match="select different columns"):
        HoldfastDataSource({"path": "/data/t", "columns": "v"}).reader(schema)


def test_a_job_says_things_once() -> None:
    for options in (
        {"committer": "two_phase", "Committer": "magic"},
        {"path": "/data/u"},
        {"threads": 1, "THREADS": 2},
    ):
        with pytest.raises(InvalidRequestError, match=TWICE):
            holdfast.job(Session(), "/data/t", **options)  # type: ignore[arg-type]  # never asked


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "parquet", "--option", "fileFormat=csv"], "first='--format' second='--option fileFormat'"),
        (["--partition-by", "a", "--option", "partition_by=b"], "first='--partition-by'"),
        (["--mode", "append", "--option", "ifExists=fail"], "first='--mode' second='--option ifExists'"),
        (["--mode", "overwrite", "--option", "ifExists=fail"], "contradicts mode overwrite"),
        (["--committer", "two_phase", "--option", "committer=magic"], "first='--committer'"),
        (["--endpoint-url", "http://a", "--option", "Endpoint=http://b"], "first='--endpoint-url'"),
        (["--region", "a", "--option", "region=b"], "first='--region'"),
        (["--option", "path=elsewhere"], "first='URL' second='--option path'"),
        (["--option", "threads=1", "--option", "threads=2"], "first='--option threads'"),
        (["--format", "csv", "--option", "header=true", "--option", "HEADER=false"], "second='--option HEADER'"),
    ],
)
def test_the_command_says_things_once(arguments: list[str], says: str) -> None:
    result = run("write", "flights.csv", "out", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in " ".join(result.stderr.split())


# --- values -----------------------------------------------------------------------------------------------------------
class Word(str, enum.Enum):
    GZIP = "gzip"


class Whole:
    """As numpy's integers."""

    def __index__(self) -> int:
        return 7


def test_python_values_as_strings() -> None:
    options = {
        "header": True,
        "max_records_per_file": 5,
        "sep": None,
        "codec": Word.GZIP,
        "n": Whole(),
        "d": Path("/a"),
    }
    assert as_spark_options(options_from_values(options)) == {
        "header": "true",
        "maxrecordsperfile": "5",
        "codec": "gzip",
        "n": "7",
        "d": "/a",
    }


def test_urls() -> None:
    assert (
        as_spark_options(option_from_url(Path("/data/a b")))
        == as_spark_options(option_from_url("/data/a b"))
        == {"path": "/data/a b"}
    )
    for wrong in (None, 3, b"/data", Path("s3://bucket/key"), 1.5):
        with pytest.raises(InvalidRequestError):
            option_from_url(wrong)


def test_what_says_nothing() -> None:
    assert option_from_text("committer", None, "committer") == option_from_columns("partitionBy", None, "x") == []
    assert option_from_columns("partitionBy", [], "x") == [] and options_from_mode(None) == (False, [])
    assert join_columns(["a`", "b"]) == "`a```,`b`"


# --- what is handed in ------------------------------------------------------------------------------------------------
def test_what_is_no_dataframe_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"make one of it with spark.createDataFrame type='dict'"):
        holdfast.write({"a": [1]}, "/data/t")  # type: ignore[arg-type]  # what a user hands in who thinks of pandas


@pytest.mark.parametrize("call", [holdfast.read, holdfast.count, holdfast.job])
def test_what_is_no_session_is_refused(call: Any) -> None:
    with pytest.raises(InvalidRequestError, match="pass the session first, then the URL type='str'"):
        call("/data/t", Session())
