"""The journal of runs: what each began with, what it asked of the host and was answered, and how it ended."""
