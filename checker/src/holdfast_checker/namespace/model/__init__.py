"""A sequential model of a namespace: `apply` says what each operation means alone."""
