"""Measures what the server does."""
