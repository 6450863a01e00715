"""Offer a namespace as an object store that makes many changes in one transaction: ``holdfast://name/path``.

- `store`: the store; its keys are paths without the first slash
- `uploads`: the records of pending uploads
- `batch`: the operation that creates, replaces and removes many files in one step
- `pages`: listings by prefix, each page from one snapshot
- `provider`: how the commit layer finds the store
"""
