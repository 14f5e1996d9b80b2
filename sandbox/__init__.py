"""Runs hostile code and returns one honest report.

Import from the modules: `sealab.sandbox.host.pool` on the server's side; everything else also lives in the child,
which must not import what it does not need.
"""
