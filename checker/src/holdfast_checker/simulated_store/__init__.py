"""Simulate a store with the code of the reference store, `MemoryStore`, on states to which exploration can return.

`resource` is the store itself, as the world sees it; `handle` is the store as a process sees it. A dead process makes
no calls, so its handle does nothing either.
"""
