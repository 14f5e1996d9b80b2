"""Signs callers in to upstream servers with accounts of their own."""
