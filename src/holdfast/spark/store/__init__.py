"""Read and load tables of a store with Spark: the data source ``holdfast-store``.

Spark builds the source, the reader and the writer in separate processes, each of which opens the store itself; what
they pass to each other are plain values. The protocol of a load is in `holdfast.records.loads`, without Spark.
"""
