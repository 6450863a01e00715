"""Offer a namespace as an object store that makes many changes in one transaction: ``holdfast://name/path``.

- `store`: the store; its keys are paths without the first slash
- `change_set`: many changes as one transaction, and the bytes that are stored before it
- `objects`, `moves`: the operations on objects and pending uploads, and those that rename
- `directories`: the directories that objects need, and that go with the last object; files that are streamed into them
- `pages`: listings by prefix, each page from one snapshot
- `provider`: how the commit layer finds the store
"""
