"""Schemas in Spark's notations, without PySpark."""
