"""The file that says who is in which groups, and who may act for others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.webhdfs.users_file import Proxy, UsersFile, WatchedUsersFile


def test_the_file_of_users_has_groups_and_proxies(tmp_path: Path) -> None:
    path = tmp_path / "users.ini"
    path.write_text(
        "# people\n[groups]\nann = analysts, staff\nÖzil =\nAnn = other,\n\n"
        "[proxy hue]\nusers = ann, bob\nhosts = 10.0.0.0/24, ::1, *\n[proxy knox]\ngroups = *\n",
        encoding="utf-8",
    )
    found = UsersFile.read(path)
    assert found.groups == {"ann": ("analysts", "staff"), "Özil": (), "Ann": ("other",)}
    assert found.proxies == {
        "hue": Proxy(users=("ann", "bob"), hosts=("10.0.0.0/24", "::1", "*")),
        "knox": Proxy(groups=("*",)),
    }
    path.write_text("[proxy hue]\nusers = ann\n", encoding="utf-8")
    assert UsersFile.read(path).groups is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ann = staff\n", "cannot be read"),
        ("[groups]\nann\n", "cannot be read"),
        ("[groups]\nann: staff\n", "cannot be read"),
        ("[groups]\nann = a\nann = b\n", "cannot be read"),
        ("[groups]\nann = a\n[groups]\nbob = a\n", "cannot be read"),
        ("[groups]\nann = \xff", "cannot be read"),
        ("[people]\nann = a\n", "has the sections"),
        ("[proxy]\nusers = a\n", "has the sections"),
        ("[proxy ]\nusers = a\n", "has the sections"),
        ("[proxy hue]\nuser = a\n", "has the sections"),
        ("[proxy hue]\nUsers = a\n", "has the sections"),
        ("[proxy a b]\nusers = a\n", "separates names by commas"),
        ("[groups]\nann = a b\n", "separates names by commas"),
        ("[groups]\nann = a\n  b\n", "separates names by commas"),
        ("[groups]\nann bob = a\n", "separates names by commas"),
        ("[proxy hue]\nusers = *\nhosts = gateway.example.org\n", "hosts of a proxy are addresses"),
        ("[proxy hue]\nusers = *\nhosts = 10.0.0.0/33\n", "hosts of a proxy are addresses"),
    ],
)
def test_another_form_of_the_file_of_users_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "users.ini"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidRequestError, match=sentence):
        UsersFile.read(path)


def test_a_file_of_users_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be read"):
        UsersFile.read(tmp_path / "nothing.ini")


def test_an_error_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "users.ini"
    path.write_text("[groups]\nann = a\nann = b\n", encoding="utf-8")
    with pytest.raises(InvalidRequestError, match=r"users\.ini' \[line +3\]: option 'ann'"):
        UsersFile.read(path)


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    """One that is damaged is reported once, and does not replace what is known."""
    path = tmp_path / "users.ini"
    watched = WatchedUsersFile(path)

    def write(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)

    write("[groups]\nann = a\n")
    first = watched.read()
    assert first.groups == {"ann": ("a",)}
    assert watched.read() is first
    for damage in ("[groups\n", None):
        if damage is None:
            path.unlink()
        else:
            write(damage)
        with pytest.raises(InvalidRequestError, match="cannot be read"):
            watched.read()
        assert watched.read() is first
    write("[groups]\nann = b\n")
    assert watched.read().groups == {"ann": ("b",)}
    assert WatchedUsersFile(None).read() == UsersFile()
