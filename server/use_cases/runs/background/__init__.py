"""Runs that nobody waits for: their queue, their work in this process, and what is told of them."""
