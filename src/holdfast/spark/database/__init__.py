"""Read and load tables of a database with Spark: the data source ``holdfast-database``.

Spark builds the source, the reader and the writer in separate processes, each of which opens the database itself; what
they pass to each other are plain values. The protocol of a load is in `holdfast.records.loads`, without Spark.
"""
