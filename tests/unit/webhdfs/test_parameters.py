"""Parameters of requests, with HDFS's defaults, bounds and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.operations import OPERATIONS, TRANSFERS, find_operation
from holdfast.webhdfs.parameters import Parameters, decode_text


def _of(query: str) -> Parameters:
    return Parameters.parse(query.encode("latin-1"))


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("&&", {}),
        ("op=OPEN&offset=5", {"op": ["OPEN"], "offset": ["5"]}),
        ("OP=OPEN&Op=x", {"op": ["OPEN", "x"]}),
        ("a", {"a": [""]}),
        ("a=", {"a": [""]}),
        ("=b", {"": ["b"]}),
        ("a=b=c", {"a": ["b=c"]}),
        ("a=b+c%2Bd%20e", {"a": ["b c+d e"]}),
        ("a%26b=%3d", {"a&b": ["="]}),
        ("a=%c3%a9", {"a": ["é"]}),
        ("a=%", {"a": ["%"]}),
        ("a=%2", {"a": ["%2"]}),
        ("a=%252e", {"a": ["%2e"]}),
        ("a;b=c", {"a;b": ["c"]}),
    ],
)
def test_a_query_is_decoded_once(query: str, values: dict[str, list[str]]) -> None:
    assert _of(query).values == values


@pytest.mark.parametrize("query", ["a=%ff", "%c0%ae=b", "a=%ed%a0%80"])
def test_a_query_that_is_not_utf_8_is_refused(query: str) -> None:
    with pytest.raises(RequestRefusedError, match="the query is not valid UTF-8"):
        _of(query)


@given(st.binary(max_size=60))
def test_any_query_is_parsed_or_refused(query: bytes) -> None:
    try:
        found = Parameters.parse(query)
    except RequestRefusedError:
        return
    assert all(name == name.lower() for name in found.values)


@given(st.text(max_size=40).map(lambda text: text.encode(errors="replace").decode()))
def test_what_is_encoded_byte_by_byte_is_decoded(text: str) -> None:
    assert decode_text("".join(f"%{byte:02x}" for byte in text.encode()).encode(), "path") == text


def test_a_missing_and_an_empty_text_are_the_default() -> None:
    assert [_of(query).text("a", "default") for query in ("", "a=", "a=x", "A=x&a=y")] == [
        "default",
        "default",
        "x",
        "x",
    ]
    with pytest.raises(RequestRefusedError, match="Required param a is missing"):
        _of("a=").require_text("a")


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("False", False), ("", True), ("null", True)]
)
def test_a_truth(text: str, value: bool) -> None:
    assert _of(f"a={text}").truth("a", True) is value


@pytest.mark.parametrize("text", ["yes", "1", "t", "true%20", "%20"])
def test_what_is_no_truth(text: str) -> None:
    with pytest.raises(RequestRefusedError, match='Invalid value for webhdfs parameter "a": it is true or false'):
        _of(f"a={text}").truth("a", True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("%2b5", 5),
        ("-5", -5),
        ("007", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        ("", 9),
        ("null", 9),
    ],
)
def test_a_number(text: str, value: int) -> None:
    assert _of(f"a={text}").number("a", 9) == value


@pytest.mark.parametrize(
    "text", [str(2**63), "9" * 20, "9" * 5000, "x", "1.0", "1e3", "0x1", "1_000", "%20" + "1", "%d9%a1", "--1", "+"]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(RequestRefusedError, match='Invalid value for webhdfs parameter "a": it is a whole number'):
        _of(f"a={text}").number("a", 9)


def test_a_number_has_a_least_value() -> None:
    assert _of("a=-1").number("a", 9, least=-1) == -1
    with pytest.raises(RequestRefusedError, match="from 0 on"):
        _of("a=-1").number("a", 9, least=0)


@pytest.mark.parametrize(("text", "mode"), [("755", 0o755), ("1777", 0o1777), ("0", 0), ("0644", 0o644), ("", 0o7)])
def test_a_mode(text: str, mode: int) -> None:
    assert _of(f"a={text}").mode("a", 0o7) == mode


@pytest.mark.parametrize("text", ["2777", "1778", "888", "-1", "00755", "rwx", "0o7", "7.5", "%d9%a1"])
def test_what_is_no_mode(text: str) -> None:
    with pytest.raises(RequestRefusedError, match='parameter "a": it has octal digits up to 1777'):
        _of(f"a={text}").mode("a", 0)


def test_choices_have_no_case() -> None:
    assert _of("a=hex").choice("a", ("HEX", "TEXT"), "TEXT") == "HEX"
    assert _of("").choice("a", ("HEX", "TEXT"), "TEXT") == "TEXT"
    assert _of("a=hex,+Text+,,").choices("a", ("HEX", "TEXT")) == {"HEX", "TEXT"}
    assert _of("a=,").choices("a", ("HEX", "TEXT")) == frozenset()
    for refused in ("x", "hex,x"):
        with pytest.raises(RequestRefusedError):
            _of(f"a={refused}").choices("a", ("HEX", "TEXT"))
    with pytest.raises(RequestRefusedError):
        _of("a=hex,text").choice("a", ("HEX", "TEXT"), "TEXT")


def test_an_error_shows_the_beginning_of_what_was_given() -> None:
    error = _of("a=" + "x" * 5000).error("a", "it is short")
    assert len(str(error)) < 250
    assert "x" * 100 in str(error)


# --- operations -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", OPERATIONS)
def test_operations_are_found_without_regard_to_case(method: str) -> None:
    for name in (*OPERATIONS[method], *TRANSFERS[method]):
        assert find_operation(method, _of(f"op={name.lower()}")) == name


@pytest.mark.parametrize(("method", "name"), [("GET", "MKDIRS"), ("PUT", "OPEN"), ("POST", "CREATE"), ("DELETE", "X")])
def test_an_operation_of_another_method_is_refused_in_hdfss_words(method: str, name: str) -> None:
    """Hadoop's client falls back to older operations by these words."""
    sentence = f'Invalid value for webhdfs parameter "op": {name} is not a valid {method} operation.'
    with pytest.raises(RequestRefusedError) as refused:
        find_operation(method, _of(f"op={name}"))
    assert str(refused.value) == sentence


@pytest.mark.parametrize("query", ["", "op=", "op=null", "op=NULL"])
def test_no_operation_is_refused(query: str) -> None:
    with pytest.raises(RequestRefusedError, match="op=NULL is not supported"):
        find_operation("GET", _of(query))
