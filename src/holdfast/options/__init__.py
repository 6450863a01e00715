"""Parse the options of reads, writes, streams and jobs into frozen values. Imports no PySpark."""
