"""Check the namespace: its real operations meet in simulated worlds."""
