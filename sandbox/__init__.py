"""Runs hostile code and returns one honest report.

Import from the modules. `host` runs in the server's process, and so does its half of `container`; `worker`, `dialect`,
`full_python`, `guest_api`, `guest_modules`, `report`, `guest` and `skill_source` run beside hostile code. Neither side
imports the other: they meet in `wire`, `confine`, `job` and `errors`. One module crosses: through `guest_names` the
server reads what code can name, and what the dialect refuses of a package.
"""
