"""Tenants in databases: which there are, the schema of each, and the skills that all of them may read."""
