"""The commands ``holdfast store …``, which work with tables of cells in a database."""
