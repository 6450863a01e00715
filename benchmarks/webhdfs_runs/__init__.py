"""Measure the server of a namespace: see `benchmarks/webhdfs.py`."""
