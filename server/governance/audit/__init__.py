"""The audit log of a server: what happened, by whom and by which rule, without values."""
