"""Define what operations get and return: a request as they see it, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.namespace import Namespace
from holdfast.webhdfs.hadoop_tokens import KIND
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.tokens import Token, TokenStore

PREFIX = "/webhdfs/v1"
"""What every path begins with, before the path in the namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request for an operation of a user.

    Attributes:
        method, operation: such as PUT and MKDIRS.
        path: in the namespace.
        parameters: those of the request.
        namespace: as the user sees it; a change takes effect at most once.
        host, port: of this server, as the client has named it.
        tokens: those of this namespace.
        token_kind: that of delegation tokens.
        token: what has proved who calls; None for something else.
        trash_s: after how many seconds the trash is emptied; 0 for never.
    """

    method: str
    operation: str
    path: str
    parameters: Parameters
    namespace: Namespace
    host: str
    port: int
    tokens: TokenStore
    token_kind: str = KIND
    token: Token | None = None
    trash_s: float = 0

    @property
    def user(self) -> str:
        """The name of the user who calls."""
        return self.namespace.caller.user


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an operation answers.

    Attributes:
        status: of HTTP.
        document: the body, as JSON; None for none.
        body: the body, if it is no document.
        headers: further ones, in lower case. A document has no Content-Type: Hadoop's client without Jersey, as Spark
            brings it, fails on any.
    """

    status: int = 200
    document: Mapping[str, object] | None = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
