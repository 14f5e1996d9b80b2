"""Prepares a process for serving: imports, descriptors, signals."""
