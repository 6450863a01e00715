"""Fill in Table V of paper 000, extended by C1 to C10, by exploration, and compare it with the declared answers."""
