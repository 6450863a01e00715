"""Run the model checker on a part of the product: a `Subject` describes the part, a `Check` searches for violations."""
