"""Offer a namespace as an object store that makes many changes in one transaction: ``holdfast://name/path``.

- `store`: the store; its keys are paths without the first slash
- `objects`: the operations on objects and pending uploads
- `provider`: how the commit layer finds the store
"""
