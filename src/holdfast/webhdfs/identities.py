"""Find out who sends a request, and on whose behalf.

In this order, a request proves its user by: a bearer token in the header Authorization; a delegation token in the
query; a client certificate, whose common name is the user; ``user.name`` in the query, which is believed only on
loopback or where that was asked for. A user who is configured as a proxy may act for others (``doas``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.namespace.opening import groups_of_user
from holdfast.runtime import Clock
from holdfast.webhdfs.failures import ACCESS_DENIED, SECURITY, RequestRefusedError
from holdfast.webhdfs.hadoop_tokens import HadoopToken
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.tokens import Token, TokenKind, TokenStore
from holdfast.webhdfs.users_file import UsersFile

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*[$]?")
"""Hadoop's ``dfs.webhdfs.user.provider.user.pattern``."""

_NOBODY = "dr.who"
"""Hadoop's ``hadoop.http.staticuser.user``: who calls without a name."""

_GROUPS_S = 60.0
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user with the groups that the server knows.

    Attributes:
        real_user: who acts for the user; empty for the user.
        token: what has proved who calls; None for something else.
    """

    user: str
    groups: tuple[str, ...]
    real_user: str = ""
    token: Token | None = None


class Identities:
    """Finds the users of requests. All methods may be called from several threads.

    Args:
        believes_names: whether ``user.name`` alone is enough.

    Attributes:
        users: who is in which groups, and who may act for others; may be replaced.
    """

    def __init__(
        self,
        tokens: TokenStore,
        users: UsersFile,
        clock: Clock,
        *,
        believes_names: bool,
        machine_groups: Callable[[str], Sequence[str]] = groups_of_user,
    ) -> None:
        self._tokens = tokens
        self.users = users
        self._clock = clock
        self._believes_names = believes_names
        self._machine_groups = machine_groups
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def find(
        self, parameters: Parameters, authorization: str, certificate: Mapping[str, Any] | None, host: str
    ) -> Identity:
        """Return who sends a request.

        Args:
            authorization: the header of that name.
            certificate: of the client, as `ssl` returns it; it was verified.
            host: the address of the client.

        Raises:
            RequestRefusedError: nothing proves a user, or the proof is not valid, or the user may not act for another.
        """
        token = self._find_token(parameters, authorization)
        if token is not None:
            groups = self.groups_of(token.user) if token.groups is None else token.groups
            found = Identity(user=token.user, groups=groups, token=token)
        else:
            name = _common_name(certificate) or self._find_believed_name(parameters)
            found = Identity(user=name, groups=self.groups_of(name))
        wanted = _name_in(parameters, "doas")
        return self._act_for(found, wanted, host) if wanted and wanted != found.user else found

    def _find_token(self, parameters: Parameters, authorization: str) -> Token | None:
        scheme, _, secret = authorization.partition(" ")
        given = parameters.text("delegation")
        if scheme.lower() == "bearer":
            token = self._tokens.find(secret.strip())
            if token is None:
                raise RequestRefusedError(
                    "the bearer token is not valid, or has expired: get another one", ACCESS_DENIED, is_anonymous=True
                )
            return token
        if not given:
            return None
        token = self._tokens.find(HadoopToken.decode(given).password.decode(errors="replace"))
        if token is None:  # Hadoop's client takes the class of its exception from this text
            raise RequestRefusedError(
                "Failed to obtain user group information: org.apache.hadoop.security.token.SecretManager$InvalidToken: "
                "the token does not exist, or has expired",
                SECURITY,
            )
        return token

    def _find_believed_name(self, parameters: Parameters) -> str:
        if not self._believes_names:
            raise RequestRefusedError(
                "this server does not believe user.name: send a token of holdfast namespace token, or a certificate",
                ACCESS_DENIED,
                is_anonymous=True,
            )
        return _name_in(parameters, "user.name") or _NOBODY

    def _act_for(self, real: Identity, user: str, host: str) -> Identity:
        proxy = self.users.proxies.get(real.user)
        groups = () if proxy is None else self.groups_of(user)
        is_delegated = real.token is not None and real.token.kind is TokenKind.DELEGATION
        if proxy is None or is_delegated or not proxy.may_act_for(user, groups):
            raise RequestRefusedError(f"User: {real.user} is not allowed to impersonate {user}", SECURITY)
        if not proxy.may_act_from(host):
            raise RequestRefusedError(f"Unauthorized connection for super-user: {real.user} from IP {host}", SECURITY)
        return Identity(user=user, groups=groups, real_user=real.user, token=real.token)

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user."""
        if self.users.groups is not None:
            return self.users.groups.get(user, ())
        now_s = self._clock.elapsed_s()
        known = self._known.get(user)
        if known is None or now_s - known[0] > _GROUPS_S:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[user] = (now_s, tuple(self._machine_groups(user)))
        return known[1]


def _name_in(parameters: Parameters, parameter: str) -> str:
    """Return the name of a user in a parameter; empty if there is none."""
    name = parameters.text(parameter)
    if name and not _USER.fullmatch(name):
        raise parameters.error(parameter, "it is a name such as ann, with letters, digits and . _ -")
    return name


def _common_name(certificate: Mapping[str, Any] | None) -> str:
    """Return the user whom a certificate proves; empty without a certificate."""
    if not certificate:
        return ""
    parts = [one for part in certificate.get("subject", ()) for one in part]
    names = [str(value) for name, value in parts if name == "commonName"]
    if len(names) != 1 or not _USER.fullmatch(names[0]):
        raise RequestRefusedError(
            "the common name of the certificate is no name of a user: use another certificate",
            ACCESS_DENIED,
            is_anonymous=True,
        )
    return names[0]
