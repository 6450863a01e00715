"""Carry out operations on behalf of their callers, in threads; changes at most once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, OutcomeUnknownError, StorageFullError, UnavailableError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import (
    DirectoryFrozenError,
    RepeatUnclearError,
    UncheckedTreeError,
    UncountedTreeError,
)
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.keys import receipt_key
from holdfast.namespace.operation import Operation, RequestAbandonedError
from holdfast.namespace.paths import NsPath
from holdfast.namespace.receipts import ClientRequest, RequestRepeatedError, RequestRunner
from holdfast.webhdfs import metrics
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.changing import TRUE, make_operation
from holdfast.webhdfs.deliveries import Deliveries
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.identities import Identities
from holdfast.webhdfs.operations import OPERATIONS
from holdfast.webhdfs.reading import get_file_statuses
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from holdfast.webhdfs.transfers import LEG, check_download, check_upload, open_download, open_upload

R = TypeVar("R")

_PATIENCE_S = 20.0
"""How long a request waits for a database that is away, since it came. A restart takes a few seconds."""

_UPLOADS = frozenset(("CREATE", "APPEND"))
"""These have come long ago when their last byte has: they wait so long at each step."""

_STEP_S = 0.25

_NOT_OF_THE_CHANGE = frozenset(("op", "user.name", "delegation", "doas", "excludedatanodes", "namenoderpcaddress", LEG))
"""Parameters that a repeat may have with other values."""


class Carrier:
    """Carries out the operations of one namespace. All methods may be called from several threads.

    Attributes:
        namespace: open, as the server.
        deliveries: of the answers to changes.
    """

    def __init__(
        self,
        namespace: Namespace,
        identities: Identities,
        tokens: TokenStore,
        settings: ServerSettings,
        token_kind: str,
    ) -> None:
        self.namespace = namespace
        environment = namespace.environment
        self.deliveries = Deliveries(namespace.database, environment.clock, environment.ids.token())
        self._identities = identities
        self._tokens = tokens
        self._settings = settings
        self._token_kind = token_kind

    def make_call_patiently(self, exchange: Exchange) -> Call:
        """Do the same as `make_call`; wait for a database that is away, but not for long."""
        return self._be_patient(lambda: self.make_call(exchange), exchange)

    def make_call(self, exchange: Exchange) -> Call:
        """Find out who calls, and return the call.

        Raises:
            RequestRefusedError: see `Identities.find`.
            HoldfastError: the database is away.
        """
        authorization = exchange.headers.get(b"authorization", b"").decode("latin-1")
        certificate = exchange.scope["state"].get("certificate")
        found = self._identities.find(exchange.parameters, authorization, certificate, exchange.client)
        exchange.user, exchange.real_user = found.user, found.real_user
        host, _, port = exchange.host.rpartition(":")
        return Call(
            method=exchange.method,
            operation=exchange.operation,
            path=exchange.path,
            parameters=exchange.parameters,
            namespace=self.namespace.as_user(found.user, found.groups),
            host=host.strip("[]") if port.isdigit() else exchange.host,
            port=int(port) if port.isdigit() else 0,
            tokens=self._tokens,
            token_kind=self._token_kind,
            token=found.token,
            trash_s=self._settings.trash_s or 0,
        )

    def carry_out(self, exchange: Exchange) -> Answer:
        """Carry out an operation without the bytes of a file; return its answer.

        Raises:
            HoldfastError: the operation is impossible.
            RequestAbandonedError: the client does not wait anymore; nothing happened.
        """
        operation = OPERATIONS[exchange.method][exchange.operation]
        call = self.make_call_patiently(exchange)
        if operation.repeated is None:
            return self._be_patient(lambda: operation.run(call), exchange)
        changing = self._for_change(exchange, call)
        try:
            return self._be_patient(lambda: operation.run(changing), exchange)
        except RequestRepeatedError:
            metrics.REPEATS.labels(exchange.operation).inc()
            return operation.repeated(call.parameters)
        except RepeatUnclearError:
            raise  # the next one is new when this answer has arrived
        except BaseException:
            exchange.note_no_effect()
            raise

    def find_statuses(self, exchanges: Sequence[Exchange]) -> list[Answer | Exception]:
        """Answer requests for the status of files together, one for each exchange: with the answer or the error."""
        try:
            return self._be_patient(lambda: self._find_statuses(exchanges), *exchanges)
        except UnavailableError as error:
            return [error] * len(exchanges)  # raised, it would be waited for again, for each of them alone

    def _find_statuses(self, exchanges: Sequence[Exchange]) -> list[Answer | Exception]:
        answers: list[Answer | Exception] = [RequestAbandonedError()] * len(exchanges)
        calls = {}
        for number, exchange in enumerate(exchanges):
            try:
                call = self.make_call(exchange)
                NsPath.parse(call.path)
                calls[number] = call
            except UnavailableError:
                raise  # the database is away, for all of them
            except (HoldfastError, RequestRefusedError) as error:
                answers[number] = error
        if calls:
            for number, answer in zip(calls, get_file_statuses(list(calls.values())), strict=True):
                answers[number] = answer
        return answers

    def change_together(self, exchanges: Sequence[Exchange]) -> list[Answer | Exception | None]:
        """Try frequent changes together, one for each exchange; return the answer of each that took effect. For the
        others, None: `carry_out` has to carry them out. It asks for the same change, so nothing is done twice even if
        it is unknown what this call has done.
        """
        answers: list[Answer | Exception | None] = [None] * len(exchanges)
        asked: list[tuple[int, Call, Operation[Any]]] = []
        for number, exchange in enumerate(exchanges):
            with suppress(HoldfastError, RequestRefusedError):  # `carry_out` raises it again
                call = self._for_change(exchange, self.make_call(exchange))
                operation = make_operation(call)
                if operation is not None:
                    asked.append((number, call, operation))
        try:
            tried = [(_once(call, operation), call.namespace.caller) for _, call, operation in asked]
            has_effect = self.namespace.operations.try_together(tried)
        except HoldfastError:
            for number, _, _ in asked:
                exchanges[number].is_outcome_unknown = True
        else:
            for (number, _, _), has_one in zip(asked, has_effect, strict=True):
                answers[number] = TRUE if has_one else None
        return answers

    def new_leg(self) -> str:
        """Return a token for the second request of a transfer: no other one has it."""
        ids = self.namespace.environment.ids
        return ids.token() + ids.token()

    def check_transfer(self, exchange: Exchange) -> None:
        """Check what can be checked before the bytes of a file are sent.

        Raises:
            HoldfastError: the file cannot be read or written.
        """
        call = self.make_call_patiently(exchange)
        self._be_patient(lambda: (check_download if call.method == "GET" else check_upload)(call), exchange)

    def open_download(self, exchange: Exchange) -> tuple[FileReader, int, int]:
        """Open the file that a client wants to read: see `transfers.open_download`."""
        call = self.make_call_patiently(exchange)
        return self._be_patient(lambda: open_download(call), exchange)

    def open_upload(self, exchange: Exchange) -> FileWriter | None:
        """Open the file that a client wants to write: see `transfers.open_upload`; None if it is written already, as
        the same request has come before.
        """
        call = self.make_call_patiently(exchange)
        leg = exchange.parameters.text(LEG)
        key = receipt_key("leg", call.user, leg, call.operation, call.path)
        namespace = self._at_most_once(exchange, call, key, lambda: not exchange.is_gone, has_id=True)
        try:
            return self._be_patient(lambda: open_upload(replace(call, namespace=namespace)), exchange)
        except RequestRepeatedError as repeated:
            exchange.stored = repeated.content
        except BaseException as error:
            # Perhaps what is in the way is the file that this very request has made.
            exchange.stored = self._find_stored(exchange, namespace) if isinstance(error, HoldfastError) else None
            if exchange.stored is None:
                exchange.note_no_effect()
                raise
        metrics.REPEATS.labels(exchange.operation).inc()
        return None

    def _find_stored(self, exchange: Exchange, namespace: Namespace) -> str | None:
        try:
            self._be_patient(lambda: namespace.changes.require_new(namespace.caller), exchange)
        except RequestRepeatedError as repeated:
            return repeated.content
        return None

    def require_same_content(self, exchange: Exchange) -> None:
        """Check that the repeat of an upload has brought the same bytes: fsspec appends all pieces of a file at one
        address, so it may be the next piece, if the server that has taken the first one could not say that its answer
        had arrived.

        Raises:
            RepeatUnclearError: it has brought others, which are not stored.
        """
        if exchange.operation == "APPEND" and exchange.stored != exchange.content():
            raise RepeatUnclearError(
                "other bytes were appended by a request to this address, and these are not: write the file again",
                path=exchange.path,
            )

    def finish_upload(self, exchange: Exchange, writer: FileWriter, data: bytes) -> None:
        """Write the last bytes of an upload, and publish the file, unless the same request has done that before.

        Raises:
            HoldfastError: see `FileWriter.close`.
            RequestAbandonedError: the client does not wait anymore; nothing happened.
        """
        if data:
            writer.write(data)
        try:
            self._be_patient(writer.close, exchange)
        except RequestRepeatedError as repeated:
            metrics.REPEATS.labels(exchange.operation).inc()
            writer.discard()  # it has a lease, and bytes that are stored already
            exchange.stored = repeated.content
            self.require_same_content(exchange)
        except BaseException:
            exchange.note_no_effect()
            raise

    # --- changes ------------------------------------------------------------------------------------------------------
    def _for_change(self, exchange: Exchange, call: Call) -> Call:
        given = {name: values for name, values in call.parameters.values.items() if name not in _NOT_OF_THE_CHANGE}
        asked = json.dumps([call.method, call.operation, call.path, sorted(given.items())])
        key = receipt_key("change", call.user, exchange.client, asked)
        return replace(call, namespace=self._at_most_once(exchange, call, key, lambda: self._is_wanted(exchange)))

    def _at_most_once(
        self,
        exchange: Exchange,
        call: Call,
        key: bytes,
        is_wanted: Callable[[], bool],
        *,
        has_id: bool = False,
    ) -> Namespace:
        """Return the namespace of a call, for the one change that it asks for."""
        if exchange.delivery is None:
            exchange.delivery = self.deliveries.expect(key, exchange.connection)
        request = ClientRequest(
            key=key,
            server=self.deliveries.server,
            number=exchange.delivery.number,
            has_id=has_id,
            is_wanted=is_wanted,
            was_delivered=self.deliveries.was_delivered,
            content=exchange.content if has_id else str,
        )
        return call.namespace.for_request(request)

    def _is_wanted(self, exchange: Exchange) -> bool:
        return not exchange.is_gone and exchange.age_s() < self._settings.limits.request_s

    # --- a database that is away --------------------------------------------------------------------------------------
    def _be_patient(self, work: Callable[[], R], *exchanges: Exchange) -> R:
        """Do something for requests, and again while the database is away and any of their clients waits.

        A change may be repeated although its outcome is unknown: its receipt tells whether it took effect.
        """
        clock = self.namespace.environment.clock
        now_s = clock.elapsed_s()
        begun_s = max(now_s if one.operation in _UPLOADS else one.begun_s for one in exchanges)
        while True:
            try:
                return work()
            except (DirectoryFrozenError, UncheckedTreeError, UncountedTreeError):
                raise  # these have waited already
            except (StorageFullError, RepeatUnclearError):
                raise  # waiting does not help
            except (UnavailableError, OutcomeUnknownError) as error:
                for exchange in exchanges:
                    exchange.is_outcome_unknown |= isinstance(error, OutcomeUnknownError)
                if all(one.is_gone for one in exchanges) or clock.elapsed_s() - begun_s > _PATIENCE_S:
                    raise
                clock.sleep(_STEP_S)


def _once(call: Call, operation: Operation[Any]) -> Operation[Any]:
    runner = call.namespace.changes
    assert isinstance(runner, RequestRunner), "the call is for a change"
    return runner.once(operation)
