"""Judge recorded histories: linearizable, serializable, exactly once."""
