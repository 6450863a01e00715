"""Options as people and Spark write them, parsed once into frozen values. Imports no PySpark."""
