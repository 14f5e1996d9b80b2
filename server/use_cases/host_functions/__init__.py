"""Answers what running code asks of the host."""
