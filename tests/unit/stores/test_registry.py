"""The registry: providers by URL scheme, those of other packages among them, and their options as strings."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from holdfast.commit import open_context
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.namespace.object_store.provider import PROVIDER as NAMESPACE
from holdfast.namespace.object_store.provider import NamespaceOptions
from holdfast.options.read import parse_read_options
from holdfast.options.write import parse_job_options, parse_write_options
from holdfast.stores import registry
from holdfast.stores.base import ObjectStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.provider import (
    CommandFlag,
    GivenOption,
    Location,
    OptionSpec,
    StoreOptions,
    StoreProvider,
    fold_name,
)
from holdfast.stores.registry import (
    BUILT_IN,
    fill_in_shared_options,
    find_provider,
    find_providers_for_options,
    installed_providers,
    list_secret_option_names,
    open_destination,
    options_for_provider,
    parse_store_options,
    shared_options,
)
from holdfast.stores.s3 import S3, S3Options
from tests.unit.cli.destinations import commit_table, run


# --- a provider of another package ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class DepotOptions(StoreOptions):
    """Options of the stores below."""

    host_name: str = "localhost"
    pass_word: str | None = field(default=None, repr=False)


def _password(text: str) -> str:
    if not text.isprintable():
        raise InvalidRequestError("a password holds no line break: remove it")
    return text


def _open(location: Location, options: DepotOptions) -> ObjectStore:
    return _STORES.setdefault((location.root, options.host_name), MemoryStore())


_STORES: dict[tuple[str, str], MemoryStore] = {}
DEPOT = StoreProvider(
    schemes=("depot", "depots"),
    open=_open,
    options=DepotOptions,
    specs=(
        OptionSpec(name="hostName", field="host_name"),
        OptionSpec(name="passWord", field="pass_word", parse=_password, secret=True),
    ),
)
NOT_A_PROVIDER = "depot"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Announce entry points as an installed package does."""
    monkeypatch.setattr(registry, "_by_scheme", dict(registry._by_scheme))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def announce(package: str, **entries: str) -> None:
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{scheme} = {value}\n" for scheme, value in entries.items()]
        (metadata / "entry_points.txt").write_text("".join(["[holdfast.stores]\n", *lines]))

    yield announce
    _STORES.clear()


@pytest.fixture
def depot(install: Callable[..., None]) -> None:
    install("depot", depot=f"{__name__}:DEPOT", depots=f"{__name__}:DEPOT")


# --- schemes ----------------------------------------------------------------------------------------------------------
def test_built_in_providers_are_found_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_find_entry_points", lambda: pytest.fail("entry points were searched"))
    found = {scheme: find_provider(scheme) for one in BUILT_IN for scheme in one.schemes}
    assert found.items() <= registry._by_scheme.items()
    assert find_providers_for_options(["s3://b/k", "/data/t", "file:///x", "memory://m"]) == BUILT_IN
    assert parse_store_options({"region": "eu-west-1"}) == (S3Options(region="eu-west-1"),)
    open_destination("memory://registry/t")


def test_a_provider_of_another_package(depot: None) -> None:
    destination = open_destination("depots://north/a/b/", [DepotOptions(host_name="h"), S3Options()])
    assert destination.url == "depot://north/a/b"
    assert destination.store is _STORES["north", "h"]
    assert open_destination(destination.url).store is _STORES["north", "localhost"], "the defaults"
    assert find_provider("depot") is find_provider("depots")
    assert find_providers_for_options(["depot://x", "s3://b", "depots://y"]) == (*BUILT_IN, DEPOT)
    with pytest.raises(InvalidRequestError, match="no store has this url scheme"):
        find_providers_for_options(["depot://x", "nowhere://x"])
    assert installed_providers()[: len(BUILT_IN)] == BUILT_IN
    assert DEPOT in installed_providers()


def test_a_job_reaches_it(depot: None) -> None:
    ctx = open_context("depot://north/t", store_options=[DepotOptions(host_name="h")])
    assert (ctx.url, ctx.prefix) == ("depot://north/t", "t/")
    assert ctx.store is _STORES["north", "h"]


def test_credentials_in_a_url_are_refused_for_every_store(depot: None) -> None:
    with pytest.raises(InvalidRequestError, match="credentials do not belong in a url") as caught:
        open_destination("depot://me:canary@north/t")
    assert "canary" not in str(caught.value)


def test_an_unknown_scheme_offers_the_nearest(depot: None) -> None:
    with pytest.raises(InvalidRequestError, match="no store has this url scheme: use depot://") as caught:
        find_provider("deppot")
    assert "s3" in caught.value.variables["known"]  # type: ignore[operator]  # a string


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("no_such_module:PROVIDER", "cannot be imported: reinstall it"),
        (f"{__name__}:NO_SUCH_NAME", "cannot be imported: reinstall it"),
        (f"{__name__}:NOT_A_PROVIDER", "names no store provider of this scheme"),
        ("holdfast.stores.s3:S3", "names no store provider of this scheme"),
    ],
)
def test_a_broken_package_is_named(install: Callable[..., None], value: str, sentence: str) -> None:
    install("broken", broken=value)
    with pytest.raises(UnsupportedError, match=sentence) as caught:
        find_provider("broken")
    assert caught.value.variables["provider"] == value
    with pytest.raises(UnsupportedError, match=sentence):
        find_providers_for_options(["broken://x"])


@pytest.mark.parametrize("error", ["RuntimeError('no licence')", "SyntaxError('bad')", "OSError('no file')"])
def test_a_package_whose_import_fails_hides_no_other(install: Callable[..., None], tmp_path: Path, error: str) -> None:
    (tmp_path / "failing_store.py").write_text(f"raise {error}")
    install("failing", failing="failing_store:PROVIDER")
    install("depot", depot=f"{__name__}:DEPOT")
    with pytest.raises(UnsupportedError, match="cannot be imported: reinstall it"):
        find_provider("failing")
    others = [one for one in installed_providers() if one is not NAMESPACE]  # Holdfast's own entry point
    assert others == [*BUILT_IN, DEPOT]


def test_an_option_of_a_package_that_cannot_be_used_is_not_called_unknown(install: Callable[..., None]) -> None:
    install("broken", broken="no_such_module:PROVIDER")
    with pytest.raises(UnsupportedError, match="cannot be imported: reinstall it"):
        parse_read_options({"path": "broken://h/p", "lockTimeout": "2"})
    with pytest.raises(InvalidRequestError, match="no store has this url scheme: use broken://"):
        parse_read_options({"path": "brokn://h/p", "lockTimeout": "2"})


def test_a_url_that_lost_a_slash_names_its_scheme(depot: None) -> None:
    with pytest.raises(InvalidRequestError, match="two slashes must follow the scheme: write depot://"):
        open_destination("depot:/north/t")


def test_two_packages_cannot_share_a_scheme(install: Callable[..., None]) -> None:
    install("one", depot=f"{__name__}:DEPOT")
    install("two", depot="elsewhere:DEPOT")
    with pytest.raises(UnsupportedError, match="uninstall all but one"):
        find_provider("depot")


def test_a_built_in_scheme_cannot_be_taken_over(install: Callable[..., None]) -> None:
    install("thief", s3=f"{__name__}:DEPOT")
    assert find_provider("s3") is S3


@pytest.mark.parametrize("schemes", [(), ("Depot",)])
def test_a_provider_needs_schemes_in_lower_case(schemes: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="at least one url scheme in lower case"):
        StoreProvider(schemes=schemes, open=_open)


def test_an_option_needs_a_name_that_can_be_given() -> None:
    with pytest.raises(InvalidRequestError, match="name a store option in camel case"):
        StoreProvider(schemes=("depot",), open=_open, specs=(OptionSpec(name="lock_timeout", field="lock_timeout"),))


# --- options ----------------------------------------------------------------------------------------------------------
def test_names_are_taken_in_any_case_and_in_snake_case() -> None:
    for name in ("endpoint", "ENDPOINT"):
        assert parse_store_options({name: "http://h:1"}) == (S3Options(endpoint_url="http://h:1"),)
    given = {"access_key": "a", "secretKey": "b", "SESSIONTOKEN": "c", "caBundle": "d", "pathstyle": "True"}
    assert parse_store_options(given) == (
        S3Options(access_key="a", secret_key="b", session_token="c", ca_bundle="d", addressing_style="path"),
    )
    assert parse_store_options({"path_style": "false"}) == (S3Options(addressing_style="virtual"),)
    assert parse_store_options({}) == ()


def test_every_option_sets_a_field_and_every_flag_an_option() -> None:
    for provider in BUILT_IN:
        names = {spec.name for spec in provider.specs}
        assert len({fold_name(name) for name in names}) == len(names)
        assert all(hasattr(provider.options(), spec.field) for spec in provider.specs)
        assert all(bool(flag.option) != bool(flag.variable) for flag in provider.flags)
        assert {flag.option for flag in provider.flags if flag.option} <= names
    assert list_secret_option_names() == {"accesskey", "secretkey", "sessiontoken"}
    assert [spec.keyword for spec in S3.specs][:3] == ["endpoint", "region", "ca_bundle"]


def test_no_flag_takes_a_secret() -> None:
    """A command line is visible to everybody on the machine."""
    flags: list[CommandFlag] = [flag for provider in BUILT_IN for flag in provider.flags]
    assert {fold_name(flag.option) for flag in flags}.isdisjoint(list_secret_option_names())


def test_unknown_options_offer_the_nearest() -> None:
    with pytest.raises(InvalidRequestError, match="unknown store option: did you mean endpoint"):
        parse_store_options({"endpont": "http://h:1"})
    with pytest.raises(InvalidRequestError, match="given twice with different values"):
        parse_store_options({"region": "a", "REGION": "b"})
    with pytest.raises(InvalidRequestError, match="unknown store option"):
        parse_store_options({"hostName": "h"})
    assert parse_store_options({"host_name": "h"}, [DEPOT]) == (DepotOptions(host_name="h"),)


def test_a_value_is_shown_unless_it_is_secret() -> None:
    with pytest.raises(InvalidRequestError, match="no such choice") as caught:
        parse_store_options({"pathStyle": "maybe"})
    assert caught.value.variables == {"option": "pathStyle", "value": "maybe"}
    with pytest.raises(InvalidRequestError, match="no line break") as caught:
        parse_store_options({"passWord": "canary\n"}, [DEPOT])
    assert caught.value.variables == {"option": "passWord"}
    assert caught.value.__cause__ is None
    assert "canary" not in repr(parse_store_options({"passWord": "canary"}, [DEPOT]))


@pytest.mark.parametrize("secret", [False, True])
def test_a_parser_of_another_package_may_raise_any_value_error(install: Callable[..., None], secret: bool) -> None:
    plain = StoreProvider(
        schemes=("plain",),
        open=_open,
        options=DepotOptions,
        specs=(OptionSpec(name="hostName", field="host_name", parse=int, secret=secret),),  # type: ignore[arg-type]  # returns no string
    )
    registry._by_scheme["plain"] = plain
    for parse in (
        lambda: parse_store_options({"hostName": "canary"}, [plain]),
        lambda: parse_read_options({"path": "plain://x", "hostName": "canary"}),
    ):
        with pytest.raises(InvalidRequestError, match="the value of an option is invalid") as caught:
            parse()
        assert ("canary" in str(caught.value)) is not secret
        assert (caught.value.__cause__ is None) is secret


@pytest.mark.parametrize("name", ["compression", "threads", "FILEFORMAT"])
def test_an_option_that_another_one_hides_is_refused(install: Callable[..., None], name: str) -> None:
    """Defect: it took the value, and the format wrote with its default."""
    specs = (OptionSpec(name=name, field="host_name"),)
    registry._by_scheme["greedy"] = StoreProvider(schemes=("greedy",), open=_open, options=DepotOptions, specs=specs)
    with pytest.raises(UnsupportedError, match="has the name of another option"):
        parse_write_options({"path": "greedy://x", name: "zstd"}, overwrite=False)


def test_each_store_takes_its_own_options() -> None:
    given = (S3Options(region="eu-west-1"), DepotOptions(host_name="h"))
    assert options_for_provider(DEPOT, given) == given[1]
    assert options_for_provider(S3, given) == given[0]
    for provider in BUILT_IN:
        assert options_for_provider(provider, [DepotOptions()]) == provider.options()
    assert pickle.loads(pickle.dumps(given)) == given


def test_a_store_over_another_one_gets_the_options_of_all_others(depot: None) -> None:
    """Defect: Spark's jobs on a namespace ignored the endpoint of its data."""
    texts = {"path": "holdfast://lake/t", "endpoint": "http://h:1", "hostName": "h", "namespaceUser": "ann"}
    for parsed in (parse_write_options(texts, overwrite=False), parse_read_options(texts), parse_job_options(texts)):
        own = options_for_provider(NAMESPACE, parsed.store.store_options)
        assert isinstance(own, NamespaceOptions)
        assert own.user == "ann"
        assert own.data == (S3Options(endpoint_url="http://h:1"), DepotOptions(host_name="h"))
        assert pickle.loads(pickle.dumps(own)) == own, "executors get them"
    assert options_for_provider(S3, [NamespaceOptions(user="ann")]) == S3Options()


def test_shared_options_stand_in_for_what_a_client_leaves_out() -> None:
    given = [GivenOption.of("ENDPOINT", "http://h:1", "--endpoint-url"), GivenOption.of("caBundle", "/ca.pem", "x")]
    shared = shared_options(S3, given)
    assert shared == {"endpoint": "http://h:1"}, "the path of a file is not the same on all machines"
    assert fill_in_shared_options(S3, [], shared) == (S3Options(endpoint_url="http://h:1"),)
    other = DepotOptions(host_name="h")
    own = S3Options(endpoint_url="http://mine:1", access_key="a", secret_key="s")
    shared["pathStyle"] = "true"
    assert fill_in_shared_options(S3, [own, other], shared) == (other, replace(own, addressing_style="path"))
    for wrong in ({"secretKey": "canary"}, {"caBundle": "/x"}, {"odd": "canary"}):
        with pytest.raises(InvalidRequestError, match="cannot be kept for all clients") as caught:
            fill_in_shared_options(S3, [], wrong)
        assert "canary" not in str(caught.value)
    with pytest.raises(InvalidRequestError, match="no such choice"):
        fill_in_shared_options(S3, [], {"pathStyle": "maybe"})
    with pytest.raises(InvalidRequestError, match="must start with http"):
        fill_in_shared_options(S3, [], {"endpoint": "h:1"})


def test_a_secret_is_never_shared() -> None:
    with pytest.raises(InvalidRequestError, match="cannot be shared"):
        StoreProvider(
            schemes=("odd",), open=_open, specs=(OptionSpec(name="word", field="word", secret=True, shared=True),)
        )


# --- edges ------------------------------------------------------------------------------------------------------------
def test_spark_options_of_another_package(depot: None) -> None:
    texts = {"path": "depot://north/t", "HOSTNAME": "h", "password": "canary"}
    wanted = DepotOptions(host_name="h", pass_word="canary")
    assert parse_write_options(texts, overwrite=False).store.store_options == (wanted,)
    assert parse_write_options(texts, overwrite=False).format.strings == {}
    assert parse_read_options(texts).store.store_options == (wanted,)
    assert parse_job_options({**texts, "region": "x"}).store.store_options == (S3Options(region="x"), wanted)
    elsewhere = {"path": "/data/t", "reportDir": "depot://north/reports", "hostName": "h"}
    assert parse_write_options(elsewhere, overwrite=False).store.store_options == (DepotOptions(host_name="h"),)
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_write_options({"path": "/data/t", "hostName": "h"}, overwrite=False)
    with pytest.raises(InvalidRequestError, match="unknown option: did you mean hostName"):
        parse_job_options({"path": "depot://north/t", "hostNam": "h"})
    with pytest.raises(InvalidRequestError, match="no line break") as caught:
        parse_write_options({**texts, "password": "canary\n"}, overwrite=False)
    assert "canary" not in str(caught.value)


# --- commands ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "depot://north/t", "--option", "passWord=canary"],
        ["write", "a.csv", "depot://north/t", "--option", "pass_word=canary"],
        ["write", "a.csv", "out", "--option", "reportDir=depot://north/t", "--option", "PASSWORD=canary"],
        ["write", "a.csv", "depot://north/t", "--store-option", "passWord=canary"],
        ["verify", "depot://north/t", "--store-option", "passWord=canary"],
        ["verify", "depot://north/t", "--store-option", "secretKey=canary"],
    ],
)
def test_no_command_takes_a_secret_of_any_store(arguments: list[str], depot: None) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and "credentials do not belong on a command line" in result.stderr
    assert "canary" not in result.output


@pytest.mark.parametrize("flag", ["--store-option", "--option"])
def test_commands_open_a_store_with_the_options_given(flag: str, depot: None) -> None:
    commit_table("depot://north/t", store_options=[DepotOptions(host_name="h")])
    result = run("read", "depot://north/t", flag, "hostName=h")
    assert result.exit_code == 0 and "3 rows of 2 files" in result.output
    elsewhere = run("read", "depot://north/t", flag, "hostName=other")
    assert elsewhere.exit_code != 0 and "rows" not in elsewhere.stdout
    assert run("verify", "depot://north/t", "--store-option", "host_name=h").exit_code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--store-option", "hostNme=h"], "unknown store option: did you mean hostName"),
        (["--store-option", "hostName"], "an option is written as key=value"),
        (["--store-option", "region=x"], "this option has its own parameter: use --region"),
        (["--store-option", "hostName=a", "--store-option", "host_name=b"], "given twice with different values"),
        (["--store-option", "hostName=a", "--store-option", "hostName=b"], "given twice with different values"),
    ],
)
def test_wrong_store_options_exit_2(options: list[str], sentence: str, depot: None) -> None:
    result = run("history", "depot://north/t", *options)
    assert (result.exit_code, result.stdout) == (2, "") and sentence in result.stderr
