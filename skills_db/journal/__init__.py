"""Keeps the journals of runs: what each run began with, its calls in order, and how it ended."""
