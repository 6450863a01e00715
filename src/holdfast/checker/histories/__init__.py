"""Judge recorded histories of operations: linearizable, serializable, exactly once."""
