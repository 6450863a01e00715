"""Intercept every call to a store: inject faults, record calls, throttle.

- `intercepted`: `InterceptedStore`, the one wrapper, which passes each call to an interceptor
- `faulty`: makes calls fail, lose their reply, or crash the process
- `recording`: records the calls
- `throttled`: makes a fast store as slow as a remote one
"""
