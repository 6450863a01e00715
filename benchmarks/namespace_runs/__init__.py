"""Run namespaces in databases under load: what `benchmarks/namespace.py` measures."""
