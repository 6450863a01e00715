"""How each kind of finding is repaired: one function each."""
