"""Run computation units in the tasks of a Spark application."""

from holdfast.spark.units.runner import TransactionalMap, TransactionalReduce

__all__ = ["TransactionalMap", "TransactionalReduce"]
