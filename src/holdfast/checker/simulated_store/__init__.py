"""Simulate a store with the reference store's own code, over states that the exploration can return to.

`resource` is the world's side of the store, and `handle` the side of a process. A dead process makes no calls, so its
handle is dead, too.
"""
