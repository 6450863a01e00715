"""Simulate a store with the reference store's own code, over states that the exploration can return to.

`resource` is the world's side, `handle` what a process holds. A dead process makes no calls, so its handle is dead,
too.
"""
