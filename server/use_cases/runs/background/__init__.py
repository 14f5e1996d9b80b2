"""Runs that nobody waits for: their queue, their work in this process, and their reports."""
