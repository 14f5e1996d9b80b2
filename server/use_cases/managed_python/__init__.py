"""The Python environment that `sealab data setup` makes for full Python, below the operator's home."""
