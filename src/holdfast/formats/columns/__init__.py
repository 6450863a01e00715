"""Arrow columns and their types, as all formats share them."""
