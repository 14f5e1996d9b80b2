"""What the names of fields say about their values, and whether the values look like it."""
