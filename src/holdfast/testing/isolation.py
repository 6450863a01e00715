"""Hide a user's settings for AWS and for proxies from code that talks to a server on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def isolated_environment() -> Iterator[None]:
    """Change the environment of this process for the length of a block, and restore it in the end."""
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    local = ",".join(filter(None, (kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1", "localhost")))
    os.environ.update(
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        NO_PROXY=local,
        no_proxy=local,
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
