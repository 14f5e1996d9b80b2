"""HTTP between the servers that are one sealab: what comes from another server, and what goes to one."""
