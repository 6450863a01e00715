"""Tell how many tasks a local application could run at the same time, once nothing runs any more.

Spark's scheduler in the driver keeps a number of free cores: a task takes `spark.task.cpus` of them at its launch, and
gives them back with its last status. If a module left a task behind, or if tasks took more cores than one, later stages
would run fewer tasks at a time, without a message, and tests whose tasks meet would fail. Spark has no public
name for these numbers, so they are read from the fields of its objects.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.patience import wait_until

__all__ = ["free_slots", "require_all_slots"]

_ENDPOINT = "LocalSchedulerBackendEndpoint"


def require_all_slots(context: SparkContext, module: str) -> None:
    """Check that an application runs as many tasks at the same time as it has cores; end it if it does not.

    Raises:
        AssertionError: it does not, or its JVM has died; the message names the test module that has just run.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        process.stdin.close()
        # PySpark keeps them for good, and no later module could start an application.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        raise AssertionError(f"Spark's JVM has died with exit code {process.returncode} before the end of {module}")
    try:
        free, cores = free_slots(context)
        assert free == cores, f"Spark has {free} free slots for tasks on {cores} cores after {module}, and nothing runs"
    except AssertionError:
        context.stop()  # the next module starts another one
        raise


def free_slots(context: SparkContext) -> tuple[int, int]:
    """Wait until no task runs; return how many a local application could run at the same time, and its cores.

    Raises:
        AssertionError: a task does not end.
    """
    jvm = context._jvm
    assert jvm is not None, "the application runs"
    reference = _field(context._jsc.sc().schedulerBackend(), "localEndpoint")
    dispatcher = _field(_field(reference, "nettyEnv"), "dispatcher")
    inbox = _field(_field(dispatcher, "endpoints").get(_ENDPOINT), "endpoints").get(_ENDPOINT)
    endpoint = _field(inbox, "endpoint")
    running, messages = _field(_field(endpoint, "executor"), "runningTasks"), _field(inbox, "messages")

    def is_idle() -> bool:
        """A task sends its last status before it is off the list; so when the list is empty, the inbox has them all."""
        return bool(running.isEmpty() and messages.isEmpty() and not _field(inbox, "numActiveThreads"))

    wait_until(is_idle, "a task does not end")
    free = _number(jvm, endpoint, "freeCores") // _number(jvm, _field(endpoint, "scheduler"), "CPUS_PER_TASK")
    return int(free), int(_field(endpoint, "totalCores"))


def _field(owner: Any, name: str) -> Any:
    return _declared(owner, name).get(owner)


def _number(jvm: Any, owner: Any, name: str) -> Decimal:
    """Return a number in a field. As text, since py4j takes Scala's decimals for integers, and cannot read them."""
    lang = jvm.java.lang
    text, anything = lang.Class.forName("java.lang.String"), lang.Class.forName("java.lang.Object")
    lookup = lang.invoke.MethodHandles.publicLookup()
    read = lookup.unreflectGetter(_declared(owner, name))
    to_text = lookup.findStatic(text, "valueOf", lang.invoke.MethodType.methodType(text, anything))
    both = lang.invoke.MethodHandles.filterReturnValue(read.asType(read.type().changeReturnType(anything)), to_text)
    owners = jvm.java.util.ArrayList()
    owners.add(owner)
    return Decimal(both.invokeWithArguments(owners))


def _declared(owner: Any, name: str) -> Any:
    """Return a field of an object's class, or of those above it; Scala puts the name of the class before some names."""
    above = owner.getClass()
    while above is not None:
        for field in above.getDeclaredFields():
            if field.getName().rpartition("$")[2] == name:
                field.setAccessible(True)
                return field
        above = above.getSuperclass()
    raise AssertionError(f"Spark has no field {name} in {owner.getClass().getName()}")
