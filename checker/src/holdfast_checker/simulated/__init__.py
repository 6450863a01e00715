"""Simulate what actors share: stores, databases, time. A process uses them through handles: each call is a step."""
