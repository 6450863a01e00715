"""Access object stores: protocols, implementations, interceptors, and the conformance suite.

- `base`: the protocols, their values, and checks that all stores share
- `s3`, `local`, `memory`: the stores
- `provider`: describes a kind of store; collects the options of a call, and passes each of them to its parser
- `registry`: finds the store that a URL scheme belongs to, and opens what a URL names
- `interceptors`: a wrapper that passes each call to a function
- `probe`: tests what a server supports
- `conformance`: the acceptance tests for all stores, including those from other packages
"""
