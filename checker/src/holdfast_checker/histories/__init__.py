"""Check whether recorded histories are linearizable or serializable, and whether each effect occurs exactly once."""
