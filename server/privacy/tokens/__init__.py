"""Puts tokens in for personal data, and values back in for tokens."""
