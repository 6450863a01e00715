"""Store objects in the memory of one process: for tests, and as the reference for all other stores.

- `provider`: the provider of ``memory://`` URLs, and `memory_store`, which returns the store of a URL
- `store`: `MemoryStore`
"""
