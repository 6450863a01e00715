"""Convert between Arrow schemas and Spark's notations for schemas, without PySpark."""
