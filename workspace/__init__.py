"""Files that cannot be escaped from or overfilled."""
