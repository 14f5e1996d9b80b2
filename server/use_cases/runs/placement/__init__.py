"""Where a program runs: in the dialect, in full Python, or in a container."""
