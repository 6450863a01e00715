"""Offer a namespace as an object store that makes many changes in one transaction: ``holdfast://name/path``.

- `store`: the store; its keys are paths without the first slash
- `change_set`: many changes as one transaction; `batch`: the operation for each of them
- `contents`: the bytes of objects, stored before the transaction
- `uploads`: the records of pending uploads; `parts`: add parts to them, and abort them
- `files`: files that are streamed; `moves`: files and directories that are renamed
- `directories`: the directories that objects need, and that go with the last object
- `rights`: what the caller may write, asked in advance
- `pages`: listings by prefix, each page from one snapshot
- `provider`: how the commit layer finds the store
"""
