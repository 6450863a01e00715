"""Counterexamples as JSON: what is written can be read, damaged files are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptDataError
from holdfast_checker.kernel.counterexample import Counterexample, decode_counterexample, encode_counterexample
from holdfast_checker.kernel.world import Choice

ONE = Counterexample("file-v2/small", "C4", "visible: ['größe']", (Choice("driver"), Choice("task 0", "dies")), 7)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_CHOICES = st.lists(st.builds(Choice, _TEXT, st.text(st.characters(exclude_categories=["Cs"])))).map(tuple)


@given(st.builds(Counterexample, _TEXT, _TEXT, _TEXT, _CHOICES, st.none() | st.integers(0, 2**63 - 1)))
def test_what_is_written_is_read(counterexample: Counterexample) -> None:
    assert decode_counterexample(encode_counterexample(counterexample)) == counterexample


def test_the_bytes_are_these() -> None:
    """Old files must stay readable; a change here needs a new version of the format."""
    assert encode_counterexample(ONE).decode() == (
        '{"broke":"visible: [\'größe\']","choices":[["driver",""],["task 0","dies"]],'
        '"format":"holdfast-counterexample/1","property":"C4","seed":7,"world":"file-v2/small"}\n'
    )


def test_unknown_fields_are_passed_over() -> None:
    assert decode_counterexample(json.dumps({**json.loads(encode_counterexample(ONE)), "note": [1, 2]}).encode()) == ONE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "holdfast-counterexample/2"),
        ("format", None),
        ("world", ""),
        ("world", 3),
        ("property", ["C4"]),
        ("broke", None),
        ("seed", -1),
        ("seed", True),
        ("seed", 2**63),
        ("seed", 1.5),
        ("choices", {}),
        ("choices", "driver"),
        ("choices", [["driver"]]),
        ("choices", [["driver", "", ""]]),
        ("choices", [["", "dies"]]),
        ("choices", [["driver", None]]),
        ("choices", [{"actor": "driver"}]),
        ("choices", [[["driver"], ""]]),
    ],
)
def test_a_damaged_field_is_refused(field: str, value: object) -> None:
    with pytest.raises(CorruptDataError, match="cannot be read") as caught:
        decode_counterexample(
            json.dumps({**json.loads(encode_counterexample(ONE)), field: value}).encode(), "saved.json"
        )
    assert caught.value.variables["key"] == "saved.json"


@pytest.mark.parametrize("field", ["format", "world", "property", "broke", "choices"])
def test_a_missing_field_is_refused(field: str) -> None:
    record = json.loads(encode_counterexample(ONE))
    del record[field]
    with pytest.raises(CorruptDataError):
        decode_counterexample(json.dumps(record).encode())


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"\xff\xfe", b"{", b"[" * 100_000, encode_counterexample(ONE) * 2, b"7"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_counterexample(data)


def test_cut_short_it_is_refused() -> None:
    whole = encode_counterexample(ONE)
    for length in range(len(whole) - 1):  # without the newline at the end
        with pytest.raises(CorruptDataError):
            decode_counterexample(whole[:length])
