"""The scenes of ``holdfast check namespace``: `catalog` lists them."""
