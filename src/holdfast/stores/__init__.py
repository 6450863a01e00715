"""Access object stores: protocols, implementations, interceptors, and the conformance suite.

- `base`: the protocols, their values, and checks that all stores share
- `s3`, `local`, `memory`: one package per store
- `provider`, `registry`: how a store describes itself, and how a URL scheme leads to it
- `url`: opens the store and directory that a URL names
- `interceptors`: wrappers that inject faults, record calls, or throttle
- `probe`: tests what a server supports
- `conformance`: the acceptance test of every store, including those of other packages
"""
