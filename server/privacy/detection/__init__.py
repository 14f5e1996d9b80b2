"""Finds personal data in texts and in structured values."""
