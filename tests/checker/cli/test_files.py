"""`check`: saved and replayed counterexamples, and HTML pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast_checker.kernel.counterexample import decode_counterexample
from tests.unit.cli.destinations import run

_BROKEN = ("check", "file-v2", "--scene", "asking", "--property", "C4")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    result = run(*_BROKEN, "--save", str(tmp_path / "found"))
    (file,) = (tmp_path / "found").iterdir()
    assert f"saved: {file}" in result.stderr
    assert file.name == "file-v2-asking-C4.json"
    return file


# --- saving and replaying ---------------------------------------------------------------------------------------------
def test_a_saved_counterexample_replays(saved: Path) -> None:
    assert decode_counterexample(saved.read_bytes()).property == "C4"
    result = run("check", "--replay", str(saved))
    assert result.exit_code == 1
    assert result.stdout.startswith("file-v2/asking breaks C4 hidden\n")
    document = json.loads(run("check", "--replay", str(saved), "--json").stdout)
    assert document["breaks"] is True
    assert document["story"]["world"] == "file-v2/asking"


def test_saving_again_gives_the_same_bytes(saved: Path) -> None:
    before = saved.read_bytes()
    run(*_BROKEN, "--save", str(saved.parent))
    assert saved.read_bytes() == before


def test_every_violation_is_saved(tmp_path: Path) -> None:
    document = json.loads(run("check", "file-v2", "--scene", "speculation", "--json", "--save", str(tmp_path)).stdout)
    names = {f"file-v2-speculation-{one['property']}.json" for one in document["broken"]}
    assert {file.name for file in tmp_path.iterdir()} == names
    assert len(names) > 2
    for one in document["broken"]:
        file = tmp_path / f"file-v2-speculation-{one['property']}.json"
        assert json.loads(file.read_text()) == one["counterexample"]


def test_a_history_in_which_the_property_holds_ends_with_0(saved: Path) -> None:
    """As after a fix of the code."""
    saved.write_text(saved.read_text().replace('"property":"C4"', '"property":"C1"'))
    result = run("check", "--replay", str(saved))
    assert result.exit_code == 0
    assert "C1 holds" in result.stdout
    assert json.loads(run("check", "--replay", str(saved), "--json").stdout)["breaks"] is False


def test_a_history_that_now_breaks_earlier_is_told_up_to_that_point(saved: Path) -> None:
    counterexample = json.loads(saved.read_text())
    counterexample["choices"] += [["task 0 attempt 0", ""]]
    saved.write_text(json.dumps(counterexample))
    result = run("check", "--replay", str(saved))
    assert result.exit_code == 1
    assert "Broken: C4 hidden" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("file-v2/asking", "file-v9/asking", "unknown committer: did you mean file-v2"),
        ("file-v2/asking", "file-v2/ask", "unknown scene: did you mean asking"),
        ("file-v2/asking", "file-v2", "unknown scene"),
        ("file-v2/asking", "two_phase/partition", "does not fit this world and this version of the code"),
        ('["driver",""],', '["drover",""],', "does not fit this world and this version of the code"),
        ('"property":"C4"', '"property":"C44"', "unknown property: did you mean C4"),
        ("holdfast-counterexample/1", "holdfast-counterexample/9", "holds no valid counterexample"),
        ('"choices":[[', '"choices":[[[', "holds no valid counterexample"),
        ('["driver",""]', '["driver",7]', "holds no valid counterexample"),
    ],
)
def test_a_file_that_does_not_fit_or_is_damaged_is_wrong_usage(saved: Path, old: str, new: str, said: str) -> None:
    text = saved.read_text()
    assert old in text
    saved.write_text(text.replace(old, new))
    result = run("check", "--replay", str(saved))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "error" in json.loads(run("check", "--replay", str(saved), "--json").stdout)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{}", b"[]", b"null", b"{" * 10_000])
def test_any_bytes_are_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "damaged.json"
    file.write_bytes(content)
    result = run("check", "--replay", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: the file holds no valid counterexample")
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_file(tmp_path: Path) -> None:
    for file in (tmp_path / "nothing.json", tmp_path):
        result = run("check", "--replay", str(file))
        assert result.exit_code == 2
        assert "cannot be read: name one that --save wrote" in result.stderr


# --- where they are saved ---------------------------------------------------------------------------------------------
def test_without_a_violation_no_file_is_left(tmp_path: Path) -> None:
    result = run("check", "two_phase", "--scene", "asking", "--save", str(tmp_path))
    assert result.exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_directory_is_reported_before_the_search(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    result = run(*_BROKEN, "--save", str(file / "found"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the directory cannot be written: name another" in result.stderr
