"""Model-check commit protocols: the actors of a Spark job, the properties of its output, and descriptions in words."""
