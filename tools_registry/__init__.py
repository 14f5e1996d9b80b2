"""Knows every tool, finds the right one, calls it."""
