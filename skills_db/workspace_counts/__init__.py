"""Counts of workspaces whose files are in an object store."""
