"""The commands ``holdfast fs …``, which work with the files of namespaces.

`items` turns URLs and patterns into what they name, `descent` walks trees, `places` and `transfer` copy files.
"""
