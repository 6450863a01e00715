"""Tokens as Hadoop's clients carry them. The bytes were written by Hadoop 3.5 (tests/integration/test_webhdfs_tokens.py
compares them again).
"""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.hadoop_tokens import KIND, HadoopToken, make_identifier, make_token_file, tokens_for_servers

_SIZES = st.sampled_from([0, 1, 127, 128, 255, 256, 4096])


@given(sizes=st.tuples(_SIZES, _SIZES), kind=st.text(max_size=40), service=st.text(max_size=300))
def test_a_token_is_decoded_as_it_was_encoded(sizes: tuple[int, int], kind: str, service: str) -> None:
    kind, service = (text.encode(errors="replace").decode() for text in (kind, service))
    token = HadoopToken(b"\xff" * sizes[0], b"\x00" * sizes[1], kind, service)
    assert HadoopToken.decode(token.encode()) == token
    assert HadoopToken.decode(base64.urlsafe_b64encode(token.to_bytes()).decode()) == token  # with padding


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=é \0", max_size=60))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    with suppress(RequestRefusedError):
        assert isinstance(HadoopToken.decode(text), HadoopToken)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x05ab",
        b"\x00\x00\x00",
        b"\x8f",
        b"\x8f\xff" + b"a" * 254,
        b"\x8e\x10\x01" + b"a" * 4097 + b"\x00\x00\x00",
        b"\x88" + b"\x7f" * 8,
        b"\x87\x01",
        b"\xff",
        b"\x00\x00\x01\xff\x00",
        b"\x00\x00\x00\x02s",
    ],
)
def test_a_token_that_is_cut_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(RequestRefusedError):
        HadoopToken.decode(base64.urlsafe_b64encode(data).decode())


def test_hadoop_writes_the_same_bytes() -> None:
    token = HadoopToken(make_identifier("ann", "yarn", "", 1, 300, 70000), b"secret", KIND, "127.0.0.1:9870")
    assert token.encode() == ("FAADYW5uBHlhcm4AAY4BLI0BEXAABnNlY3JldBJXRUJIREZTIGRlbGVnYXRpb24OMTI3LjAuMC4xOjk4NzA")
    assert make_token_file([token]) == b"HDTS\0\x01\x0e127.0.0.1:9870" + token.to_bytes() + b"\0"


def test_the_password_is_not_shown() -> None:
    assert "very-secret" not in repr(HadoopToken(b"", b"very-secret"))


@pytest.mark.parametrize(
    ("server", "kind", "service"),
    [
        ("127.0.0.1:9870", KIND, "127.0.0.1:9870"),
        ("webhdfs://127.0.0.1:1/", KIND, "127.0.0.1:1"),
        ("swebhdfs://127.0.0.1:9871", f"S{KIND}", "127.0.0.1:9871"),
        ("webhdfs://lake", KIND, "ha-webhdfs:lake"),
        ("swebhdfs://lake/", f"S{KIND}", "ha-swebhdfs:lake"),
        ("[::1]:9870", KIND, "0:0:0:0:0:0:0:1:9870"),
        ("[fd00::ab:0]:9870", KIND, "fd00:0:0:0:0:0:ab:0:9870"),
    ],
)
def test_a_server_is_named_as_hadoop_names_it(server: str, kind: str, service: str) -> None:
    (token,) = tokens_for_servers("secret", [server], "ann")
    assert (token.password, token.kind, token.service) == (b"secret", kind, service)


@pytest.mark.parametrize(
    "server", ["", "9870", "127.0.0.1", "hdfs://127.0.0.1:8020", "127.0.0.1:x", "webhdfs://lake/d", "webhdfs://"]
)
def test_what_is_no_server_is_refused(server: str) -> None:
    with pytest.raises(InvalidRequestError, match="a server is HOST:PORT"):
        tokens_for_servers("secret", [server], "ann")
