"""Record how stock Spark reads tricky files: the questions and answers of tests/unit/formats/spark_answers.json.

Unit tests compare Holdfast's readers with the answers, a slow test here compares the answers with Spark. After a change
of the questions, ``python -m tests.integration.spark_answers`` writes the answers anew.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parents[1] / "unit" / "formats" / "spark_answers.json"
WIDTH = 6
ZONE = "America/Los_Angeles"
_NUMBERS = {
    "date": "unix_date(value)",
    "timestamp": "unix_micros(value)",
    "timestamp_ntz": "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', value)",
}


def csv_rows(spark: Any, texts: Sequence[str], options: dict[str, str]) -> list[list[list[str | None]]]:
    """Return the records of each text as strings, from one job for all texts."""
    schema = ", ".join(f"c{index} string" for index in range(WIDTH))
    with tempfile.TemporaryDirectory() as root:
        for index, text in enumerate(texts):
            Path(root, f"{index:06d}.csv").write_text(text, newline="")
        frame = spark.read.options(multiLine="true", **options).schema(schema).csv(root)
        found = frame.selectExpr("_metadata.file_name as file", "*").collect()
    rows: list[list[list[str | None]]] = [[] for _ in texts]
    for row in found:
        rows[int(row.file[:6])].append(list(row)[1:])
    return rows


def csv_values(spark: Any, kind: str, texts: Sequence[str]) -> list[str | None]:
    """Parse each text as a type: dates as days, timestamps as microseconds since 1970, others as Spark prints them."""
    lines = "".join(f"{text}|{index}\n" for index, text in enumerate(texts))
    with tempfile.TemporaryDirectory() as root:
        Path(root, "values.csv").write_text(lines, newline="")
        frame = spark.read.options(sep="|", multiLine="true").schema(f"value {kind}, i int").csv(root)
        found = frame.selectExpr("i", f"cast({_NUMBERS.get(kind, 'value')} as string) as value").collect()
    by_number = {row.i: row.value for row in found}
    return [by_number[index] for index in range(len(texts))]


def inferred(spark: Any, file_format: str, text: str, options: dict[str, str]) -> str:
    """Return the schema that Spark infers from a file."""
    with tempfile.TemporaryDirectory() as root:
        Path(root, f"file.{file_format}").write_text(text, newline="")
        if file_format == "csv":
            options = {"inferSchema": "true", "multiLine": "true", **options}
        return str(spark.read.options(**options).format(file_format).load(root).schema.simpleString())


def json_rows(spark: Any, schema: str, text: str) -> list[str]:
    """Return the rows of a JSON file, each as Spark writes it in JSON."""
    with tempfile.TemporaryDirectory() as root:
        Path(root, "file.json").write_text(text, newline="")
        frame = spark.read.schema(schema).json(root)
        written = frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false', 'timeZone', 'UTC')) as row")
        return [row.row for row in written.collect()]


def answer(spark: Any, questions: dict[str, Any]) -> dict[str, Any]:
    """Return the questions with Spark's answers."""
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    for case in questions["csv_rows"]:
        case["rows"] = csv_rows(spark, case["texts"], case["options"])
    for case in questions["csv_values"]:
        case["spark"] = csv_values(spark, case["type"], case["texts"])
    for case in questions["csv_schema"]:
        case["schema"] = [inferred(spark, "csv", text, case["options"]) for text in case["texts"]]
    questions["json_schema"] = {text: inferred(spark, "json", text, {}) for text in questions["json_schema"]}
    for case in questions["json_rows"]:
        case["rows"] = list(
            itertools.chain.from_iterable(json_rows(spark, case["schema"], one) for one in case["lines"])
        )
    return questions


def written(value: Any, indent: str = "") -> str:
    """Return the answers as JSON, one question per line."""
    short = json.dumps(value)
    if len(short) < 110 or not isinstance(value, dict | list) or len(indent) > 3:
        return short
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {written(one, deeper)}" for key, one in value.items()]
    else:
        parts = [written(one, deeper) for one in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return opening + "\n" + ",\n".join(deeper + part for part in parts) + "\n" + indent + closing


def main() -> None:
    """Write the file of answers again."""
    from tests.integration.spark_session import new_session

    answered = answer(new_session(), json.loads(ANSWERS.read_text()))
    ANSWERS.write_text(written(answered) + "\n")


if __name__ == "__main__":
    main()
