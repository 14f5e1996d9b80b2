"""Keeps skills and the vault, never loses a version."""
