"""Open a context for a destination url."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence

from holdfast.commit.context import CommitContext, CommitSettings, Place, Progress, StagingPlaces, silent
from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.runtime import Environment, ThreadRunner
from holdfast.stores.local.store import LocalStore
from holdfast.stores.provider import StoreOptions
from holdfast.stores.url import open_destination


def open_context(
    url: str,
    *,
    store_options: Sequence[StoreOptions] = (),
    settings: CommitSettings | None = None,
    threads: int = 32,
    progress: Progress = silent,
    staging: bool = False,
    leave_no_trace: bool = False,
) -> CommitContext:
    """Return a context for the destination at `url`. Opens no connection yet; the caller closes the context.

    Args:
        store_options: options for the stores of the destination and of the other directories; a store without options
            here uses its defaults.
        threads: how many store calls run in parallel during job commit.
        staging: whether the context needs a scratch and a shared directory.
        leave_no_trace: do not create staging directories; for callers that only read existing ones.

    Raises:
        InvalidRequestError: the url is invalid (the message says why), or `scratch_dir` is not a directory on this
            machine.
        AccessDeniedError: another user can access the default staging directory.
    """
    settings = settings or CommitSettings()
    destination = _place(url, store_options)
    return CommitContext(
        store=destination.store,
        prefix=destination.prefix,
        url=destination.url,
        staging=_staging(settings, store_options, leave_no_trace) if staging else None,
        reports=_place(settings.report_dir, store_options) if settings.report_dir else None,
        environment=Environment(runner=ThreadRunner(threads)),
        settings=settings,
        progress=progress,
    )


def _place(url: str, store_options: Sequence[StoreOptions]) -> Place:
    found = open_destination(url, store_options)
    return Place(store=found.store, prefix=f"{found.prefix}/" if found.prefix else "", url=found.url)


def _staging(settings: CommitSettings, store_options: Sequence[StoreOptions], leave_no_trace: bool) -> StagingPlaces:
    return StagingPlaces(
        scratch=_scratch(settings.scratch_dir or _own("scratch", leave_no_trace)),
        shared=_place(settings.shared_dir or _own("shared", leave_no_trace), store_options),
    )


def _scratch(directory: str) -> Place:
    scheme, found, _rest = directory.partition("://")
    if found and scheme.lower() != "file":
        raise InvalidRequestError(
            "a task stages its files on its own machine: name a local directory with scratch_dir", scratch_dir=directory
        )
    url = open_destination(directory).url
    # Staged files are uploaded before the task reports: a power failure only fails the task, so fsync is not needed.
    return Place(store=LocalStore(url.removeprefix("file://"), durable=False), prefix="", url=url)


def _own(name: str, leave_no_trace: bool) -> str:
    """Return the path of `name` in a directory that only this user can read and write (paper 001, Security)."""
    path = os.path.join(tempfile.gettempdir(), f"holdfast-{os.getuid()}")
    if leave_no_trace and not os.path.lexists(path):
        return os.path.join(path, name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise AccessDeniedError(
            "other users can access the directory for staged files: remove it, or name others with scratch_dir and "
            "shared_dir",
            path=path,
        )
    return os.path.join(path, name)
