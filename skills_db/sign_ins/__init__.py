"""Keeps sign-ins to upstream servers: what each gave, and those that are under way in a browser."""
