"""A format's options: parsed once in a process, and only strings travel to the next one."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import FileFormat
from holdfast.options.file_format import FormatRequest
from holdfast.options.write import WRITE_KEYS


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the formats whose options were parsed."""
    found: list[str] = []
    parse = FileFormat.parse_options

    def counted(self: FileFormat[Any], given: Any) -> Any:
        found.append(self.name)
        return parse(self, given)

    monkeypatch.setattr(FileFormat, "parse_options", counted)
    return found


def test_the_options_are_parsed_once(parses: list[str]) -> None:
    request = FormatRequest("csv", {"sep": ";"}).check(WRITE_KEYS)
    assert request.options is request.options
    assert request.file_format.reader_options(request.options)["sep"] == ";"
    assert parses == ["csv"]


def test_a_copy_parses_when_it_needs_the_options_and_not_before(parses: list[str]) -> None:
    request = FormatRequest("csv", {"sep": ";"}).check(WRITE_KEYS)
    copy = pickle.loads(pickle.dumps(request))
    assert (copy, parses) == (request, ["csv"])
    assert copy.options == request.options
    assert parses == ["csv", "csv"]


@pytest.mark.parametrize(
    ("strings", "sentence"), [({"sepp": ";"}, "did you mean sep"), ({"header": "maybe"}, "not a boolean")]
)
def test_what_is_unknown_or_invalid_is_refused(strings: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        FormatRequest("csv", strings).check(WRITE_KEYS)
