"""Answer the rows of paper 000, Table V, and C1 to C10 by exploration, and compare the answers."""
