"""Simulate the object stores, databases and clocks that actors share, and the handles of processes on them."""
