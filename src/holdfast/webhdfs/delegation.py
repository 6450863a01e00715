"""Carry out the operations for delegation tokens, which Hadoop's clients ask for, renew and cancel."""

from __future__ import annotations

from holdfast.namespace.errors import PermissionDeniedError
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.changing import DONE
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.hadoop_tokens import HadoopToken, make_identifier
from holdfast.webhdfs.tokens import DELEGATION_MOST_S, DELEGATION_S, TokenKind


def get_delegation_token(call: Call) -> Answer:
    """GETDELEGATIONTOKEN: a token of the caller, for whom a token cannot ask."""
    if call.parameters.text("delegation"):
        raise RequestRefusedError("delegation parameter is not null.")
    proof = call.token
    if proof is not None and proof.kind is TokenKind.DELEGATION:
        raise PermissionDeniedError("Delegation Token can be issued only with web authentication", user=call.user)
    renewer = call.parameters.text("renewer") or call.user
    secret, token = call.tokens.issue(
        call.user,
        DELEGATION_S,
        kind=TokenKind.DELEGATION,
        groups=proof.groups if proof is not None and proof.user == call.user else None,
        renewer=renewer,
        most_s=DELEGATION_MOST_S,
        parent=proof,
    )
    identifier = make_identifier(call.user, renewer, "", token.issued_ms, token.most_ms, int(token.id, 16) % 2**31)
    service = call.parameters.text("service")
    found = HadoopToken(identifier, secret.encode(), call.parameters.text("kind") or call.token_kind, service)
    return Answer(document={"Token": {"urlString": found.encode()}})


def renew_delegation_token(call: Call) -> Answer:
    """RENEWDELEGATIONTOKEN: until when the token is valid now."""
    return Answer(document={"long": call.tokens.renew(_secret(call), call.user)})


def cancel_delegation_token(call: Call) -> Answer:
    """CANCELDELEGATIONTOKEN."""
    call.tokens.cancel(_secret(call), call.user)
    return DONE


def _secret(call: Call) -> str:
    return HadoopToken.decode(call.parameters.require_text("token")).password.decode(errors="replace")
