"""Serve a namespace over HTTP, as WebHDFS: to Hadoop's, Spark's and other clients as they are.

| module | its job |
|---|---|
| `server`, `connection` | processes, sockets and signals; what HTTP connections need beyond uvicorn |
| `application` | from a request to its answer: limits, callers, threads, the log |
| `operations` | all operations by name: `reading`, `changing`, `refusals`; bodies of files: `transfers` |
| `calls`, `parameters` | a request as operations see it |
| `documents`, `failures` | what Hadoop's clients parse |
| `deliveries` | which answers have reached their clients (`holdfast.namespace.receipts`) |
| `identities`, `tokens`, `hadoop_tokens` | who calls |
| `sites` | refuses what pages of other sites send |
| `duties`, `servers` | the background work of the leader; which processes live |
| `metrics` | counters for Prometheus |

Source: Hadoop's WebHDFS REST API; Hadoop 3.5's client, whose rules the modules name.
"""
