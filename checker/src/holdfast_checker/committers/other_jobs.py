"""Run jobs other than the main one: interleaved with all actors, or each as a single call, which is called a stroke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from holdfast.commit import CommitContext, JobRecord, TaskCommit
from holdfast.errors import HoldfastError
from holdfast_checker.committers.actors import OtherJob, Setting, end_job, start_job
from holdfast_checker.committers.cluster import CLUSTER
from holdfast_checker.committers.ledger import Offer
from holdfast_checker.committers.output import DESTINATION, chosen_name, content
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.process import Port
from holdfast_checker.simulated_store.resource import Stroke


def other_job(setting: Setting, one: OtherJob) -> Callable[[Port], None]:
    """Return a program that runs jobs one after another until one is not committed; each reports its outcome."""

    def run(port: Port) -> None:
        if one.later:
            port.call(Call(CLUSTER, "await_end"))
        for number in range(one.times):
            if one.at_once:
                call = Call(DESTINATION, "stroke", (f"{one.name} {number}", port.token()))
                outcome = cast("tuple[str, object]", port.call(call))
                port.call(Call(CLUSTER, "tell", outcome))
                is_committed = outcome[0] == "committed"
            else:
                is_committed = _run_one(setting, port, one, number)
            if not is_committed:
                return

    return run


def stroke(setting: Setting, one: OtherJob, number: int) -> Stroke:
    """Return job number `number` as a single call to a store; the call returns the outcome of the job."""

    def run(do: Callable[[Call], object], token: str) -> object:
        port = _DirectPort(one.name, do, int(token, 16))
        _run_one(setting, port, one, number)
        return port.told

    return run


class _DirectPort(Port):
    """A port that executes every call to the store at once, and stores the job's outcome in `told`."""

    def __init__(self, name: str, do: Callable[[Call], object], token: int) -> None:
        super().__init__(name, 0, lambda index, call: None)
        self._do = do
        self._token = token
        self.told: tuple[object, object] = ("failed", None)

    def call(self, call: Call) -> object:
        if call.resource != CLUSTER:
            return self._do(call)
        if call.operation == "tell":
            self.told = (call.args[0], call.args[1])
            return None
        if call.operation == "turn":
            return 0  # one thread after the other: no other actor could see a difference
        assert call.operation == "offer", call.operation
        return self._do(Call(DESTINATION, "note", call.args))

    def token(self) -> str:
        self._token += 0x100
        return f"{self._token:012x}"


def _run_one(setting: Setting, port: Port, one: OtherJob, number: int) -> bool:
    job = start_job(setting, port, one.mode or setting.mode, one.batch)
    if job is None:
        return False
    reports = None
    try:
        reports = (_run_task(setting, setting.context(port), job, one, number),)
    except HoldfastError:
        pass  # its driver aborts the job
    else:
        port.call(Call(CLUSTER, "offer", (_offer_of(one, job, reports[0]),)))
    return end_job(replace(setting, tasks=1), port, job, reports)


def _offer_of(one: OtherJob, job: JobRecord, report: TaskCommit) -> Offer:
    return Offer(one.name, job.job, report.attempt, job.mode)


def _run_task(setting: Setting, ctx: CommitContext, job: JobRecord, one: OtherJob, number: int) -> TaskCommit:
    """Run the only task: write a file into each directory."""
    with setting.committer.setup_task(ctx, job, 0) as running:
        for at, folder in enumerate(one.directories):
            name = chosen_name(0, at) if setting.chosen else running.file_name(".txt")
            sink = running.open(f"{folder}/{name}")
            sink.write(content(one.name.partition(" ")[0], 0, number, at))
            sink.close()
        return running.commit()
