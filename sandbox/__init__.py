"""Runs hostile code and returns one honest report.

Import from the modules. `host` runs in the server's process, and so does its half of `container`; `worker`, `dialect`,
`full_python`, `guest_api`, `report`, `guest` and `skill_source` run beside hostile code. Neither side imports the
other: they meet in `wire`, `confine`, `job` and `errors`. The server reads what code can name through
`guest_names`.
"""
