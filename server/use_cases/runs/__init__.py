"""Runs code: the use case, its report, and what is kept of it."""
