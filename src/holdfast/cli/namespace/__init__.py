"""The commands ``holdfast namespace …``, which create namespaces, inspect them and clean up after them."""
