"""The commands ``holdfast database …``, which work with tables of cells in a database."""
