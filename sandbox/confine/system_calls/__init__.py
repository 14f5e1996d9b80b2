"""Which system calls a worker may make, and the filter that enforces it."""
