"""Holdfast in Spark: the data source ``holdfast``, `register`, `write` and `read`. Imports pyspark."""
