"""Find the provider of a URL scheme, parse the options of the stores that a call uses, and open what a URL names.

    s3://bucket/key    s3a://, s3n://      an S3 bucket; the key is taken literally, as Spark users write it
    file:///path       file:/path, path    a directory of this machine, absolute or relative; links are resolved
    memory://name/key                      a store of this process, for tests
    other://…                              a store of another package

Worked composition::

    destination = open_destination("s3://bucket/my table/year=2013")
    destination.store.put(destination.key("_SUCCESS"), b"{}")

Other packages add a store by registering its `StoreProvider` as an entry point, one per scheme::

    [project.entry-points."holdfast.stores"]
    sqlite = "holdfast_sqlite:PROVIDER"

Entry points are searched only for schemes and options that no built-in provider has, because that search reads the
metadata of every installed package.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.provider import (
    GivenOptions,
    HadoopFileSystem,
    Location,
    OptionSource,
    StoreOptions,
    StoreProvider,
    fold_name,
)
from holdfast.stores.s3 import S3
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from holdfast.stores.base import ObjectStore


# --- local paths ------------------------------------------------------------------------------------------------------
def absolute_path(path: str) -> str:
    """Make a path absolute; ``~`` at its beginning is the user's home directory.

    Raises:
        InvalidRequestError: the path is relative and the working directory was deleted.
    """
    try:
        return os.path.abspath(os.path.expanduser(path))
    except FileNotFoundError as error:
        raise InvalidRequestError(
            "the path is relative and the working directory was deleted: give an absolute path", path=path
        ) from error


def locate_path(path: str) -> Location:
    """Return the location of an absolute or relative path on this machine.

    Guarantee: symbolic links are resolved. So each directory has only one location, and the parents in it are those of
    the directory itself, not those of a link to it.

    Raises:
        InvalidRequestError: `path` cannot be a path, or is a link to a path that does not exist.
    """
    if not path:
        raise InvalidRequestError("this cannot be a path, since it is empty: write file:///path")
    if "\0" in path:
        raise InvalidRequestError("this cannot be a path: give another one", path=path)
    absolute = absolute_path(path)
    if os.path.islink(absolute) and not os.path.exists(absolute):
        raise InvalidRequestError(
            "the path is a dangling symbolic link: create the directory that it points to", path=path
        )
    return Location("/", os.path.realpath(absolute).strip("/"))


def _locate_local(rest: str) -> Location:
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise InvalidRequestError("a file url names no host: write file:///path", host=host)
    return locate_path(f"/{path}")


def _open_local(location: Location, _options: StoreOptions) -> ObjectStore:
    from holdfast.stores.local.store import LocalStore

    return LocalStore(location.root, keep=location.prefix)


LOCAL = StoreProvider(schemes=("file",), open=_open_local, locate=_locate_local, hadoop=HadoopFileSystem(scheme="file"))
"""``file:///path``."""


def _open_memory(location: Location, _options: StoreOptions) -> ObjectStore:
    from holdfast.stores.memory import memory_store

    return memory_store(location.root)


MEMORY = StoreProvider(schemes=("memory",), open=_open_memory)
"""``memory://name/key``: stores that live as long as this process, for tests."""


BUILT_IN: tuple[StoreProvider, ...] = (S3, LOCAL, MEMORY)
ENTRY_POINT_GROUP = "holdfast.stores"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_by_scheme: dict[str, StoreProvider] = {scheme: one for one in BUILT_IN for scheme in one.schemes}


# --- providers --------------------------------------------------------------------------------------------------------
def scheme_of(url: str) -> str:
    """Return the scheme of a URL in lower case; empty for a path."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def find_provider(scheme: str) -> StoreProvider:
    """Return the provider of a URL scheme.

    Raises:
        InvalidRequestError: no package provides the scheme; the message suggests the nearest one, or says that the
            system it belongs to is not supported.
        UnsupportedError: a package provides the scheme, but its provider cannot be used.
    """
    known = _by_scheme.get(scheme)
    if known is not None:
        return known
    entries = _find_entry_points().select(name=scheme)
    if not entries:
        raise _unknown_scheme_error(scheme)
    if len({entry.value for entry in entries}) > 1:
        raise UnsupportedError(
            "several packages provide this url scheme: uninstall all but one",
            scheme=scheme,
            providers=", ".join(sorted(entry.value for entry in entries)),
        )
    provider = _load_provider(next(iter(entries)))
    _by_scheme[scheme] = provider
    return provider


def _find_entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # deferred: it takes 7 ms, and built-in stores never need it

    return entry_points(group=ENTRY_POINT_GROUP)


def _load_provider(entry: EntryPoint) -> StoreProvider:
    try:
        provider = entry.load()
    except Exception as error:  # importing another package's module may raise anything
        raise UnsupportedError(
            "the package that provides this url scheme cannot be imported: reinstall it",
            scheme=entry.name,
            provider=entry.value,
        ) from error
    if not isinstance(provider, StoreProvider) or entry.name not in provider.schemes:
        raise UnsupportedError(
            "the entry point names no store provider of this scheme: correct it in the package that registers it",
            scheme=entry.name,
            provider=entry.value,
        )
    return provider


def _unknown_scheme_error(scheme: str) -> InvalidRequestError:
    if reason := explain_unsupported_scheme(scheme):
        return InvalidRequestError(reason, scheme=scheme)
    installed = _find_entry_points().names
    known = [*_by_scheme, *sorted(installed - set(_by_scheme))]
    near = difflib.get_close_matches(scheme, known, 1, 0.5)
    hint = f"{near[0]}://" if near else "one of those that are known"
    return InvalidRequestError(f"no store has this url scheme: use {hint}", scheme=scheme, known=", ".join(known))


def find_providers_for_options(urls: Iterable[str]) -> tuple[StoreProvider, ...]:
    """Return the providers whose options a call accepts: the built-in providers and those of the call's URLs.

    One call can use several stores: one for its destination, one for a shared directory, and one for reports.

    Raises:
        InvalidRequestError, UnsupportedError: `find_provider` refuses the scheme of a URL. Without its provider, valid
            options would be reported as unknown.
    """
    found = [find_provider(scheme) for scheme in map(scheme_of, urls) if scheme]
    if any(one.inner_options for one in found):
        found += installed_providers()  # which store is inside is known when it is opened
    return _prepend_built_in_providers(found)


def installed_providers() -> tuple[StoreProvider, ...]:
    """Return the built-in providers and those of every installed package that can be loaded."""

    def iter_loaded() -> Iterator[StoreProvider]:
        for scheme in sorted(_find_entry_points().names):
            with contextlib.suppress(UnsupportedError):  # opening one of its URLs reports the reason
                yield find_provider(scheme)

    return _prepend_built_in_providers(iter_loaded())


def _prepend_built_in_providers(others: Iterable[StoreProvider]) -> tuple[StoreProvider, ...]:
    return tuple(dict.fromkeys((*BUILT_IN, *others)))


def has_provider(scheme: str) -> bool:
    """Check whether a built-in store or an installed package has this URL scheme."""
    return scheme in _by_scheme or scheme in _find_entry_points().names


# --- options ----------------------------------------------------------------------------------------------------------
def options_for_provider(provider: StoreProvider, given: Iterable[StoreOptions]) -> StoreOptions:
    """Return the entry of `given` with the provider's own options class, or else the provider's defaults.

    If the store keeps its data in another store, the result also carries all other entries of `given`, see
    `StoreProvider.inner_options`.
    """
    given = tuple(given)
    own = next((one for one in given if type(one) is provider.options), None) or provider.options()
    if not provider.inner_options:
        return own
    others = tuple(one for one in given if type(one) is not provider.options)
    return replace(own, **{provider.inner_options: others})


def shared_options(provider: StoreProvider, given: OptionSource) -> dict[str, str]:
    """Return the given options that all clients of a store share (`OptionSpec.shared`): documented name to value.

    Raises:
        InvalidRequestError: an option is given twice with different values.
    """
    names = [spec.name for spec in provider.specs if spec.shared]
    found = GivenOptions(given, names)
    return {name: text for name in names for text in found.texts(name)}


def fill_in_shared_options(
    provider: StoreProvider, given: Iterable[StoreOptions], shared: Mapping[str, str]
) -> tuple[StoreOptions, ...]:
    """Add the values that all clients of a store share to a caller's store options, where the caller has set none.

    Args:
        shared: names and values, as `shared_options` returns them.

    Raises:
        InvalidRequestError: a value is invalid, or the store has no such shared option.
    """
    specs = {spec.name: spec for spec in provider.specs if spec.shared}
    for name in shared:
        if name not in specs:
            advice = suggest_nearest(name, specs) if specs else "leave it out"
            raise InvalidRequestError(
                f"this option cannot be kept for all clients: {advice}",
                option=name,
            )
    given = tuple(given)
    own, default = options_for_provider(provider, given), provider.options()
    kept = GivenOptions(shared, specs)
    values = kept.fields(specs[name] for name in shared)
    fresh = {field: value for field, value in values.items() if getattr(own, field) == getattr(default, field)}
    return (*(one for one in given if type(one) is not provider.options), replace(own, **fresh))


def build_store_options(providers: Iterable[StoreProvider], given: GivenOptions) -> tuple[StoreOptions, ...]:
    """Build the options of each provider for which at least one option was given.

    Raises:
        InvalidRequestError: an option is invalid, or the options of a provider contradict each other.
    """
    found = []
    for provider in providers:
        if values := given.fields(provider.specs):
            found.append(provider.options(**values))
    return tuple(found)


def parse_store_options(
    options: OptionSource, providers: Sequence[StoreProvider] = BUILT_IN
) -> tuple[StoreOptions, ...]:
    """Parse store options that were given as strings; their names may be in any case or in snake case.

    Raises:
        InvalidRequestError: an option is invalid or unknown; for an unknown one, the message suggests the nearest name.
            The message never contains a secret.
    """
    specs = [spec for provider in providers for spec in provider.specs]
    given = GivenOptions(options, (spec.name for spec in specs))
    for one in given.unknown:
        shown = [spec.name for spec in specs if not spec.secret] or given.known
        raise InvalidRequestError(f"unknown store option: {suggest_nearest(one.name, shown)}", option=one.spelled)
    return build_store_options(providers, given)


def list_secret_option_names(providers: Iterable[StoreProvider] = BUILT_IN) -> frozenset[str]:
    """Return the names of secret options, folded by `fold_name`."""
    return frozenset(fold_name(spec.name) for provider in providers for spec in provider.specs if spec.secret)


_SYSTEMS = {
    "Google Cloud Storage": ("gs", "gcs"),
    "Azure Storage": ("abfs", "abfss", "adl", "az", "azure", "wasb", "wasbs"),
    "HDFS": ("hdfs", "swebhdfs", "viewfs", "webhdfs"),
    "the Databricks File System": ("dbfs",),
    "Alibaba Cloud OSS": ("oss",),
    "Tencent Cloud COS": ("cos", "cosn"),
    "Huawei Cloud OBS": ("obs",),
}


def explain_unsupported_scheme(scheme: str) -> str:
    """Return a sentence that says what to use instead of an unsupported scheme; empty if the scheme is unknown."""
    system = next((name for name, schemes in _SYSTEMS.items() if scheme in schemes), "")
    if not system:
        return ""
    return (
        f"{system} is not supported yet: use a bucket on a server that speaks S3 (s3://bucket/key), or a directory "
        "that all machines mount (/path)"
    )


# --- destinations -----------------------------------------------------------------------------------------------------
LOST_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""Matches the start of a URL that has lost one of its two slashes through `pathlib` or a typing error."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A directory in a store.

    Attributes:
        store: the store.
        prefix: key of the directory, without a slash at either end; empty for the whole store.
        url: the canonical URL, without credentials; `open_destination` returns the same destination for it.
    """

    store: ObjectStore
    prefix: str
    url: str

    def key(self, relative: str) -> str:
        """Return the key of a name below the destination; for ``""``, the prefix of all keys below the destination."""
        return f"{self.prefix}/{relative}" if self.prefix else relative


def open_destination(url: str, store_options: Iterable[StoreOptions] = ()) -> Destination:
    """Open the store and directory that a URL names. Makes no request: the first call reports a missing bucket.

    Args:
        url: see the top of this module. Percent signs, spaces, ``+``, ``#`` and ``?`` are literal.
        store_options: how to reach the stores; each store uses the entry of its own type, or its defaults if there is
            none.

    Raises:
        InvalidRequestError: the URL is invalid; the message suggests a correction and never repeats credentials.
        UnsupportedError: the package that provides the URL's scheme cannot be used.
    """
    provider, location = locate_url(url)
    store = provider.open(location, options_for_provider(provider, store_options))
    return Destination(store, location.prefix, provider.url(location))


def locate_url(url: str) -> tuple[StoreProvider, Location]:
    """Parse a URL into the provider of its store and the location in it.

    Raises:
        InvalidRequestError: see `open_destination`.
        UnsupportedError: see `open_destination`.
    """
    if not url or not url.strip():
        raise InvalidRequestError("the destination is empty: give a url or a path")
    scheme = scheme_of(url)
    if not scheme:
        if refusal := _explain_invalid_path(url):
            raise InvalidRequestError(refusal, url=_strip_credentials(url))
        return LOCAL, locate_path(_strip_file_scheme(url))
    provider = find_provider(scheme)
    rest = url[len(f"{scheme}://") :]
    if "@" in rest.partition("/")[0]:
        raise InvalidRequestError(
            "credentials do not belong in a url, where logs would show them: give them as options", scheme=scheme
        )
    return provider, provider.locate(rest)


def absolute_url(url: str) -> str:
    """Return a URL that means the same to a process with another working directory and another user.

    Guarantee: the result names the same directory as `url` does in this process now. Only a path that is relative or
    begins with ``~`` is changed; a string that is not a URL is returned unchanged, and `open_destination` refuses it.

    Raises:
        InvalidRequestError: the path is relative to a working directory that was deleted.
    """
    path = _strip_file_scheme(url)
    if scheme_of(url) or _explain_invalid_path(url):
        return url
    if not path.strip() or os.path.isabs(path):
        return url
    return url[: len(url) - len(path)] + absolute_path(path)


def _strip_file_scheme(url: str) -> str:
    return url[len("file:") :] if url[: len("file:")].lower() == "file:" else url


def _strip_credentials(url: str) -> str:
    """Return the URL without the part before an @, which could be ``key:secret`` and must not appear in an error."""
    before, _, after = url.rpartition("@")
    return f"…@{after}" if ":" in before else url


def _explain_invalid_path(url: str) -> str:
    """Return the reason why a string without ``scheme://`` is not a path either; empty if it is a path."""
    scheme = url.partition(":")[0].lower()
    if any(scheme in provider.schemes for provider in BUILT_IN if provider is not LOCAL):
        return f"two slashes must follow the scheme: write {scheme}://bucket/key"
    if scheme_of(url.lstrip()):
        return "the url starts with a space: remove it"
    if scheme != "file" and LOST_SLASH.match(url):
        if has_provider(scheme):
            return f"two slashes must follow the scheme: write {scheme}://"
        if reason := explain_unsupported_scheme(scheme):
            return f"{reason}, or write ./ before a directory of this name"
        return f"no store has the url scheme {scheme}: use s3://bucket/key, or write ./ before a directory of this name"
    return ""
