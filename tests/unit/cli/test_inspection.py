"""`read`, `verify`, `history` and `show`: their output and exit codes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from holdfast.commit import TWO_PHASE, SaveMode, StreamBatch, open_context
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from tests.servers.moto import MotoServer
from tests.unit.cli.destinations import commit_table, on_screen, run, start_table


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "flights")


def data_files(url: str) -> list[Path]:
    return sorted(Path(url).glob("month=*/*"))


# --- read -------------------------------------------------------------------------------------------------------------
def test_read_shows_rows_with_their_partition_column(url: str) -> None:
    commit_table(url)
    result = run("read", url)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if "UA" in line or "[B6]" in line] == [
        ["UA", "2", "1"],
        ["[B6]", "1"],
    ]
    assert "3 rows of 2 files" in result.stdout
    assert result.stderr == ""


def test_read_as_json_is_one_document(url: str) -> None:
    commit_table(url)
    result = run("read", url, "--json", "--columns", "month, carrier", "-n", "2")
    assert json.loads(result.stdout) == {
        "url": f"file://{url}",
        "columns": [{"name": "month", "type": "int32"}, {"name": "carrier", "type": "string"}],
        "rows": [{"month": 1, "carrier": "UA"}, {"month": 1, "carrier": "[B6]"}],
        "more": True,
        "files": 2,
    }


@pytest.mark.parametrize(
    ("condition", "carriers"),
    [
        ("month=12", ["DL"]),
        ("delay >= 2", ["UA", "DL"]),
        ("delay!=2", ["DL"]),
        ("carrier='UA'", ["UA"]),
        ("month<2", ["UA", "[B6]"]),
        ("delay>100", []),
    ],
)
def test_read_filters(url: str, condition: str, carriers: list[str]) -> None:
    commit_table(url)
    rows = json.loads(run("read", url, "--json", "--where", condition).stdout)["rows"]
    assert [row["carrier"] for row in rows] == carriers


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--columns", "carier"], "no such column: did you mean carrier"),
        (["--where", "carier=UA"], "no such column: did you mean carrier"),
        (["--where", "carrier"], "not a condition: write column=value"),
        (["--where", "month=May"], "does not fit the column's type"),
        (["--format", "parkett"], "no such file format"),
    ],
)
def test_read_refuses_in_one_sentence(url: str, arguments: list[str], sentence: str) -> None:
    commit_table(url)
    result = run("read", url, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_read_shows_nothing_of_an_undecided_job(url: str) -> None:
    ctx = open_context(url)
    start_table(ctx)
    result = run("read", url, "--json")
    assert (result.exit_code, json.loads(result.stdout)["rows"]) == (0, [])


def test_read_shows_wide_rows_line_by_line(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({f"c{n}": [n] for n in range(12)}), tmp_path / "wide.parquet")
    assert "row 1: c0=0  c1=1" in on_screen("read", str(tmp_path))
    names, values, _ = run("read", str(tmp_path)).stdout.splitlines()
    assert (names.split()[-1], values.split()[-1]) == ("c11", "11")


def test_columns_may_be_given_one_by_one(url: str) -> None:
    commit_table(url)
    table = json.loads(run("read", url, "--columns", "month, delay", "--columns", "carrier", "--json").stdout)
    assert [one["name"] for one in table["columns"]] == ["month", "delay", "carrier"]


# --- wrong urls -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["read", "verify", "history", "recover"])
def test_a_mistyped_url_is_an_error(command: str, tmp_path: Path) -> None:
    result = run(command, str(tmp_path / "flihgts"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no")


@pytest.mark.parametrize(
    ("command", "sentence"), [("list", "0 pending uploads below "), ("abort", "0 uploads aborted")]
)
def test_uploads_of_an_empty_url_hint_at_the_spelling(url: str, command: str, sentence: str) -> None:
    missing = run("uploads", command, f"{url}-mistyped")
    assert missing.stdout.startswith(sentence)
    assert (missing.exit_code, missing.stderr) == (0, "there are no files at this url either: check its spelling\n")
    commit_table(url)
    assert run("uploads", command, url).stderr == ""


@pytest.mark.parametrize("place", ["..", "month=1"])
def test_a_directory_beside_the_destination_has_no_log(url: str, place: str) -> None:
    commit_table(url)
    assert run("recover", url).stderr == ""
    recovered, verified = (
        run("recover", f"{Path(url, place).resolve()}"),
        run("verify", f"{Path(url, place).resolve()}"),
    )
    assert (recovered.exit_code, verified.exit_code) == (0, 2)
    told = recovered.stderr.strip()
    assert told.startswith("there is no decision log here") and told in verified.stderr


@pytest.mark.parametrize("command", ["verify", "history", "recover"])
def test_a_file_is_refused_as_a_destination(command: str, tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text("a\n1\n")
    result = run(command, str(tmp_path / "flights.csv"))
    assert result.exit_code == 2
    assert "this is a file: name the directory that holds it" in result.stderr


@pytest.mark.parametrize("command", ["verify", "history"])
def test_a_foreign_directory_has_no_log(command: str, tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"x")
    result = run(command, str(tmp_path))
    assert result.exit_code == 2
    assert "the data was not written by Holdfast" in result.stderr


def test_an_unknown_scheme_offers_the_nearest(tmp_path: Path) -> None:
    result = run("verify", "s4://bucket/flights")
    assert result.exit_code == 2
    assert "use s3://" in result.stderr


def test_an_error_is_a_document_for_programs(tmp_path: Path) -> None:
    result = run("verify", str(tmp_path / "nothing"), "--json")
    assert json.loads(result.stdout)["kind"] == "NotFoundError"


# --- verify -----------------------------------------------------------------------------------------------------------
def test_verify_says_verified(url: str) -> None:
    commit_table(url)
    result = run("verify", url)
    assert result.exit_code == 0
    assert result.stdout.startswith("verified: ")
    assert "2 files" in result.stdout
    assert "1 job" in result.stdout


def test_verify_of_a_lost_file_exits_1(url: str) -> None:
    commit_table(url)
    data_files(url)[0].unlink()
    result = run("verify", url)
    assert result.exit_code == 1
    assert "should have 2 files" in result.stdout
    assert "NOT verified: 1 problem" in result.stdout
    document = json.loads(run("verify", url, "--json").stdout)
    assert (document["verified"], len(document["problems"])) == (False, 1)


def test_verify_reads_the_files_on_request(url: str) -> None:
    commit_table(url)
    assert "2 files read" in run("verify", url, "--read").stdout
    file = data_files(url)[0]
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)
    assert run("verify", url).exit_code == 0
    result = run("verify", url, "--read")
    assert result.exit_code == 1 and f"the bytes of {file.parent.name}/{file.name} are not those" in result.stdout


# --- history ----------------------------------------------------------------------------------------------------------
def test_history_shows_every_job(url: str) -> None:
    first = commit_table(url)
    ctx = open_context(url)
    aborted, _ = start_table(ctx)
    TWO_PHASE.abort_job(ctx, aborted)
    running, _ = start_table(ctx)
    commit_table(url, SaveMode.OVERWRITE)
    result = run("history", url)
    assert result.exit_code == 0
    assert first.job in result.stdout
    assert aborted.job in result.stdout
    assert f"undecided: job {running.job}" in result.stdout
    document = json.loads(run("history", url, "--json").stdout)
    assert [(one["seq"], one["kind"], one["state"], one["mode"], one["rows"]) for one in document["decisions"]] == [
        (1, "commit", "done", "append", 3),
        (2, "abort", "done", "append", 0),
        (3, "commit", "done", "overwrite", 3),
    ]
    assert [one["job"] for one in document["undecided"]] == [running.job]


def test_history_shows_the_newest(url: str) -> None:
    for _ in range(3):
        commit_table(url)
    result = run("history", url, "-n", "1")
    assert "not shown: 2 older decisions" in result.stdout
    assert [one["seq"] for one in json.loads(run("history", url, "-n", "1", "--json").stdout)["decisions"]] == [3]


def test_a_table_fits_a_screen_of_80_columns(url: str) -> None:
    commit_table(url)
    for command in ("history", "read", "verify"):
        lines = on_screen(command, url).splitlines()
        assert max(map(len, lines)) <= 80 or command == "verify"


def test_a_line_of_history_can_be_found_with_grep(url: str) -> None:
    """`holdfast history URL | grep <id>`."""
    jobs = [commit_table(url).job for _ in range(3)]
    for name in ("COLUMNS", "40"), ("COLUMNS", "80"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(*name)
            lines = run("history", url).stdout.splitlines()
        assert [next(job for job in jobs if job in line) for line in lines[1:]] == jobs
    assert "\x1b" not in "".join(lines)


def test_read_of_a_missing_bucket_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with MotoServer() as server:
        result = run("read", "s3://no-bucket/t", "--endpoint-url", server.endpoint_url, "--region", "us-east-1")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no such bucket: create it or check the url bucket='no-bucket'")


def test_history_names_stream_and_batch(url: str) -> None:
    commit_table(url)
    assert "batch" not in run("history", url).output
    with contextlib.closing(open_context(url)) as ctx:
        job = announce_stream_batch(
            ctx,
            plan_batch(ctx, SaveMode.APPEND, {"format": "parquet"}),
            StreamBatch(stream="flights", checkpoint="query-1", batch=7),
        )
        assert job is not None
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            assert TWO_PHASE.commit_job(ctx, job, [attempt.commit()], 1).committed
    assert "flights, 7" in run("history", url).output
    newest = json.loads(run("history", url, "--json").output)["decisions"][-1]
    assert (newest["stream"], newest["batch"]) == ("flights", 7)


# --- show -------------------------------------------------------------------------------------------------------------
def test_show_takes_a_destination_a_report_or_a_file(url: str, tmp_path: Path) -> None:
    job = commit_table(url)
    saved = tmp_path / "saved.json"
    saved.write_bytes((Path(url) / "_SUCCESS").read_bytes())
    for where in (url, f"{url}/_SUCCESS", str(saved)):
        result = run("show", where)
        assert result.exit_code == 0
        assert all(word in result.stdout for word in (job.job, "job_stage_decide", "object_put_request"))
    assert json.loads(run("show", url, "--json").stdout)["report"]["jobId"] == job.job


def test_show_of_an_empty_report(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(b"")
    result = run("show", str(tmp_path))
    assert (result.exit_code, result.stdout.startswith("an empty _SUCCESS")) == (0, True)


def test_show_of_something_else_is_an_error(tmp_path: Path) -> None:
    assert "no report here: give the URL" in run("show", str(tmp_path)).stderr
    (tmp_path / "_SUCCESS").write_bytes(b"{}")
    assert (result := run("show", str(tmp_path))).exit_code == 1
    assert "the success report cannot be read" in result.stderr


def test_show_of_a_report_of_hadoop(tmp_path: Path) -> None:
    statistics = {
        "counters": {"op_rename": 2, "op_rename.failures": 1, "committer_bytes_committed": 200_021, "none": 0},
        "minimums": {"op_rename.min": 140, "op_rename.failures.min": 2_000},
        "maximums": {"op_rename.max": 140, "op_rename.failures.max": 2_000},
        "meanstatistics": {
            "op_rename.mean": {"samples": 1, "sum": 140},
            "op_rename.failures.mean": {"samples": 1, "sum": 2_000},
        },
    }
    report = {
        "name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1",
        "success": False,
        "diagnostics": {"exception": "no space"},
        "iostatistics": statistics,
    }
    path = tmp_path / "report"
    path.write_text(json.dumps(report))
    rows = [line.split() for line in run("show", str(path)).stdout.splitlines()]
    assert ["success", "no"] in rows and ["exception", "no", "space"] in rows
    assert ["op_rename", "2", "1", "140", "2,000", "2,140"] in rows
    assert ["committer_bytes_committed", "200,021"] in rows and ["none", "0"] not in rows
    path.write_text(json.dumps({**report, "iostatistics": {"counters": 3}}))
    assert (result := run("show", str(path))).exit_code == 0
    assert "statistics of the report cannot be read" in result.stderr
