"""The commands ``holdfast fs …``, which work with the files of namespaces.

`items` finds the files that URLs and patterns name, and walks trees; `plan`, `places` and `transfer` copy files.
"""
