"""Access object stores: protocols, implementations, interceptors, and the conformance suite.

- `base`: the protocols, their values, and checks that all stores share
- `s3`, `local`, `memory`: one package per store
- `provider`, `registry`: describe each kind of store, and find the one that a URL scheme belongs to
- `given`: collects the options of a call, and passes each of them to its parser
- `url`: opens the store and directory that a URL names
- `interceptors`: wrappers that inject faults, record calls, or throttle
- `probe`: tests what a server supports
- `conformance`: the acceptance tests for all stores, including those from other packages
"""
