"""Run Hadoop's own contract suites against a WebHDFS server, and compare with what is expected and with stock HDFS.

`src/` binds the suites of hadoop-common 3.5.0, in Java; `resources/` has the flags that HDFS sets for itself; Maven
brings the jars. `baseline.json` has what stock HDFS makes of each case; `expected.ini` has the cases that do not pass
here, and why.

A run of one's own, on a server that holds nothing (the suites delete all that is there, and their user must be its
superuser)::

    python -m tests.hadoop_contract webhdfs://localhost:9870
    python -m tests.hadoop_contract webhdfs://localhost:9870 Rename Seek
    python -m tests.hadoop_contract --reference

The last one starts stock HDFS and writes `baseline.json` anew.
"""
