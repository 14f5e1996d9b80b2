"""Answers what running code asks of the host, and asks the user first where a call needs a yes."""
