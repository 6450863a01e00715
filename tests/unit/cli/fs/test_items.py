"""Patterns on the command line: Hadoop's globs, with ``**``, over the namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.arguments import ConnectionOptions
from holdfast.cli.command import CommandRun
from holdfast.cli.fs.items import compile_segment, find_items
from holdfast.cli.output import Output
from holdfast.errors import InvalidRequestError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import PathNotFoundError
from tests.unit.cli.fs.trees import fill, run_fs, shown


@pytest.fixture(autouse=True)
def files(ns: Namespace) -> None:
    """A few directories and files, some with special characters."""
    fill(
        ns, "/a/1.csv", "/a/2.csv", "/a/.hidden", "/a/b/1.csv", "/a/b/c/1.csv", "/x[1].csv", "/2023/12/f", "/2024/01/f"
    )
    fill(ns, "/star*", "/stars")


def _found(*patterns: str) -> list[str]:
    run = CommandRun(Output(), ConnectionOptions())
    with run.closing:
        found = find_items(run, [f"holdfast://ns{one}" for one in patterns], glob=True)
        return [item.status.path for item in found]


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("/a/*.csv", ["/a/1.csv", "/a/2.csv"]),
        ("/a/*", ["/a/.hidden", "/a/1.csv", "/a/2.csv", "/a/b"]),
        ("/a/?.csv", ["/a/1.csv", "/a/2.csv"]),
        ("/a/[2-9].csv", ["/a/2.csv"]),
        ("/a/[!2].csv", ["/a/1.csv"]),
        ("/a/{1,9}.csv", ["/a/1.csv"]),
        ("/*/b/*.csv", ["/a/b/1.csv"]),
        ("/{2023,2024}/{01,12}/f", ["/2023/12/f", "/2024/01/f"]),
        ("/**/1.csv", ["/a/1.csv", "/a/b/1.csv", "/a/b/c/1.csv"]),
        ("/a/**/**/1.csv", ["/a/1.csv", "/a/b/1.csv", "/a/b/c/1.csv"]),
        ("/a/b/**", ["/a/b/1.csv", "/a/b/c", "/a/b/c/1.csv"]),
        (r"/x\[1].csv", ["/x[1].csv"]),
        ("/a/1.csv", ["/a/1.csv"]),
        ("/", ["/"]),
        (r"/star\**", ["/star*"]),
        ("/sta[r]*", ["/star*", "/stars"]),
        (r"/x\[?].csv", ["/x[1].csv"]),
        ("//a///b/", ["/a/b"]),
        ("/a/*/", ["/a/b"]),
        ("/a/**/", ["/a/b", "/a/b/c"]),
        ("/**/", ["/2023", "/2023/12", "/2024", "/2024/01", "/a", "/a/b", "/a/b/c"]),
    ],
)
def test_patterns(pattern: str, paths: list[str]) -> None:
    assert _found(pattern) == paths


def test_nothing_occurs_twice() -> None:
    assert _found("/a/2.csv", "/a/*.csv", "/a/1.csv") == ["/a/2.csv", "/a/1.csv"]


def test_a_pattern_without_a_match_is_an_error() -> None:
    with pytest.raises(PathNotFoundError, match="nothing matches the pattern"):
        _found("/a/*.json")


def test_a_slash_in_braces_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"not closed before the next slash: write {a,b}, several urls"):
        _found("/{2023/12,2024/01}/f")


def test_a_pattern_with_a_slash_at_its_end_never_means_files() -> None:
    with pytest.raises(PathNotFoundError, match="nothing matches the pattern"):
        _found("/a/*.csv/")


def test_braces_that_mean_too_many_words_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the braces mean more than 1,000 words"):
        _found("/a/" + "{a,b}" * 40)
    assert _found("/a/" + "{" * 300 + "1.csv" + "}" * 300) == ["/a/1.csv"]


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("[a&&b]", "ab&", "c["),
        ("[a||b]", "ab|", "c"),
        ("[[a]", "[a", "b]"),
        ("[!a&&b]", "c", "ab&"),
        ("[a-c-]", "abc-", "d"),
        ("[-a]", "-a", "b"),
        ("[!]]", "a!", "]"),
        ("[]a]", "]a", "["),
        ("[a^]", "a^", "b"),
        ("[\\d]", "d", "1"),
        ("\\{", "{", "\\"),
        ("{a,\\,}", "a,", "\\"),
        ("{a,{b,c}}", "abc", "{}"),
        ("[", "[", "a"),
        ("***", "a", ""),
    ],
)
def test_words(pattern: str, matching: str, others: str) -> None:
    compiled = compile_segment(pattern)
    assert [letter for letter in matching + others if compiled.fullmatch(letter)] == list(matching)


ODD_NAMES = ("report[1].csv", "report[!a].csv", "report?.csv", "report*.csv", "report{1,2}.csv")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_never_becomes_a_pattern_because_it_is_missing(ns: Namespace, here: Path, name: str) -> None:
    """A command that is repeated must not reach another file: all commands take names unless they are told."""
    fill(ns, f"/p/{name}", "/p/report1.csv", "/q/")
    url = f":/p/{name}"
    assert run_fs("mv", url, ":/q").exit_code == run_fs("mv", f":/q/{name}", ":/p").exit_code == 0
    assert run_fs("cat", url).stdout == f"/p/{name}"
    assert run_fs("rm", url).exit_code == 0
    before = shown(ns), ns.status("/p/report1.csv")
    repeated = (
        *(["rm", url], ["rm", "-r", "--trash", url], ["mv", url, ":/q"], ["mv", url, ":/q/new"], ["cp", url, ":/q"]),
        *(["cat", url], ["get", url, "."], ["get", url, "-"], ["du", url], ["ls", url]),
        *(["chmod", "600", url], ["chown", "bob", url], ["stat", url], ["find", url], ["ls", url]),
        *(["quota", "--names", "none", url], ["quota", url]),
    )
    for command in repeated:
        result = run_fs(*command)
        assert result.exit_code != 0, command
        assert "add --glob if it is a pattern" in result.stderr
    assert run_fs("rm", "-f", url).exit_code == run_fs("touch", "-c", url).exit_code == 0
    assert (shown(ns), ns.status("/p/report1.csv")) == before
    assert run_fs("touch", url).exit_code == 0
    assert shown(ns) == sorted([*before[0], f"/p/{name}"])
