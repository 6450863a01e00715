"""Check any subject in the same way: describe it as a `Subject`, and let a `Check` search its scenes for violations."""
